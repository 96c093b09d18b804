//! Types that contain themselves, and alternatives inside of alternatives: serde reads them into a buffer first, and an
//! untagged enum copies what it tries.

use std::collections::HashMap;

use mcp_runtime::{
    prelude::*,
    tool::{ToolCall, ToolDef},
};
use serde_json::{Value, json};

use super::requests::{Outcome, Request, copies, list, members};

/// A number, or lists of them at any depth
#[mcp_type]
#[serde(untagged)]
pub(crate) enum Lists {
    One(u32),
    Many(Vec<Lists>),
}

/// Differs in what comes last
#[mcp_type]
#[serde(untagged)]
pub(crate) enum Late {
    One { a: Box<Late>, one: u32 },
    Two { a: Box<Late>, two: u32 },
    Leaf(u32),
}

/// As filters of databases are
#[mcp_type]
#[serde(untagged)]
pub(crate) enum Filter {
    And { and: Vec<Filter> },
    Or { or: Vec<Filter> },
    Not { not: Box<Filter> },
    Is { field: String, value: Value },
}

#[mcp_type]
#[serde(tag = "kind")]
pub(crate) enum Internal {
    Node { children: Vec<Internal> },
    Leaf { size: u32 },
}

#[mcp_type]
#[serde(tag = "kind", content = "of")]
pub(crate) enum Adjacent {
    Node(Vec<Adjacent>),
    Leaf(u32),
}

#[mcp_type]
pub(crate) struct Base {
    name: Option<String>,
    children: Option<Vec<Flat>>,
}

#[mcp_type]
pub(crate) struct Flat {
    id: Option<u32>,
    #[serde(flatten)]
    base: Base,
}

#[mcp_type]
pub(crate) struct Open {
    id: Option<u32>,
    #[serde(flatten)]
    other: HashMap<String, Open>,
}

#[mcp_type]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    One(Part),
    Many(Vec<Part>),
}

#[mcp_type]
#[serde(untagged)]
pub(crate) enum Part {
    Text { text: String },
    Sum { sum: Option<Vec<u32>>, of: String },
    Numbers { sum: Vec<u32> },
}

/// Takes what contains itself
#[mcp_tool]
pub(crate) fn nest(
    slip: Option<u32>,
    lists: Option<Lists>,
    boxed: Option<Vec<Option<Box<Lists>>>>,
    late: Option<Late>,
    filter: Option<Filter>,
    internal: Option<Internal>,
    adjacent: Option<Adjacent>,
    flat: Option<Flat>,
    open: Option<Open>,
    parts: Option<Vec<OneOrMany>>,
) -> bool {
    let _ = (slip, lists, boxed, late, filter, internal, adjacent, flat, open, parts);
    true
}

/// Alternatives that contain themselves, in a schema written by hand
pub(crate) fn branching() -> ToolDef {
    ToolDef::builder("branching")
        .input_schema(json!({
            "type": "object",
            "properties": { "tree": { "$ref": "#/$defs/Tree" }, "slip": { "type": "integer" } },
            "$defs": { "Tree": { "oneOf": [
                { "type": "integer" },
                { "type": "array", "items": { "$ref": "#/$defs/Tree" } },
                { "type": "object", "properties": { "a": { "$ref": "#/$defs/Tree" } }, "required": ["a", "one"] },
                { "type": "object", "properties": { "a": { "$ref": "#/$defs/Tree" } }, "required": ["a", "two"] }
            ] } }
        }))
        .handler(|_: ToolCall| async { "" })
}

