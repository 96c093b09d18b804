//! A compiled schema: an arena of nodes, one per subschema, with references resolved.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use super::{
    alternatives::VARIANTS,
    equality,
    format::StringFormat,
    needs_validation::Enforcement,
    number::IntegerType,
    pattern::TextPattern,
    sort::sort_by,
    value_hash::{ValueIndex, hash_steps},
};

/// The index of a node in its arena.
pub(super) type NodeId = usize;

/// The keywords of one subschema.
#[derive(Debug, Default)]
pub(super) struct SchemaNode {
    /// The schema `false`.
    pub(super) never: bool,
    pub(super) types: Option<TypeSet>,
    pub(super) choices: Option<Choices>,
    pub(super) number: Option<Box<NumberRules>>,
    pub(super) string: Option<Box<StringRules>>,
    /// Whether it has a `format`, known or not.
    pub(super) has_format: bool,
    pub(super) array: Option<Box<ArrayRules>>,
    pub(super) object: Option<Box<ObjectRules>>,
    pub(super) applicators: Vec<Applicator>,
    /// Whether it may be applied to a value along several paths, which the schema allows for or refers to it from several
    /// places: others are applied as often as the node that leads to them.
    pub(super) is_shared: bool,
    pub(super) enforcement: Enforcement,
    /// Whether it can be checked while a text is parsed.
    pub(super) streams: bool,
    /// The node that it consists of a reference to, and whether it also allows `null`.
    pub(super) forwards_to: Option<(NodeId, bool)>,
    /// Types of which it accepts every value, and types of which it accepts none, as far as types alone tell it.
    pub(super) accepts: TypeSet,
    pub(super) refuses: TypeSet,
}

impl SchemaNode {
    /// The nodes that it applies to its value, and to what is in that, each as often as it does.
    pub(super) fn children(&self, all: &mut Vec<NodeId>) {
        all.extend(self.applicators.iter().flat_map(Applicator::ids));
        if let Some(rules) = &self.array {
            all.extend(&rules.prefix_items);
            all.extend(rules.items);
            all.extend(rules.contains.as_ref().map(|contains| contains.schema));
        }
        if let Some(rules) = &self.object {
            all.extend(rules.properties.iter().map(|property| property.schema));
            all.extend(rules.pattern_properties.iter().map(|(_, id)| *id));
            all.extend(rules.additional_properties);
            all.extend(rules.unevaluated_properties);
            all.extend(rules.property_names);
        }
    }

    /// Replaces each of these nodes by another.
    pub(super) fn replace_children(&mut self, replacement: impl Fn(NodeId) -> NodeId) {
        let replace = |id: &mut NodeId| *id = replacement(*id);
        for applicator in &mut self.applicators {
            match applicator {
                Applicator::Ref(id) | Applicator::Not(id) | Applicator::DependentSchema(_, id) => replace(id),
                Applicator::AllOf(ids) => ids.iter_mut().for_each(replace),
                Applicator::AnyOf(of) | Applicator::OneOf(of) => of.ids.iter_mut().for_each(replace),
                Applicator::If { test, then, otherwise } => {
                    [Some(test), then.as_mut(), otherwise.as_mut()].into_iter().flatten().for_each(replace);
                }
            }
        }
        if let Some(rules) = &mut self.array {
            let contains = rules.contains.as_mut().map(|contains| &mut contains.schema);
            rules.prefix_items.iter_mut().chain(&mut rules.items).chain(contains).for_each(replace);
        }
        if let Some(rules) = &mut self.object {
            let properties = rules.properties.iter_mut().map(|property| &mut property.schema);
            let patterns = rules.pattern_properties.iter_mut().map(|(_, id)| id);
            let others = rules.additional_properties.iter_mut().chain(&mut rules.unevaluated_properties);
            properties.chain(patterns).chain(others).chain(&mut rules.property_names).for_each(replace);
        }
    }

    /// Whether the node accepts every value.
    pub(super) fn is_any(&self) -> bool {
        self.is_unconstrained() && self.applicators.is_empty()
    }

    /// Whether the node accepts every value, its applicators aside.
    pub(super) fn is_unconstrained(&self) -> bool {
        !self.never
            && self.types.is_none()
            && self.choices.is_none()
            && self.number.is_none()
            && self.string.is_none()
            && self.array.is_none()
            && self.object.is_none()
    }

    /// Whether the node accepts `null` and nothing else.
    pub(super) fn is_null(&self) -> bool {
        self.types == Some(TypeSet::NULL)
            && self.choices.is_none()
            && self.applicators.is_empty()
            && !self.never
    }
}

