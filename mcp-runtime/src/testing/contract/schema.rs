//! The changes between two JSON Schemas. Accepting less breaks the senders of a value, and returning more breaks its
//! readers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    ChangeClass::{self, Additive, Breaking, Cosmetic, Routing},
    compare::ItemChangeList,
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Clients write it.
    Input,
    /// Clients read it.
    Output,
}

impl Direction {
    /// The class of accepting, or returning, fewer values.
    fn narrower(self) -> ChangeClass {
        if self == Self::Input { Breaking } else { Additive }
    }

    fn wider(self) -> ChangeClass {
        if self == Self::Input { Additive } else { Breaking }
    }
}

/// Schemas that are nested deeper are compared as a whole.
const MAX_DEPTH: usize = 32;

/// Keywords that no value is checked by.
const WORDS: [(&str, ChangeClass); 9] = [
    ("description", Routing),
    ("default", Routing),
    ("deprecated", Routing),
    ("title", Cosmetic),
    ("examples", Cosmetic),
    ("format", Cosmetic),
    ("writeOnly", Cosmetic),
    ("readOnly", Cosmetic),
    ("$comment", Cosmetic),
];

/// Keywords that are numbers, and whether a larger one accepts more.
const BOUNDS: [(&str, bool); 10] = [
    ("minimum", false),
    ("exclusiveMinimum", false),
    ("maximum", true),
    ("exclusiveMaximum", true),
    ("minLength", false),
    ("maxLength", true),
    ("minItems", false),
    ("maxItems", true),
    ("minProperties", false),
    ("maxProperties", true),
];

/// Other keywords that make a schema accept less.
const RULES: [&str; 3] = ["pattern", "multipleOf", "uniqueItems"];

pub(super) fn compare_schemas(
    old: &Value,
    new: &Value,
    direction: Direction,
    path: &str,
    changes: &mut ItemChangeList<'_>,
) {
    let mut comparison = Comparison { old, new, direction, seen: BTreeSet::new(), depth: 0 };
    comparison.compare(old, new, path, changes);
}

struct Comparison<'s> {
    old: &'s Value,
    new: &'s Value,
    direction: Direction,
    /// The definitions that are compared already: types may be recursive.
    seen: BTreeSet<(String, String)>,
    depth: usize,
}

impl<'s> Comparison<'s> {
    fn compare(&mut self, old: &'s Value, new: &'s Value, path: &str, changes: &mut ItemChangeList<'_>) {
        let references = (reference(old), reference(new));
        if let (Some(was), Some(is)) = references
            && !self.seen.insert((was.to_owned(), is.to_owned()))
        {
            return self.compare_words(old, new, path, changes);
        }
        if references != (None, None) {
            self.compare_words(old, new, path, changes);
        }
        let (old, new) = (resolve(self.old, old), resolve(self.new, new));
        if old == new && references == (None, None) {
            return;
        }
        if self.depth > MAX_DEPTH {
            if old != new {
                changes.add(Breaking, at(path, "has changed deep inside"));
            }
            return;
        }
        self.depth += 1;
        let (was, is) = (alternatives(self.old, old), alternatives(self.new, new));
        match (was.as_slice(), is.as_slice()) {
            ([one], [other]) => {
                if !std::ptr::eq(*one, old) || !std::ptr::eq(*other, new) {
                    self.compare_words(old, new, path, changes);
                }
                let (null, nullable) = (accepts_null(self.old, old), accepts_null(self.new, new));
                self.compare_one(one, other, (null, nullable), path, changes);
            }
            _ => self.compare_alternatives((old, &was), (new, &is), path, changes),
        }
        self.depth -= 1;
    }

    /// Compares the texts that models and people read.
    fn compare_words(&self, old: &Value, new: &Value, path: &str, changes: &mut ItemChangeList<'_>) {
        for (keyword, class) in WORDS {
            if old.get(keyword) != new.get(keyword) {
                changes.add(class, at(path, &format!("its {} has changed", keyword.trim_start_matches('$'))));
            }
        }
    }