pub(crate) fn requests(bytes: usize) -> Vec<Request> {
    use Outcome::{Bounded, Result, ToolError};
    let nest = |name, arguments: String, outcome| Request::call(name, "nest", &arguments, outcome);
    let branching = |name, arguments: String, outcome| Request::call(name, "branching", &arguments, outcome);
    let wrap = |open: &str, inner: &str, close: &str, depth: usize| {
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    };
    let deep = |open: &str, inner: &str, close: &str, depth: usize| {
        let one = wrap(open, inner, close, depth);
        list(|_| one.clone(), bytes)
    };
    let ones = list(|_| "1".into(), bytes);
    let with_slip = |arguments: String| format!(r#""slip":"1",{arguments}"#);
    let leaf = r#"{"kind":"Leaf","size":1}"#;
    let (internal, adjacent) = (r#"{"kind":"Node","children":["#, r#"{"kind":"Node","of":["#);
    let is = r#"{"field":"a","value":1}"#;
    let few = bytes.min(280 << 10);
    vec![
        nest("an untagged enum of one list", format!(r#""lists":[{ones}]"#), Result),
        nest(
            "an untagged enum of 3 nested lists",
            format!(r#""lists":{}"#, wrap("[", &ones, "]", 3)),
            Bounded,
        ),
        nest(
            "an untagged enum of 60 nested lists",
            format!(r#""lists":{}"#, wrap("[", &list(|_| "1".into(), few), "]", 60)),
            ToolError,
        ),
        nest(
            "untagged enums of 60 nested lists",
            format!(r#""lists":[{}]"#, deep("[", "1", "]", 60)),
            ToolError,
        ),
        nest(
            "untagged enums of 10 nested lists",
            format!(r#""lists":[{}]"#, deep("[", "1", "]", 10)),
            if bytes > 32 << 10 { ToolError } else { Result },
        ),
        nest("untagged enums in `Option` and `Box`", copies("boxed", "[[1]]", bytes), Bounded),
        nest("untagged enums and a slip", with_slip(copies("boxed", "[[1]]", bytes)), Bounded),
        nest("untagged enums of no variant, nested", copies("boxed", r#"[["a"]]"#, bytes), ToolError),
        nest(
            "an untagged enum that differs late",
            format!(r#""late":{}"#, wrap(r#"{"a":"#, "1", r#","two":1}"#, 22)),
            ToolError,
        ),
        nest(
            "an untagged enum of no variant that differs late",
            format!(r#""late":{}"#, wrap(r#"{"a":"#, "1", "}", 60)),
            ToolError,
        ),
        nest("filters", format!(r#""filter":{{"and":[{}]}}"#, list(|_| is.into(), bytes)), Bounded),
        nest(
            "filters of 5 levels",
            format!(r#""filter":{{"and":[{}]}}"#, deep(r#"{"or":["#, is, "]}", 4)),
            Bounded,
        ),
        nest(
            "internally tagged enums",
            format!(r#""internal":{internal}{}]}}"#, list(|_| leaf.into(), bytes)),
            Result,
        ),
        nest(
            "internally tagged enums, nested",
            format!(r#""internal":{internal}{}]}}"#, deep(internal, leaf, "]}", 50)),
            Result,
        ),
        nest(
            "adjacently tagged enums, nested",
            format!(r#""adjacent":{adjacent}{}]}}"#, deep(adjacent, r#"{"kind":"Leaf","of":1}"#, "]}", 50)),
            Result,
        ),
        nest(
            "adjacently tagged enums with the tag last",
            format!(
                r#""adjacent":{{"of":[{}],"kind":"Node"}}"#,
                deep(r#"{"of":["#, r#"{"of":1,"kind":"Leaf"}"#, r#"],"kind":"Node"}"#, 50)
            ),
            Result,
        ),
        nest(
            "flattened structs, nested",
            format!(r#""flat":{{"children":[{}]}}"#, deep(r#"{"children":["#, "{}", "]}", 50)),
            Result,
        ),
        nest("flattened maps", members("open", |n| format!(r#""k{n}":{{}}"#), bytes), Result),
        nest(
            "flattened maps, nested",
            members("open", |n| format!(r#""k{n}":{}"#, wrap(r#"{"a":"#, "{}", "}", 50)), bytes),
            Bounded,
        ),
        nest("alternatives of alternatives", copies("parts", r#"{"sum":[1,2,3]}"#, bytes), Bounded),
        nest(
            "alternatives of alternatives with a long list",
            format!(r#""parts":[{{"sum":[{ones}]}}]"#),
            Bounded,
        ),
        branching("a schema of 60 nested lists", format!(r#""tree":{}"#, wrap("[", &ones, "]", 60)), Result),
        branching(
            "a schema of 60 nested lists and a slip",
            with_slip(format!(r#""tree":{}"#, wrap("[", &ones, "]", 60))),
            Result,
        ),
        branching(
            "schemas that differ late",
            format!(r#""tree":[{}]"#, deep(r#"{"a":"#, "1", r#","two":1}"#, 30)),
            Result,
        ),
        branching(
            "schemas of no alternative that differ late",
            format!(r#""tree":[{}]"#, deep(r#"{"a":"#, "1", "}", 30)),
            ToolError,
        ),
    ]
}
