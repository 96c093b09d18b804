//! Compiles a schema into nodes, and rejects keywords that the validator does not enforce.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde_json::{Map, Number, Value};

use super::alternatives::settle_alternatives;
use super::format::StringFormat;
use super::needs_validation::enforcement;
use super::node::{
    Alternatives, Applicator, Choices, Contains, NodeId, Property, SchemaNode, TypeSet, Variants,
};
use super::number::IntegerType;
use super::pattern::TextPattern;
use super::{equality, walk};

/// A keyword that the validator does not enforce, so a schema that has it cannot be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedKeyword {
    /// The keyword, as in `$dynamicRef`.
    pub(super) keyword: String,
    /// The JSON pointer of the subschema that has it; empty for the root.
    pub(super) pointer: String,
    reason: String,
}

impl UnsupportedKeyword {
    /// A keyword that the validator does not know.
    pub(super) fn unknown(keyword: &str, pointer: &str) -> Self {
        let reason = "it is not a supported keyword".to_owned();
        Self { keyword: keyword.to_owned(), pointer: pointer.to_owned(), reason }
    }
}

impl fmt::Display for UnsupportedKeyword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keyword, pointer, reason } = self;
        if keyword.is_empty() {
            return write!(f, "the schema at `#{pointer}` cannot be enforced: {reason}");
        }
        write!(f, "`{keyword}` at `#{pointer}` cannot be enforced: {reason}")
    }
}

/// The dialect that is enforced.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Whether the value of a keyword that is not an assertion is right: a client that reads the schema may refuse the whole list
/// for it. `None` if the keyword is an assertion, or not known.
fn check_annotation(keyword: &str, value: &Value) -> Option<Result<(), String>> {
    let (is_right, expected) = match keyword {
        "title" | "description" | "format" | "contentEncoding" | "contentMediaType" | "$comment"
        | "$anchor" | "$id" => (value.is_string(), "a string"),
        "deprecated" | "readOnly" | "writeOnly" => (value.is_boolean(), "`true` or `false`"),
        "examples" => (value.is_array(), "an array"),
        "contentSchema" => (value.is_object() || value.is_boolean(), "a schema"),
        "$defs" | "definitions" | "$vocabulary" => (value.is_object(), "an object"),
        "$schema" => {
            let is_dialect = value.as_str().is_some_and(|name| name.trim_end_matches('#') == DIALECT);
            return Some(
                is_dialect.then_some(()).ok_or_else(|| format!("the dialect {value} is not 2020-12")),
            );
        }
        "default" => (true, ""),
        _ if keyword.starts_with("x-") => (true, ""),
        _ => return None,
    };
    Some(is_right.then_some(()).ok_or_else(|| format!("its value is not {expected}")))
}

type CompileResult<T> = Result<T, UnsupportedKeyword>;

/// A compiled schema, and which node each of its subschemas became.
pub(super) struct CompiledSchema {
    pub(super) nodes: Vec<SchemaNode>,
    /// By JSON pointer.
    pub(super) ids: HashMap<String, NodeId>,
}

/// Compiles a root schema; the root is the first node.
pub(super) fn compile(root: &Value) -> CompileResult<Vec<SchemaNode>> {
    compile_by_pointer(root).map(|compiled| compiled.nodes)
}

/// As [`compile`], with the places of the nodes.
pub(super) fn compile_by_pointer(root: &Value) -> CompileResult<CompiledSchema> {
    compile_all(root).map_err(|unsupported| unsupported.first)
}

/// The errors of a schema.
pub(super) struct UnsupportedKeywords {
    pub(super) first: UnsupportedKeyword,
    pub(super) others: Vec<UnsupportedKeyword>,
}

/// As [`compile_by_pointer`]; the errors are one of each subschema that has some.
pub(super) fn compile_all(root: &Value) -> Result<CompiledSchema, UnsupportedKeywords> {
    let mut compiler = Compiler {
        root,
        nodes: Vec::new(),
        ids: HashMap::new(),
        anchors: None,
        referenced: Vec::new(),
        errors: Vec::new(),
    };
    compiler.node("", root);
    while let Some((id, pointer, schema)) = compiler.referenced.pop() {
        compiler.compile_node(id, &pointer, schema);
    }
    if compiler.errors.is_empty() {
        compiler.reject_endless_references();
    }
    let mut errors = std::mem::take(&mut compiler.errors).into_iter();
    if let Some(first) = errors.next() {
        return Err(UnsupportedKeywords { first, others: errors.collect() });
    }
    follow_references(&mut compiler.nodes);
    mark_shared(&mut compiler.nodes);
    settle_types(&mut compiler.nodes);
    settle_alternatives(&mut compiler.nodes);
    Ok(CompiledSchema { nodes: compiler.nodes, ids: compiler.ids })
}