/// A keyword that applies subschemas to the same value.
#[derive(Debug)]
pub(super) enum Applicator {
    Ref(NodeId),
    AllOf(Vec<NodeId>),
    AnyOf(Alternatives),
    OneOf(Alternatives),
    Not(NodeId),
    If {
        test: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
    /// `dependentSchemas`: applied if the key is present.
    DependentSchema(String, NodeId),
}

impl Applicator {
    /// The alternatives of `anyOf` or `oneOf`.
    pub(super) fn alternatives(&self) -> Option<&Alternatives> {
        match self {
            Self::AnyOf(of) | Self::OneOf(of) => Some(of),
            _ => None,
        }
    }

    /// How many steps of a check it takes to choose what is applied.
    pub(super) fn steps(&self, value: &Value) -> usize {
        match self {
            Self::AllOf(ids) => ids.len(),
            Self::AnyOf(of) | Self::OneOf(of) => {
                of.choices.as_ref().map_or(of.ids.len(), |choices| choices.steps(value))
            }
            _ => 0,
        }
    }

    /// The nodes that it applies.
    pub(super) fn ids(&self) -> Vec<NodeId> {
        match self {
            Self::Ref(id) | Self::Not(id) | Self::DependentSchema(_, id) => vec![*id],
            Self::AllOf(ids) => ids.clone(),
            Self::AnyOf(of) | Self::OneOf(of) => of.ids.clone(),
            Self::If { test, then, otherwise } => {
                [Some(*test), *then, *otherwise].into_iter().flatten().collect()
            }
        }
    }
}

/// The alternatives of `anyOf` or `oneOf`.
#[derive(Debug, Default)]
pub(super) struct Alternatives {
    pub(super) ids: Vec<NodeId>,
    /// Those that an object may be meant for, and the property that distinguishes them.
    pub(super) objects: Vec<NodeId>,
    pub(super) tag: Option<String>,
    /// What the author of the schema says of it.
    pub(super) variants: Option<Variants>,
    /// All of them are choices, of which a value is one or none: these.
    pub(super) choices: Option<Choices>,
}

/// A property whose value names an alternative, whatever the schemas of those say of it.
#[derive(Debug)]
pub(super) struct Variants {
    pub(super) property: String,
    /// The names, as texts.
    pub(super) names: Vec<Value>,
    /// By name: the place among the alternatives.
    places: HashMap<String, usize>,
}

impl Variants {
    /// Those of a schema with [`VARIANTS`].
    pub(super) fn of(schema: &Map<String, Value>) -> Option<Self> {
        let keyword = schema.get(VARIANTS)?;
        let property = keyword.get("property")?.as_str()?.to_owned();
        let mut variants = Self { property, names: Vec::new(), places: HashMap::new() };
        for (name, place) in keyword.get("places")?.as_object()? {
            variants.names.push(name.as_str().into());
            variants.places.insert(name.clone(), usize::try_from(place.as_u64()?).ok()?);
        }
        Some(variants)
    }

    /// The place of the alternative that a value names.
    pub(super) fn place(&self, value: &Value) -> Option<usize> {
        self.places.get(value.as_str()?).copied()
    }
}

/// `enum` or `const`.
#[derive(Debug)]
pub(super) struct Choices {
    pub(super) values: Vec<Value>,
    pub(super) is_const: bool,
    /// None of a few scalars.
    index: Option<ValueIndex>,
}

/// Up to so many scalars are compared one by one.
const FEW_CHOICES: usize = 8;

impl Choices {
    pub(super) fn new(values: Vec<Value>, is_const: bool) -> Self {
        let is_indexed = values.len() > FEW_CHOICES || values.iter().any(is_container);
        let index = is_indexed.then(|| ValueIndex::new(&values));
        Self { values, is_const, index }
    }

    /// Whether a value is one of them.
    pub(super) fn contains(&self, value: &Value) -> bool {
        let Some(index) = &self.index else {
            return self.values.iter().any(|choice| equality::equal(choice, value));
        };
        let is_it = |at: usize| self.values.get(at).is_some_and(|choice| equality::equal(choice, value));
        index.find(value).any(is_it)
    }

    /// Each value once.
    pub(super) fn distinct(mut self) -> Vec<Value> {
        let index = ValueIndex::new(&self.values);
        let is_first = |at: usize, value: &Value| {
            let mut before = index.find(value).take_while(|other| *other < at);
            !before.any(|other| self.values.get(other).is_some_and(|other| equality::equal(other, value)))
        };
        let first: Vec<bool> =
            self.values.iter().enumerate().map(|(at, value)| is_first(at, value)).collect();
        let mut first = first.into_iter();
        self.values.retain(|_| first.next() == Some(true));
        self.values
    }

