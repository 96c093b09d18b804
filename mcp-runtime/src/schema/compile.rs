//! Turns a schema into nodes, once, and refuses keywords that would not be enforced.
//!
//! Called by `Validator::compile`.

use std::collections::HashMap;
use std::fmt;

use regex_lite::Regex;
use serde_json::{Map, Number, Value};

use super::node::{
    Applied, ArrayRules, Choices, Contains, Id, Node, NumberRules, ObjectRules, Property, TextRules, Types,
};
use super::{order, walk};

/// A keyword that this crate does not enforce, and so does not publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnsupportedKeyword {
    /// The keyword, as in `$dynamicRef`.
    pub(crate) keyword: String,
    /// The JSON pointer of the schema that has it; empty for the root.
    pub(crate) pointer: String,
    reason: String,
}

impl fmt::Display for UnsupportedKeyword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keyword, pointer, reason } = self;
        write!(f, "`{keyword}` at `#{pointer}` cannot be enforced: {reason}")
    }
}

impl std::error::Error for UnsupportedKeyword {}

/// Keywords that assert nothing; `format` is one of them in 2020-12.
const ANNOTATIONS: [&str; 18] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "$comment",
    "$schema",
    "$vocabulary",
    "$anchor",
    "$defs",
    "definitions",
    "$id",
];

type Result<T> = std::result::Result<T, UnsupportedKeyword>;

/// Compiles a root schema; the root is the first node.
pub(super) fn compile(root: &Value) -> Result<Vec<Node>> {
    let mut compiler = Compiler { root, nodes: Vec::new(), known: HashMap::new() };
    compiler.node("", root)?;
    compiler.refuse_endless_references()?;
    Ok(compiler.nodes)
}

struct Compiler<'a> {
    root: &'a Value,
    nodes: Vec<Node>,
    /// Nodes by JSON pointer, so that references share them and recursion ends.
    known: HashMap<String, Id>,
}

/// One schema while it is compiled.
struct Place<'s> {
    map: &'s Map<String, Value>,
    at: &'s str,
}

impl Place<'_> {
    fn refuse<T>(&self, keyword: &str, reason: impl Into<String>) -> Result<T> {
        Err(UnsupportedKeyword {
            keyword: keyword.to_owned(),
            pointer: self.at.to_owned(),
            reason: reason.into(),
        })
    }

    fn number(&self, keyword: &str) -> Result<Option<Number>> {
        match self.map.get(keyword) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.clone())),
            Some(_) => self.refuse(keyword, "its value is not a number"),
        }
    }

    fn count(&self, keyword: &str) -> Result<Option<u64>> {
        let Some(number) = self.number(keyword)? else { return Ok(None) };
        let whole = number.as_f64().filter(|float| float.fract() == 0.0 && *float >= 0.0);
        match number.as_u64().or(whole.map(|float| float as u64)) {
            Some(count) => Ok(Some(count)),
            None => self.refuse(keyword, "its value is not a count"),
        }
    }

    fn names(&self, keyword: &str, value: &Value) -> Result<Vec<String>> {
        let names =
            value.as_array().map(|list| list.iter().map(|name| name.as_str().map(str::to_owned)).collect());
        match names.flatten() {
            Some(names) => Ok(names),
            None => self.refuse(keyword, "its value is not a list of names"),
        }
    }

    fn members(&self, keyword: &str) -> Result<impl Iterator<Item = (&String, &Value)>> {
        match self.map.get(keyword) {
            None => Ok(None.into_iter().flatten()),
            Some(Value::Object(members)) => Ok(Some(members).into_iter().flatten()),
            Some(_) => self.refuse(keyword, "its value is not an object"),
        }
    }

    fn regex(&self, keyword: &str, pattern: &str) -> Result<Regex> {
        Regex::new(pattern).or_else(|error| self.refuse(keyword, format!("`{pattern}`: {error}")))
    }

    fn has(&self, keywords: &[&str]) -> bool {
        keywords.iter().any(|keyword| self.map.contains_key(*keyword))
    }
}