/// Whether the value at a JSON pointer of a schema is an object, so that text for it is read as one.
pub fn reads_objects(root: &Value, pointer: &str) -> bool {
    let Ok(CompiledSchema { nodes, ids }) = compile_by_pointer(root) else { return false };
    let node = ids.get(pointer).and_then(|id| nodes.get(*id));
    node.is_some_and(|node| TypeSet::ANY.without(node.refuses).without(TypeSet::NULL) == TypeSet::OBJECT)
}

/// Whether a schema accepts an object, as far as types alone tell it.
pub fn may_be_object(root: &Value) -> bool {
    let Ok(nodes) = compile(root) else { return true };
    nodes.first().is_none_or(|node| !node.refuses.contains(TypeSet::OBJECT))
}

/// Replaces the nodes that consist of a reference by what they refer to, wherever they are applied.
fn follow_references(nodes: &mut [SchemaNode]) {
    let mut targets: Vec<NodeId> = (0..nodes.len()).collect();
    for target in &mut targets {
        // this terminates: compilation rejects reference cycles
        while let Some(node) = nodes.get(*target)
            && let ([Applicator::Ref(next)], true) = (node.applicators.as_slice(), node.is_unconstrained())
        {
            *target = *next;
        }
    }
    for node in nodes {
        node.replace_children(|id| targets.get(id).copied().unwrap_or(id));
    }
}

/// Marks the nodes that may be applied to one value more than once.
fn mark_shared(nodes: &mut [SchemaNode]) {
    // unevaluated members are found by applying the keywords in place again
    let has_unevaluated =
        |node: &SchemaNode| node.object.as_ref().is_some_and(|rules| rules.unevaluated_properties.is_some());
    let all_are_shared = nodes.iter().any(has_unevaluated);
    let mut uses = vec![0_usize; nodes.len()];
    let mut children = vec![0];
    nodes.iter().for_each(|node| node.children(&mut children));
    for id in children {
        if let Some(uses) = uses.get_mut(id) {
            *uses += 1;
        }
    }
    for (node, uses) in nodes.iter_mut().zip(uses) {
        node.is_shared = all_are_shared || uses > 1;
    }
}

/// Determines of each node which types decide alone whether it accepts a value: most values of the alternatives of a type are
/// told apart by that.
fn settle_types(nodes: &mut [SchemaNode]) {
    let mut known = vec![None; nodes.len()];
    for id in 0..nodes.len() {
        decided_types(nodes, id, &mut known);
    }
    for (node, types) in nodes.iter_mut().zip(known) {
        (node.accepts, node.refuses) = types.unwrap_or_default();
    }
}