    fn compare_alternatives(
        &mut self,
        (old, was): (&'s Value, &[&'s Value]),
        (new, is): (&'s Value, &[&'s Value]),
        path: &str,
        changes: &mut ItemChangeList<'_>,
    ) {
        self.compare_words(old, new, path, changes);
        let (mut gone, mut added) = (was.to_vec(), is.to_vec());
        let same: [fn(&Value, &Value) -> bool; 3] = [
            |old, new| old == new,
            |old, new| tag(old).is_some() && tag(old) == tag(new),
            |old, new| tag(old).is_none() && tag(new).is_none() && types(old) == types(new),
        ];
        let mut pairs = Vec::new();
        for same in same {
            gone.retain(|old| match added.iter().position(|new| same(old, new)) {
                Some(at) => {
                    pairs.push((*old, added.remove(at)));
                    false
                }
                None => true,
            });
        }
        for (old, new) in pairs {
            let own = tag(old).map_or_else(|| path.to_owned(), |tag| format!("{path}<{tag}>"));
            self.compare(old, new, &own, changes);
        }
        for old in gone {
            changes.add(
                self.direction.narrower(),
                at(path, &format!("{} is not one of its forms any more", form(old))),
            );
        }
        for new in added {
            changes.add(self.direction.wider(), at(path, &format!("{} is one of its forms now", form(new))));
        }
        self.compare_null(accepts_null(self.old, old), accepts_null(self.new, new), path, changes);
    }

    fn compare_null(&self, was: bool, is: bool, path: &str, changes: &mut ItemChangeList<'_>) {
        match (was, is) {
            (true, false) => changes.add(self.direction.narrower(), at(path, "is not null any more")),
            (false, true) => changes.add(self.direction.wider(), at(path, "may be null now")),
            _ => {}
        }
    }

    fn compare_one(
        &mut self,
        old: &'s Value,
        new: &'s Value,
        (null, nullable): (bool, bool),
        path: &str,
        changes: &mut ItemChangeList<'_>,
    ) {
        let (narrower, wider) = (self.direction.narrower(), self.direction.wider());
        self.compare_words(old, new, path, changes);
        // a schema of everything accepts null as well, which its type says already
        let (was, is) = (types(old), types(new));
        if was.is_some() == is.is_some() {
            self.compare_null(null, nullable, path, changes);
        }
        match (&was, &is) {
            (None, Some(is)) => changes.add(narrower, at(path, &format!("is only {} now", listed(is)))),
            (Some(was), None) => {
                changes.add(wider, at(path, &format!("was {}, and is anything", listed(was))));
            }
            (Some(was), Some(is)) => {
                let has = |types: &BTreeSet<String>, name: &str| {
                    types.contains(name) || (name == "integer" && types.contains("number"))
                };
                let (is_narrower, is_wider) =
                    (was.iter().any(|name| !has(is, name)), is.iter().any(|name| !has(was, name)));
                if is_narrower && is_wider {
                    // of the two, one breaks in either direction
                    changes.add(Breaking, at(path, &format!("was {}, and is {}", listed(was), listed(is))));
                } else if is_narrower {
                    changes.add(narrower, at(path, &format!("was {}, and is {}", listed(was), listed(is))));
                } else if is_wider {
                    changes.add(wider, at(path, &format!("may be {}, and was {}", listed(is), listed(was))));
                }
            }
            (None, None) => {}
        }
        match (values(old), values(new)) {
            (None, Some(_)) => changes.add(narrower, at(path, "has only certain values now")),
            (Some(_), None) => changes.add(wider, at(path, "has more than certain values now")),
            (Some(was), Some(is)) => {
                for value in was.difference(&is) {
                    changes.add(narrower, at(path, &format!("the value {value} is gone")));
                }
                for value in is.difference(&was) {
                    changes.add(wider, at(path, &format!("the value {value} is new")));
                }
            }
            (None, None) => {}
        }
        self.compare_bounds(old, new, path, changes);
        self.compare_members(old, new, path, changes);
        match (old.get("items"), new.get("items")) {
            (Some(old), Some(new)) => self.compare(old, new, &format!("{path}[]"), changes),
            (None, Some(new)) if *new != Value::Bool(true) => {
                changes.add(narrower, at(path, "its items have a type now"));
            }
            (Some(old), None) if *old != Value::Bool(true) => {
                changes.add(wider, at(path, "its items may be anything now"));
            }
            _ => {}
        }
        self.compare_others(old, new, path, changes);
    }

    fn compare_bounds(&self, old: &Value, new: &Value, path: &str, changes: &mut ItemChangeList<'_>) {
        let (narrower, wider) = (self.direction.narrower(), self.direction.wider());
        for (keyword, is_upper) in BOUNDS {
            let number = |schema: &Value| schema.get(keyword).and_then(Value::as_f64);
            let class = match (number(old), number(new)) {
                (Some(was), Some(is)) if was == is => continue,
                (None, None) => continue,
                (None, Some(_)) => narrower,
                (Some(_), None) => wider,
                (Some(was), Some(is)) if (is > was) == is_upper => wider,
                (Some(_), Some(_)) => narrower,
            };
            let text = |value: Option<&Value>| value.map_or("not given".to_owned(), Value::to_string);
            let (was, is) = (text(old.get(keyword)), text(new.get(keyword)));
            changes.add(class, at(path, &format!("its `{keyword}` was {was}, and is {is}")));
        }
        for keyword in RULES {
            let given = |schema: &Value| schema.get(keyword).filter(|value| **value != false).cloned();
            let class = match (given(old), given(new)) {
                (was, is) if was == is => continue,
                (None, _) => narrower,
                (_, None) => wider,
                // which of them accepts more is not known
                _ => Breaking,
            };
            changes.add(class, at(path, &format!("its `{keyword}` has changed")));
        }
    }

    fn compare_members(
        &mut self,
        old: &'s Value,
        new: &'s Value,
        path: &str,
        changes: &mut ItemChangeList<'_>,
    ) {
        let (narrower, wider) = (self.direction.narrower(), self.direction.wider());
        let requires = |schema: &Value, name: &str| {
            schema["required"]
                .as_array()
                .is_some_and(|required| required.iter().any(|required| required == name))
        };
        let members =
            |schema: &'s Value| schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let inside = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        for (name, was) in members(old) {
            let path = inside(name);
            let Some(is) = new["properties"].get(name) else {
                changes.add(Breaking, at(&path, "is gone"));
                continue;
            };
            match (requires(old, name), requires(new, name)) {
                (false, true) => changes.add(narrower, at(&path, "is required now")),
                (true, false) => changes.add(wider, at(&path, "is optional now")),
                _ => {}
            }
            self.compare(was, is, &path, changes);
        }
        for (name, _) in members(new).filter(|(name, _)| old["properties"].get(name.as_str()).is_none()) {
            let class = match (self.direction, requires(new, name)) {
                (Direction::Input, true) => Breaking,
                _ => Additive,
            };
            let words = if class == Breaking { "is new, and required" } else { "is new" };
            changes.add(class, at(&inside(name), words));
        }
        // those that have no schema
        let unnamed = |schema: &'s Value, name: &str| {
            schema["properties"].get(name).is_none() && !requires(schema, name)
        };
        let required = |schema: &'s Value| schema["required"].as_array().into_iter().flatten();
        let is_known =
            |name: &str| old["properties"].get(name).is_some() || new["properties"].get(name).is_some();
        for (from, to, class, text) in
            [(old, new, wider, "is optional now"), (new, old, narrower, "is required now")]
        {
            for name in required(from).filter_map(Value::as_str) {
                if unnamed(to, name) && !is_known(name) {
                    changes.add(class, at(&inside(name), text));
                }
            }
        }
        let others = |schema: &'s Value| schema.get("additionalProperties").filter(|others| **others != true);
        match (others(old), others(new)) {
            (None, Some(_)) => changes.add(narrower, at(path, "takes fewer other members now")),
            (Some(_), None) => changes.add(wider, at(path, "takes any other members now")),
            (Some(old), Some(new)) if old != new => match (old, new) {
                (Value::Bool(false), _) => changes.add(wider, at(path, "takes other members now")),
                (_, Value::Bool(false)) => changes.add(narrower, at(path, "takes no other members any more")),
                _ => self.compare(old, new, &format!("{path}.*"), changes),
            },
            _ => {}
        }
    }

    /// Keywords that are not compared by what they mean.
    fn compare_others(&self, old: &Value, new: &Value, path: &str, changes: &mut ItemChangeList<'_>) {
        let keywords = [old, new].into_iter().filter_map(Value::as_object).flat_map(serde_json::Map::keys);
        let others: BTreeSet<&String> = keywords.filter(|keyword| !is_compared(keyword)).collect();
        for keyword in others {
            if old.get(keyword) == new.get(keyword) {
                continue;
            }
            let class = match (keyword.as_str(), old.get(keyword), new.get(keyword)) {
                // a header that need not be sent
                ("x-mcp-header", _, None) => Additive,
                ("x-mcp-header" | "x-env" | "x-flag", ..) => Breaking,
                (own, ..) if own.starts_with("x-") => Cosmetic,
                _ => Breaking,
            };
            changes.add(class, at(path, &format!("its `{keyword}` has changed")));
        }
    }
}