    /// How many steps of a check that takes.
    pub(super) fn steps(&self, value: &Value) -> usize {
        if self.index.is_some() { hash_steps(value) } else { self.values.len() }
    }
}

/// Whether a value is an array or an object.
pub(super) fn is_container(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

/// The keywords of numbers.
#[derive(Debug, Default)]
pub(super) struct NumberRules {
    pub(super) minimum: Option<Number>,
    pub(super) maximum: Option<Number>,
    pub(super) exclusive_minimum: Option<Number>,
    pub(super) exclusive_maximum: Option<Number>,
    pub(super) multiple_of: Option<Number>,
    /// An annotation, unless the value is for a type of Rust.
    pub(super) integer: Option<IntegerType>,
}

/// The keywords of strings.
#[derive(Debug, Default)]
pub(super) struct StringRules {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    pub(super) pattern: Option<TextPattern>,
    /// An annotation, unless formats are checked.
    pub(super) format: Option<StringFormat>,
}

/// The keywords of arrays.
#[derive(Debug, Default)]
pub(super) struct ArrayRules {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    pub(super) unique_items: bool,
    pub(super) prefix_items: Vec<NodeId>,
    pub(super) items: Option<NodeId>,
    pub(super) contains: Option<Contains>,
}

/// `contains`, `minContains` and `maxContains`.
#[derive(Debug)]
pub(super) struct Contains {
    pub(super) schema: NodeId,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

/// The keywords of objects.
#[derive(Debug, Default)]
pub(super) struct ObjectRules {
    /// Sorted by name.
    pub(super) properties: Vec<Property>,
    /// Required names that are not properties of this node.
    pub(super) required: Vec<String>,
    pub(super) pattern_properties: Vec<(TextPattern, NodeId)>,
    pub(super) additional_properties: Option<NodeId>,
    pub(super) unevaluated_properties: Option<NodeId>,
    pub(super) property_names: Option<NodeId>,
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    pub(super) dependent_required: Vec<(String, Vec<String>)>,
}

#[derive(Debug)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) schema: NodeId,
    pub(super) required: bool,
    pub(super) default: Option<Value>,
}

impl ObjectRules {
    /// Sorts the properties, and finds those that are required.
    pub(super) fn settle_names(&mut self) {
        sort_by(&mut self.properties, |a, b| a.name.cmp(&b.name));
        for name in std::mem::take(&mut self.required) {
            match self.properties.iter_mut().find(|property| property.name == name) {
                Some(property) => property.required = true,
                None => self.required.push(name),
            }
        }
    }

    /// How many steps of a check it takes to match a name against the patterns.
    pub(super) fn pattern_steps(&self, name: &str) -> usize {
        let each = self.pattern_properties.iter().map(|(pattern, _)| pattern.steps(name));
        each.fold(0, usize::saturating_add)
    }

    pub(super) fn property(&self, name: &str) -> Option<(usize, &Property)> {
        let at = self.properties.binary_search_by(|property| property.name.as_str().cmp(name)).ok()?;
        self.properties.get(at).map(|property| (at, property))
    }
}

/// A set of JSON types; `number` includes `integer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TypeSet(u8);

impl TypeSet {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    pub(super) const NUMBER: Self = Self(4 | 8);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const ANY: Self = Self(127);

    /// The types that the value of a `type` keyword names; `None` if it is malformed.
    pub(super) fn parse(keyword: &Value) -> Option<Self> {
        match keyword {
            Value::String(name) => Self::from_name(name),
            Value::Array(names) => names
                .iter()
                .try_fold(Self::NONE, |types, name| Some(types.union(Self::from_name(name.as_str()?)?))),
            _ => None,
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _, _)| *known == name).map(|(_, _, types)| *types)
    }

    /// The narrowest type of a value.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if super::number::is_integer(number) => Self::INTEGER,
            Value::Number(_) => Self(8),
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// As in `an integer or null`.
    pub(super) fn describe(self) -> String {
        let mut remaining = self;
        let mut phrases = Vec::new();
        for (_, phrase, types) in NAMES {
            if remaining.contains(types) {
                phrases.push(phrase);
                remaining = remaining.without(types);
            }
        }
        phrases.join(" or ")
    }
}

/// Names and descriptions; wider types first, so that `number` is not described as an integer.
const NAMES: [(&str, &str, TypeSet); 7] = [
    ("string", "a string", TypeSet::STRING),
    ("number", "a number", TypeSet::NUMBER),
    ("integer", "an integer", TypeSet::INTEGER),
    ("boolean", "a boolean", TypeSet::BOOLEAN),
    ("array", "an array", TypeSet::ARRAY),
    ("object", "an object", TypeSet::OBJECT),
    ("null", "null", TypeSet::NULL),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_sets() {
        assert_eq!(
            TypeSet::parse(&json!(["integer", "null"])).map(TypeSet::describe),
            Some("an integer or null".to_owned())
        );
        assert_eq!(TypeSet::parse(&json!(["integer", "number"])), Some(TypeSet::NUMBER));
        assert_eq!(TypeSet::parse(&json!("any")), None);
        assert!(TypeSet::NUMBER.contains(TypeSet::of(&json!(1.5))));
        assert!(!TypeSet::INTEGER.contains(TypeSet::of(&json!(1.5))));
        assert!(TypeSet::INTEGER.contains(TypeSet::of(&json!(2.0))));
    }
}