/// The types that a node accepts, and those that it refuses. This terminates: no node applies itself to its value.
fn decided_types(
    nodes: &[SchemaNode],
    id: NodeId,
    known: &mut [Option<(TypeSet, TypeSet)>],
) -> (TypeSet, TypeSet) {
    if let Some(Some(types)) = known.get(id) {
        return *types;
    }
    let Some(node) = nodes.get(id) else { return (TypeSet::NONE, TypeSet::NONE) };
    let mut accepts = node.types.unwrap_or(TypeSet::ANY);
    let mut refuses = TypeSet::ANY.without(accepts);
    if node.never {
        (accepts, refuses) = (TypeSet::NONE, TypeSet::ANY);
    }
    if let Some(choices) = &node.choices {
        let of_choices =
            choices.values.iter().fold(TypeSet::NONE, |types, choice| types.union(TypeSet::of(choice)));
        (accepts, refuses) = (TypeSet::NONE, refuses.union(TypeSet::ANY.without(of_choices)));
    }
    let with_rules = [
        (TypeSet::NUMBER, node.number.is_some()),
        (TypeSet::STRING, node.string.is_some()),
        (TypeSet::ARRAY, node.array.is_some()),
        (TypeSet::OBJECT, node.object.is_some()),
    ];
    for (types, _) in with_rules.iter().filter(|(_, has_rules)| *has_rules) {
        accepts = accepts.without(*types);
    }
    for applicator in &node.applicators {
        let (accepted, refused) = match applicator {
            Applicator::Ref(id) => decided_types(nodes, *id, known),
            Applicator::Not(id) => {
                let (accepted, refused) = decided_types(nodes, *id, known);
                (refused, accepted)
            }
            Applicator::AllOf(ids) => ids.iter().fold((TypeSet::ANY, TypeSet::NONE), |all, id| {
                let one = decided_types(nodes, *id, known);
                (all.0.intersection(one.0), all.1.union(one.1))
            }),
            Applicator::AnyOf(of) => of.ids.iter().fold((TypeSet::NONE, TypeSet::ANY), |all, id| {
                let one = decided_types(nodes, *id, known);
                (all.0.union(one.0), all.1.intersection(one.1))
            }),
            Applicator::OneOf(of) => {
                let each: Vec<_> = of.ids.iter().map(|id| decided_types(nodes, *id, known)).collect();
                // the types that all alternatives but one refuse, and those that all do
                let (but_one, all) = each.iter().fold((TypeSet::ANY, TypeSet::ANY), |(but_one, all), one| {
                    (but_one.intersection(one.1).union(all), all.intersection(one.1))
                });
                let accepted = each.iter().fold(TypeSet::NONE, |types, one| types.union(one.0));
                (accepted.intersection(but_one), all)
            }
            Applicator::If { .. } => (TypeSet::NONE, TypeSet::NONE),
            Applicator::DependentSchema(..) => (TypeSet::ANY.without(TypeSet::OBJECT), TypeSet::NONE),
        };
        (accepts, refuses) = (accepts.intersection(accepted), refuses.union(refused));
    }
    if let Some(slot) = known.get_mut(id) {
        *slot = Some((accepts, refuses));
    }
    (accepts, refuses)
}

/// How many schemas may be applied to one value within each other, such as by references to references.
const MAX_APPLIED: usize = 64;

struct Compiler<'a> {
    root: &'a Value,
    nodes: Vec<SchemaNode>,
    /// Nodes by JSON pointer, so that references share nodes and recursive schemas terminate.
    ids: HashMap<String, NodeId>,
    /// The first subschema with each `$anchor`, once one is referred to.
    anchors: Option<HashMap<&'a str, (String, &'a Value)>>,
    /// The nodes to compile that were referred to: a chain of references may be longer than the stack is.
    referenced: Vec<(NodeId, String, &'a Value)>,
    errors: Vec<UnsupportedKeyword>,
}

/// One subschema during compilation.
struct Subschema<'s> {
    map: &'s Map<String, Value>,
    /// The JSON pointer from the root.
    pointer: &'s str,
}

impl Subschema<'_> {
    fn unsupported<T>(&self, keyword: &str, reason: impl Into<String>) -> CompileResult<T> {
        Err(UnsupportedKeyword {
            keyword: keyword.to_owned(),
            pointer: self.pointer.to_owned(),
            reason: reason.into(),
        })
    }

    fn number(&self, keyword: &str) -> CompileResult<Option<Number>> {
        match self.map.get(keyword) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.clone())),
            Some(_) => self.unsupported(keyword, "its value is not a number"),
        }
    }

    fn count(&self, keyword: &str) -> CompileResult<Option<u64>> {
        let Some(number) = self.number(keyword)? else { return Ok(None) };
        let whole = number.as_f64().filter(|float| float.fract() == 0.0 && *float >= 0.0);
        match number.as_u64().or(whole.map(|float| float as u64)) {
            Some(count) => Ok(Some(count)),
            None => self.unsupported(keyword, "its value is not a count"),
        }
    }

    fn names(&self, keyword: &str, value: &Value) -> CompileResult<Vec<String>> {
        let names: Option<Vec<&str>> =
            value.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
        let Some(names) = names else {
            return self.unsupported(keyword, "its value is not a list of names");
        };
        let mut known = HashSet::new();
        if let Some(name) = names.iter().find(|name| !known.insert(**name)) {
            return self.unsupported(keyword, format!("it lists `{name}` twice"));
        }
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    fn members(&self, keyword: &str) -> CompileResult<impl Iterator<Item = (&String, &Value)>> {
        match self.map.get(keyword) {
            None => Ok(None.into_iter().flatten()),
            Some(Value::Object(members)) => Ok(Some(members).into_iter().flatten()),
            Some(_) => self.unsupported(keyword, "its value is not an object"),
        }
    }

    fn regex(&self, keyword: &str, pattern: &str) -> CompileResult<TextPattern> {
        TextPattern::linked(pattern)
            .or_else(|error| self.unsupported(keyword, format!("`{pattern}`: {error}")))
    }
}