/// Whether changes of a keyword are found without comparing it as a whole, or mean nothing.
fn is_compared(keyword: &str) -> bool {
    matches!(
        keyword,
        "type"
            | "enum"
            | "const"
            | "anyOf"
            | "oneOf"
            | "properties"
            | "required"
            | "additionalProperties"
            | "items"
            | "$ref"
            | "$defs"
            | "definitions"
            | "$schema"
            | "$id"
            | "$anchor"
            | "enumNames"
            | "discriminator"
            | "contentEncoding"
            | "contentMediaType"
            | "example"
            | "nullable"
    ) || RULES.contains(&keyword)
        || WORDS.iter().any(|(known, _)| *known == keyword)
        || BOUNDS.iter().any(|(known, _)| *known == keyword)
}

/// A place in an item, and what has changed there.
fn at(path: &str, text: &str) -> String {
    if path.is_empty() { text.to_owned() } else { format!("`{path}`: {text}") }
}

fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref").and_then(Value::as_str)
}

/// The schema that another one refers to in its root.
fn resolve<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        let target = reference(schema).and_then(|text| root.pointer(text.strip_prefix('#')?));
        match target {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

fn union(schema: &Value) -> Option<&Vec<Value>> {
    ["anyOf", "oneOf"].into_iter().find_map(|keyword| schema.get(keyword)?.as_array())
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|name| name == "null")
}