impl Compiler<'_> {
    fn node(&mut self, at: &str, schema: &Value) -> Result<Id> {
        if let Some(id) = self.known.get(at) {
            return Ok(*id);
        }
        let id = self.nodes.len();
        self.nodes.push(Node::default());
        self.known.insert(at.to_owned(), id);
        let node = match schema {
            Value::Bool(allowed) => Node { never: !allowed, ..Node::default() },
            Value::Object(map) => self.object(&Place { map, at })?,
            _ => {
                let reason = "a schema is an object or a boolean".to_owned();
                return Err(UnsupportedKeyword { keyword: String::new(), pointer: at.to_owned(), reason });
            }
        };
        if let Some(slot) = self.nodes.get_mut(id) {
            *slot = node;
        }
        Ok(id)
    }

    fn object(&mut self, place: &Place<'_>) -> Result<Node> {
        let mut node = Node::default();
        for (keyword, value) in place.map {
            match keyword.as_str() {
                "$id" if !place.at.is_empty() => {
                    return place.refuse(keyword, "only the root schema may have one");
                }
                "type" => match Types::parse(value) {
                    Some(types) => node.types = Some(types),
                    None => return place.refuse(keyword, format!("{value} names no JSON type")),
                },
                "$ref" => node.applied.push(Applied::Ref(self.reference(place, value)?)),
                "allOf" => node.applied.push(Applied::AllOf(self.list(place, keyword, value)?)),
                "anyOf" => node.applied.push(Applied::AnyOf(self.list(place, keyword, value)?)),
                "oneOf" => node.applied.push(Applied::OneOf(self.list(place, keyword, value)?)),
                "not" => node.applied.push(Applied::Not(self.child(place, keyword, value)?)),
                "if" => {
                    let test = self.child(place, keyword, value)?;
                    let then = self.optional(place, "then")?;
                    let otherwise = self.optional(place, "else")?;
                    node.applied.push(Applied::If { test, then, otherwise });
                }
                "dependentSchemas" => {
                    for (key, schema) in place.members(keyword)? {
                        let at = format!("{}/{keyword}/{}", place.at, walk::escape(key));
                        let schema = self.node(&at, schema)?;
                        node.applied.push(Applied::IfKey(key.clone(), schema));
                    }
                }
                "unevaluatedItems" if value != &Value::Bool(true) => {
                    return place.refuse(keyword, "use `items` or `prefixItems`");
                }
                known if is_read_elsewhere(known) => {}
                _ => return place.refuse(keyword, "it is no keyword that this crate knows"),
            }
        }
        node.choices = choices(place)?;
        node.number = numbers(place)?.map(Box::new);
        node.text = texts(place)?.map(Box::new);
        node.array = self.arrays(place)?.map(Box::new);
        node.object = self.objects(place)?.map(Box::new);
        Ok(node)
    }

    fn child(&mut self, place: &Place<'_>, keyword: &str, schema: &Value) -> Result<Id> {
        self.node(&format!("{}/{keyword}", place.at), schema)
    }

    fn optional(&mut self, place: &Place<'_>, keyword: &str) -> Result<Option<Id>> {
        place.map.get(keyword).map(|schema| self.child(place, keyword, schema)).transpose()
    }

    fn list(&mut self, place: &Place<'_>, keyword: &str, value: &Value) -> Result<Vec<Id>> {
        let Value::Array(schemas) = value else {
            return place.refuse(keyword, "its value is not an array of schemas");
        };
        let at = |index: usize| format!("{}/{keyword}/{index}", place.at);
        schemas.iter().enumerate().map(|(index, schema)| self.node(&at(index), schema)).collect()
    }

    fn reference(&mut self, place: &Place<'_>, value: &Value) -> Result<Id> {
        let Value::String(reference) = value else {
            return place.refuse("$ref", "its value is not a string");
        };
        let own = self.root.get("$id").and_then(Value::as_str).unwrap_or_default();
        let local = reference.strip_prefix(own).filter(|rest| rest.starts_with('#')).unwrap_or(reference);
        let root = self.root;
        match walk::resolve(root, local) {
            Some((pointer, schema)) => self.node(&pointer, schema),
            None => place.refuse("$ref", format!("`{reference}` is nowhere in this schema")),
        }
    }

    fn arrays(&mut self, place: &Place<'_>) -> Result<Option<ArrayRules>> {
        if !place.has(&["minItems", "maxItems", "uniqueItems", "prefixItems", "items", "contains"]) {
            return Ok(None);
        }
        let mut rules = ArrayRules {
            least: place.count("minItems")?,
            most: place.count("maxItems")?,
            unique: place.map.get("uniqueItems") == Some(&Value::Bool(true)),
            items: self.optional(place, "items")?,
            ..ArrayRules::default()
        };
        if let Some(value) = place.map.get("prefixItems") {
            rules.prefix = self.list(place, "prefixItems", value)?;
        }
        if let Some(schema) = self.optional(place, "contains")? {
            let least = place.count("minContains")?.unwrap_or(1);
            rules.contains = Some(Contains { schema, least, most: place.count("maxContains")? });
        }
        Ok(Some(rules))
    }

    fn objects(&mut self, place: &Place<'_>) -> Result<Option<ObjectRules>> {
        const KEYWORDS: [&str; 9] = [
            "properties",
            "required",
            "patternProperties",
            "additionalProperties",
            "unevaluatedProperties",
            "propertyNames",
            "minProperties",
            "maxProperties",
            "dependentRequired",
        ];
        if !place.has(&KEYWORDS) {
            return Ok(None);
        }
        let mut rules = ObjectRules {
            additional: self.optional(place, "additionalProperties")?,
            unevaluated: self.optional(place, "unevaluatedProperties")?,
            names: self.optional(place, "propertyNames")?,
            least: place.count("minProperties")?,
            most: place.count("maxProperties")?,
            ..ObjectRules::default()
        };
        if let Some(value) = place.map.get("required") {
            rules.required = place.names("required", value)?;
        }
        for (name, schema) in place.members("properties")? {
            let schema = self.node(&format!("{}/properties/{}", place.at, walk::escape(name)), schema)?;
            let required = rules.required.contains(name);
            rules.properties.push(Property { name: name.clone(), schema, required });
        }
        rules.properties.sort_by(|a, b| a.name.cmp(&b.name));
        let mut elsewhere = std::mem::take(&mut rules.required);
        elsewhere.retain(|name| rules.property(name).is_none());
        rules.required = elsewhere;
        for (pattern, schema) in place.members("patternProperties")? {
            let regex = place.regex("patternProperties", pattern)?;
            let at = format!("{}/patternProperties/{}", place.at, walk::escape(pattern));
            rules.patterns.push((regex, self.node(&at, schema)?));
        }
        for (name, value) in place.members("dependentRequired")? {
            rules.dependent.push((name.clone(), place.names("dependentRequired", value)?));
        }
        Ok(Some(rules))
    }

    /// Refuses schemas that apply themselves to the same value, which no value could be checked against.
    fn refuse_endless_references(&self) -> Result<()> {
        let mut done = vec![false; self.nodes.len()];
        let mut open = vec![false; self.nodes.len()];
        for start in 0..self.nodes.len() {
            if self.applies_itself(start, &mut open, &mut done) {
                let at = self.known.iter().find(|(_, id)| **id == start).map(|(at, _)| at.clone());
                return Err(UnsupportedKeyword {
                    keyword: "$ref".to_owned(),
                    pointer: at.unwrap_or_default(),
                    reason: "it leads back to itself".to_owned(),
                });
            }
        }
        Ok(())
    }

    fn applies_itself(&self, id: Id, open: &mut [bool], done: &mut [bool]) -> bool {
        if done.get(id).copied().unwrap_or(true) {
            return false;
        }
        if let Some(mark) = open.get_mut(id)
            && std::mem::replace(mark, true)
        {
            return true;
        }
        let mut next = Vec::new();
        for applied in self.nodes.get(id).map(|node| node.applied.as_slice()).unwrap_or_default() {
            match applied {
                Applied::Ref(one) | Applied::Not(one) | Applied::IfKey(_, one) => next.push(*one),
                Applied::AllOf(several) | Applied::AnyOf(several) | Applied::OneOf(several) => {
                    next.extend(several);
                }
                Applied::If { test, then, otherwise } => {
                    next.push(*test);
                    next.extend(then.iter().chain(otherwise));
                }
            }
        }
        let endless = next.into_iter().any(|id| self.applies_itself(id, open, done));
        if let (Some(mark), Some(finished)) = (open.get_mut(id), done.get_mut(id)) {
            *mark = false;
            *finished = true;
        }
        endless
    }
}

