//! A compiled schema: an arena of nodes, one per subschema, with references already resolved.
//!
//! `compile` makes it; `check`, `object` and `stream` read it.

use regex_lite::Regex;
use serde_json::{Number, Value};

/// The index of a node in its arena.
pub(super) type Id = usize;

/// All keywords of one subschema.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The schema `false`.
    pub(super) never: bool,
    pub(super) types: Option<Types>,
    pub(super) choices: Option<Choices>,
    pub(super) number: Option<Box<NumberRules>>,
    pub(super) text: Option<Box<TextRules>>,
    pub(super) array: Option<Box<ArrayRules>>,
    pub(super) object: Option<Box<ObjectRules>>,
    pub(super) applied: Vec<Applied>,
}

impl Node {
    /// Whether the node accepts everything.
    pub(super) fn is_any(&self) -> bool {
        self.is_unconstrained() && self.applied.is_empty()
    }

    /// Whether the node's own keywords accept everything, apart from schemas applied in place.
    pub(super) fn is_unconstrained(&self) -> bool {
        !self.never
            && self.types.is_none()
            && self.choices.is_none()
            && self.number.is_none()
            && self.text.is_none()
            && self.array.is_none()
            && self.object.is_none()
    }

    /// Whether the node accepts `null` and nothing else.
    pub(super) fn is_null(&self) -> bool {
        self.types == Some(Types::NULL) && self.choices.is_none() && self.applied.is_empty() && !self.never
    }
}

/// A schema applied to the same value.
#[derive(Debug)]
pub(super) enum Applied {
    Ref(Id),
    AllOf(Vec<Id>),
    AnyOf(Vec<Id>),
    OneOf(Vec<Id>),
    Not(Id),
    If {
        test: Id,
        then: Option<Id>,
        otherwise: Option<Id>,
    },
    /// `dependentSchemas`: applied if the key is there.
    IfKey(String, Id),
}

/// `enum` or `const`.
#[derive(Debug)]
pub(super) struct Choices {
    pub(super) values: Vec<Value>,
    pub(super) is_const: bool,
}

#[derive(Debug, Default)]
pub(super) struct NumberRules {
    pub(super) minimum: Option<Number>,
    pub(super) maximum: Option<Number>,
    pub(super) above: Option<Number>,
    pub(super) below: Option<Number>,
    pub(super) multiple_of: Option<Number>,
}

#[derive(Debug, Default)]
pub(super) struct TextRules {
    pub(super) least: Option<u64>,
    pub(super) most: Option<u64>,
    pub(super) pattern: Option<Regex>,
}

#[derive(Debug, Default)]
pub(super) struct ArrayRules {
    pub(super) least: Option<u64>,
    pub(super) most: Option<u64>,
    pub(super) unique: bool,
    pub(super) prefix: Vec<Id>,
    pub(super) items: Option<Id>,
    pub(super) contains: Option<Contains>,
}

#[derive(Debug)]
pub(super) struct Contains {
    pub(super) schema: Id,
    pub(super) least: u64,
    pub(super) most: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct ObjectRules {
    /// Sorted by name.
    pub(super) properties: Vec<Property>,
    /// Required names that are no property of this node.
    pub(super) required: Vec<String>,
    pub(super) patterns: Vec<(Regex, Id)>,
    pub(super) additional: Option<Id>,
    pub(super) unevaluated: Option<Id>,
    pub(super) names: Option<Id>,
    pub(super) least: Option<u64>,
    pub(super) most: Option<u64>,
    pub(super) dependent: Vec<(String, Vec<String>)>,
}

#[derive(Debug)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) schema: Id,
    pub(super) required: bool,
}

impl ObjectRules {
    pub(super) fn property(&self, name: &str) -> Option<(usize, &Property)> {
        let at = self.properties.binary_search_by(|property| property.name.as_str().cmp(name)).ok()?;
        self.properties.get(at).map(|property| (at, property))
    }
}

/// A set of JSON types; `number` includes `integer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    pub(super) const NUMBER: Self = Self(4 | 8);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const ANY: Self = Self(127);

    /// The types that a `type` keyword names, or none if it names something else.
    pub(super) fn parse(keyword: &Value) -> Option<Self> {
        match keyword {
            Value::String(name) => Self::named(name),
            Value::Array(names) => names
                .iter()
                .try_fold(Self::NONE, |types, name| Some(types.union(Self::named(name.as_str()?)?))),
            _ => None,
        }
    }

    fn named(name: &str) -> Option<Self> {
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
        let mut left = self;
        let mut words = Vec::new();
        for (_, words_of, types) in NAMES {
            if left.contains(types) {
                words.push(words_of);
                left = left.without(types);
            }
        }
        words.join(" or ")
    }
}

/// Wider types first, so that `number` is not described as an integer.
const NAMES: [(&str, &str, Types); 7] = [
    ("string", "a string", Types::STRING),
    ("number", "a number", Types::NUMBER),
    ("integer", "an integer", Types::INTEGER),
    ("boolean", "a boolean", Types::BOOLEAN),
    ("array", "an array", Types::ARRAY),
    ("object", "an object", Types::OBJECT),
    ("null", "null", Types::NULL),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_sets() {
        assert_eq!(
            Types::parse(&json!(["integer", "null"])).map(Types::describe),
            Some("an integer or null".to_owned())
        );
        assert_eq!(Types::parse(&json!(["integer", "number"])), Some(Types::NUMBER));
        assert_eq!(Types::parse(&json!("any")), None);
        assert!(Types::NUMBER.contains(Types::of(&json!(1.5))));
        assert!(!Types::INTEGER.contains(Types::of(&json!(1.5))));
        assert!(Types::INTEGER.contains(Types::of(&json!(2.0))));
    }
}