/// The forms of a schema other than null.
fn alternatives<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Value> {
    match union(schema) {
        Some(all) => all.iter().map(|one| resolve(root, one)).filter(|one| !is_null(one)).collect(),
        None => vec![schema],
    }
}

fn accepts_null(root: &Value, schema: &Value) -> bool {
    match union(schema) {
        Some(all) => all.iter().any(|one| accepts_null(root, resolve(root, one))),
        None => match schema.get("type") {
            Some(Value::Array(names)) => names.iter().any(|name| name == "null"),
            Some(name) => name == "null",
            None => false,
        },
    }
}

/// The types other than null; `None` without a restriction.
fn types(schema: &Value) -> Option<BTreeSet<String>> {
    let names = match schema.get("type")? {
        Value::Array(names) => names.clone(),
        name => vec![name.clone()],
    };
    Some(names.iter().filter_map(Value::as_str).filter(|name| *name != "null").map(str::to_owned).collect())
}

/// The only values other than null, as JSON.
fn values(schema: &Value) -> Option<BTreeSet<String>> {
    if let Some(value) = schema.get("const") {
        return Some(BTreeSet::from([value.to_string()]));
    }
    let all = schema.get("enum")?.as_array()?;
    Some(all.iter().filter(|value| !value.is_null()).map(Value::to_string).collect())
}

/// The mark of one form of a union: its constant, or that of one of its members.
fn tag(schema: &Value) -> Option<String> {
    let constant = |schema: &Value| schema.get("const").map(Value::to_string);
    let of_member = || {
        let members = schema.get("properties")?.as_object()?;
        members.values().find_map(constant)
    };
    constant(schema).or_else(of_member)
}

fn form(schema: &Value) -> String {
    match (tag(schema), types(schema)) {
        (Some(tag), _) => tag,
        (None, Some(types)) => listed(&types),
        (None, None) => "a form".to_owned(),
    }
}

fn listed(types: &BTreeSet<String>) -> String {
    types.iter().map(String::as_str).collect::<Vec<_>>().join(" or ")
}