impl Compiler<'_> {
    /// The node of a subschema; one with an error accepts everything.
    fn node(&mut self, pointer: &str, schema: &Value) -> NodeId {
        if let Some(id) = self.ids.get(pointer) {
            return *id;
        }
        let id = self.new_node(pointer);
        self.compile_node(id, pointer, schema);
        id
    }

    fn new_node(&mut self, pointer: &str) -> NodeId {
        let id = self.nodes.len();
        self.nodes.push(SchemaNode::default());
        self.ids.insert(pointer.to_owned(), id);
        id
    }

    fn compile_node(&mut self, id: NodeId, pointer: &str, schema: &Value) {
        let node = match schema {
            Value::Bool(allowed) => Ok(SchemaNode { never: !allowed, ..SchemaNode::default() }),
            Value::Object(map) => self.compile_object(&Subschema { map, pointer }),
            _ => Err(UnsupportedKeyword {
                keyword: String::new(),
                pointer: pointer.to_owned(),
                reason: "a schema is an object or a boolean".to_owned(),
            }),
        };
        match node {
            Ok(node) => {
                if let Some(slot) = self.nodes.get_mut(id) {
                    *slot = node;
                }
            }
            Err(error) => self.errors.push(error),
        }
    }

    fn compile_object(&mut self, subschema: &Subschema<'_>) -> CompileResult<SchemaNode> {
        let mut node = SchemaNode { enforcement: enforcement(subschema.map), ..SchemaNode::default() };
        for (keyword, value) in subschema.map {
            match keyword.as_str() {
                "$id" if !subschema.pointer.is_empty() => {
                    return subschema.unsupported(keyword, "only the root schema may have one");
                }
                "type" => match TypeSet::parse(value) {
                    Some(types) => node.types = Some(types),
                    None => return subschema.unsupported(keyword, format!("{value} is not a JSON type")),
                },
                "$ref" => node.applicators.push(Applicator::Ref(self.reference(subschema, value)?)),
                "allOf" => {
                    node.applicators.push(Applicator::AllOf(self.schema_list(subschema, keyword, value)?));
                }
                "anyOf" | "oneOf" => {
                    let ids = self.schema_list(subschema, keyword, value)?;
                    let variants = Variants::of(subschema.map);
                    let of = Alternatives { ids, variants, ..Alternatives::default() };
                    let applicator = if keyword == "anyOf" { Applicator::AnyOf } else { Applicator::OneOf };
                    node.applicators.push(applicator(of));
                }
                "not" => node.applicators.push(Applicator::Not(self.child(subschema, keyword, value))),
                "if" => {
                    let test = self.child(subschema, keyword, value);
                    let then = self.optional_child(subschema, "then");
                    let otherwise = self.optional_child(subschema, "else");
                    node.applicators.push(Applicator::If { test, then, otherwise });
                }
                "dependentSchemas" => {
                    for (key, schema) in subschema.members(keyword)? {
                        let schema = self.member(subschema, keyword, key, schema);
                        node.applicators.push(Applicator::DependentSchema(key.clone(), schema));
                    }
                }
                "$defs" | "definitions" if value.is_object() => {
                    // one that nothing refers to is published as well
                    for (name, schema) in subschema.members(keyword)? {
                        self.member(subschema, keyword, name, schema);
                    }
                }
                "enum" | "const" => node.choices = choices(subschema)?,
                "minimum" => node.number.get_or_insert_default().minimum = subschema.number(keyword)?,
                "maximum" => node.number.get_or_insert_default().maximum = subschema.number(keyword)?,
                "exclusiveMinimum" => {
                    node.number.get_or_insert_default().exclusive_minimum = subschema.number(keyword)?;
                }
                "exclusiveMaximum" => {
                    node.number.get_or_insert_default().exclusive_maximum = subschema.number(keyword)?;
                }
                "multipleOf" => {
                    let divisor = subschema.number(keyword)?;
                    if divisor.as_ref().and_then(Number::as_f64).is_some_and(|by| by <= 0.0) {
                        return subschema.unsupported(keyword, "its value is not above 0");
                    }
                    node.number.get_or_insert_default().multiple_of = divisor;
                }
                "minLength" => node.string.get_or_insert_default().min = subschema.count(keyword)?,
                "maxLength" => node.string.get_or_insert_default().max = subschema.count(keyword)?,
                "pattern" => match value {
                    Value::String(pattern) => {
                        let pattern = subschema.regex(keyword, pattern)?;
                        node.string.get_or_insert_default().pattern = Some(pattern);
                    }
                    _ => return subschema.unsupported(keyword, "its value is not a string"),
                },
                "format" if value.is_string() => {
                    node.has_format = true;
                    if let Some(integer) = value.as_str().and_then(IntegerType::named) {
                        node.number.get_or_insert_default().integer = Some(integer);
                    }
                    if let Some(format) = value.as_str().and_then(StringFormat::from_name) {
                        node.string.get_or_insert_default().format = Some(format);
                    }
                }
                "minItems" => node.array.get_or_insert_default().min = subschema.count(keyword)?,
                "maxItems" => node.array.get_or_insert_default().max = subschema.count(keyword)?,
                "uniqueItems" => {
                    node.array.get_or_insert_default().unique_items = *value == Value::Bool(true);
                }
                "items" => {
                    node.array.get_or_insert_default().items = Some(self.child(subschema, keyword, value));
                }
                "prefixItems" => {
                    let items = self.schema_list(subschema, keyword, value)?;
                    node.array.get_or_insert_default().prefix_items = items;
                }
                "contains" => {
                    let schema = self.child(subschema, keyword, value);
                    let min = subschema.count("minContains")?.unwrap_or(1);
                    let contains = Contains { schema, min, max: subschema.count("maxContains")? };
                    node.array.get_or_insert_default().contains = Some(contains);
                }
                // one without members is for clients that look for it
                "properties" => {
                    for (name, schema) in subschema.members(keyword)? {
                        // beside a reference, which is followed
                        let default = schema.get("default").cloned();
                        let schema = self.member(subschema, keyword, name, schema);
                        let property = Property { name: name.clone(), schema, required: false, default };
                        node.object.get_or_insert_default().properties.push(property);
                    }
                }
                "required" => {
                    node.object.get_or_insert_default().required = subschema.names(keyword, value)?;
                }
                "patternProperties" => {
                    for (pattern, schema) in subschema.members(keyword)? {
                        let regex = subschema.regex(keyword, pattern)?;
                        let schema = self.member(subschema, keyword, pattern, schema);
                        node.object.get_or_insert_default().pattern_properties.push((regex, schema));
                    }
                }
                "additionalProperties" | "unevaluatedProperties" | "propertyNames" => {
                    let schema = self.child(subschema, keyword, value);
                    let rules = node.object.get_or_insert_default();
                    *match keyword.as_str() {
                        "additionalProperties" => &mut rules.additional_properties,
                        "unevaluatedProperties" => &mut rules.unevaluated_properties,
                        _ => &mut rules.property_names,
                    } = Some(schema);
                }
                "minProperties" => node.object.get_or_insert_default().min = subschema.count(keyword)?,
                "maxProperties" => node.object.get_or_insert_default().max = subschema.count(keyword)?,
                "dependentRequired" => {
                    for (name, value) in subschema.members(keyword)? {
                        let names = subschema.names(keyword, value)?;
                        node.object.get_or_insert_default().dependent_required.push((name.clone(), names));
                    }
                }
                "unevaluatedItems" if value != &Value::Bool(true) => {
                    return subschema.unsupported(keyword, "use `items` or `prefixItems`");
                }
                // these belong to others
                "then" | "else" | "minContains" | "maxContains" | "unevaluatedItems" => {}
                annotation => match check_annotation(annotation, value) {
                    Some(Ok(())) => {}
                    Some(Err(reason)) => return subschema.unsupported(keyword, reason),
                    None => return Err(UnsupportedKeyword::unknown(keyword, subschema.pointer)),
                },
            }
        }
        if let Some(rules) = node.object.as_deref_mut() {
            rules.settle_names();
            // without keywords in place, only those of the object evaluate its members
            if node.applicators.is_empty()
                && let Some(unevaluated) = rules.unevaluated_properties.take()
            {
                rules.additional_properties.get_or_insert(unevaluated);
            }
        }
        Ok(node)
    }

    /// The node of one of the schemas that a keyword lists by name.
    fn member(&mut self, subschema: &Subschema<'_>, keyword: &str, name: &str, schema: &Value) -> NodeId {
        self.node(&format!("{}/{keyword}/{}", subschema.pointer, walk::escape(name)), schema)
    }

    fn child(&mut self, subschema: &Subschema<'_>, keyword: &str, schema: &Value) -> NodeId {
        self.node(&format!("{}/{keyword}", subschema.pointer), schema)
    }

    fn optional_child(&mut self, subschema: &Subschema<'_>, keyword: &str) -> Option<NodeId> {
        subschema.map.get(keyword).map(|schema| self.child(subschema, keyword, schema))
    }

    fn schema_list(
        &mut self,
        subschema: &Subschema<'_>,
        keyword: &str,
        value: &Value,
    ) -> CompileResult<Vec<NodeId>> {
        let Value::Array(schemas) = value else {
            return subschema.unsupported(keyword, "its value is not an array of schemas");
        };
        let at = |index: usize| format!("{}/{keyword}/{index}", subschema.pointer);
        Ok(schemas.iter().enumerate().map(|(index, schema)| self.node(&at(index), schema)).collect())
    }

    fn reference(&mut self, subschema: &Subschema<'_>, value: &Value) -> CompileResult<NodeId> {
        let Value::String(reference) = value else {
            return subschema.unsupported("$ref", "its value is not a string");
        };
        let root_id = self.root.get("$id").and_then(Value::as_str).unwrap_or_default();
        let local = reference.strip_prefix(root_id).filter(|rest| rest.starts_with('#')).unwrap_or(reference);
        let root = self.root;
        let target = match walk::anchor(local) {
            Some(anchor) => self.anchors.get_or_insert_with(|| walk::anchors(root)).get(anchor).cloned(),
            None => walk::resolve(root, local),
        };
        let Some((pointer, schema)) = target else {
            return subschema.unsupported("$ref", format!("`{reference}` does not exist in this schema"));
        };
        if let Some(id) = self.ids.get(pointer.as_str()) {
            return Ok(*id);
        }
        let id = self.new_node(&pointer);
        self.referenced.push((id, pointer, schema));
        Ok(id)
    }

    /// Rejects schemas that apply themselves to the same value, so that validation would not terminate, or so many others
    /// within each other that it would need too much of the stack.
    fn reject_endless_references(&mut self) {
        let mut pointers = vec![""; self.nodes.len()];
        for (pointer, id) in &self.ids {
            if let Some(slot) = pointers.get_mut(*id) {
                *slot = pointer;
            }
        }
        let mut heights = vec![None; self.nodes.len()];
        for (id, pointer) in pointers.into_iter().enumerate() {
            if self.height(id, MAX_APPLIED, &mut heights).is_none() {
                self.errors.push(UnsupportedKeyword {
                    keyword: "$ref".to_owned(),
                    pointer: pointer.to_owned(),
                    reason: format!("it refers to itself, or leads through more than {MAX_APPLIED} schemas"),
                });
            }
        }
    }

    /// How many schemas a node applies to its value within each other, if these are not more than some. Of those that lead to
    /// more, the first that is asked for is told.
    fn height(&self, id: NodeId, most: usize, heights: &mut [Option<usize>]) -> Option<usize> {
        match heights.get(id) {
            Some(None) if most > 0 => {}
            Some(Some(height)) if *height <= most => return Some(*height),
            _ => return None,
        }
        let set = |heights: &mut [Option<usize>], height| {
            if let Some(slot) = heights.get_mut(id) {
                *slot = Some(height);
            }
        };
        // until it is known: whatever leads back to it is endless
        set(heights, usize::MAX);
        let applicators = self.nodes.get(id).map(|node| node.applicators.as_slice()).unwrap_or_default();
        let mut applied = applicators.iter().flat_map(Applicator::ids);
        let highest = applied
            .try_fold(0, |highest: usize, id| Some(highest.max(self.height(id, most - 1, heights)?)));
        let height = highest.map(|highest| highest + 1);
        set(heights, height.unwrap_or_default());
        height
    }
}

fn choices(subschema: &Subschema<'_>) -> CompileResult<Option<Choices>> {
    let constant = subschema.map.get("const");
    match (subschema.map.get("enum"), constant) {
        (None, None) => Ok(None),
        (None, Some(one)) => Ok(Some(Choices::new(vec![one.clone()], true))),
        (Some(Value::Array(several)), _) => {
            let fits = |value: &&Value| constant.is_none_or(|one| equality::equal(one, value));
            let values = several.iter().filter(fits).cloned().collect();
            Ok(Some(Choices::new(values, false)))
        }
        (Some(_), _) => subschema.unsupported("enum", "its value is not an array"),
    }
}