fn choices(place: &Place<'_>) -> Result<Option<Choices>> {
    let constant = place.map.get("const");
    match (place.map.get("enum"), constant) {
        (None, None) => Ok(None),
        (None, Some(one)) => Ok(Some(Choices { values: vec![one.clone()], is_const: true })),
        (Some(Value::Array(several)), _) => {
            let fits = |value: &&Value| constant.is_none_or(|one| order::equal(one, value));
            let values = several.iter().filter(fits).cloned().collect();
            Ok(Some(Choices { values, is_const: false }))
        }
        (Some(_), _) => place.refuse("enum", "its value is not an array"),
    }
}

fn numbers(place: &Place<'_>) -> Result<Option<NumberRules>> {
    if !place.has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
        return Ok(None);
    }
    let multiple_of = place.number("multipleOf")?;
    if multiple_of.as_ref().and_then(Number::as_f64).is_some_and(|by| by <= 0.0) {
        return place.refuse("multipleOf", "its value is not above 0");
    }
    Ok(Some(NumberRules {
        minimum: place.number("minimum")?,
        maximum: place.number("maximum")?,
        above: place.number("exclusiveMinimum")?,
        below: place.number("exclusiveMaximum")?,
        multiple_of,
    }))
}

fn texts(place: &Place<'_>) -> Result<Option<TextRules>> {
    if !place.has(&["minLength", "maxLength", "pattern"]) {
        return Ok(None);
    }
    let pattern = match place.map.get("pattern") {
        None => None,
        Some(Value::String(pattern)) => Some(place.regex("pattern", pattern)?),
        Some(_) => return place.refuse("pattern", "its value is not a string"),
    };
    Ok(Some(TextRules { least: place.count("minLength")?, most: place.count("maxLength")?, pattern }))
}

/// Keywords that other functions of this file look up, or that assert nothing.
fn is_read_elsewhere(keyword: &str) -> bool {
    const LOOKED_UP: [&str; 32] = [
        "then",
        "else",
        "enum",
        "const",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "uniqueItems",
        "prefixItems",
        "items",
        "contains",
        "minContains",
        "maxContains",
        "properties",
        "required",
        "patternProperties",
        "additionalProperties",
        "unevaluatedProperties",
        "unevaluatedItems",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "dependentRequired",
        "dependentSchemas",
        "if",
    ];
    LOOKED_UP.contains(&keyword) || ANNOTATIONS.contains(&keyword) || keyword.starts_with("x-")
}
