//! The server whose requests are measured: an item of every kind, and parameters of the types that cost most.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use mcp_runtime::{
    ServerBuilder,
    prelude::*,
    tool::{ToolCall, ToolDef},
};
use serde_json::{Value, json};

use super::{answers, api, keys, nested, texts};

#[mcp_tool]
pub(super) fn echo(text: String) -> String {
    text
}

#[mcp_type]
#[derive(PartialEq, Eq, Hash)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Shape {
    Circle { radius: u32 },
    Square { side: u32 },
    Oblong { width: u32, height: u32 },
}

#[mcp_type]
struct Row {
    #[schemars(range(min = 1, max = 9))]
    limit: u32,
    #[schemars(regex(pattern = "^(a?){32}a{32}$"))]
    text: Option<String>,
}

/// Takes everything
#[mcp_tool]
fn take(
    limit: Option<u32>,
    maps: Option<Vec<BTreeMap<u32, u32>>>,
    map: Option<BTreeMap<String, u32>>,
    rows: Option<Vec<Row>>,
    numbers: Option<Vec<u32>>,
    any: Option<Value>,
    shapes: Option<Vec<Shape>>,
    set: Option<HashSet<Shape>>,
    #[mcp(pattern = "^(a?){32}a{32}$")] text: Option<String>,
    #[mcp(length(..=10), one_of("alpha", "beta"))] choice: Option<String>,
    ids: Option<Vec<uuid::Uuid>>,
) -> bool {
    let _ = (limit, maps, map, rows, numbers, any, shapes, set, text, choice, ids);
    true
}

/// Refers to itself, with a rule that its type does not enforce
#[mcp_type]
struct Tree {
    #[schemars(range(max = 9))]
    depth: Option<u32>,
    #[serde(default)]
    children: Vec<Tree>,
}

/// Tried one after the other
#[mcp_type]
#[serde(untagged)]
enum Amount {
    Few(#[schemars(range(max = 9))] u32),
    Named { name: String, count: u32 },
    Named2 { name: String },
    Listed(Vec<u32>),
}

#[mcp_type]
#[derive(PartialEq, Eq, Hash)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Country {
    Argentina,
    Australia,
    Austria,
    Belgium,
    Brazil,
    Canada,
    Chile,
    China,
    Denmark,
    Estonia,
    Finland,
    France,
    Germany,
    Greece,
    Iceland,
    India,
    Ireland,
    Italy,
    Japan,
    Kenya,
    Latvia,
    Mexico,
    Netherlands,
    Nigeria,
    Norway,
    Peru,
    Poland,
    Portugal,
    Spain,
    Sweden,
}

#[mcp_type]
struct Trip {
    to: Country,
    #[schemars(range(max = 9))]
    days: Option<u32>,
}

/// Takes more
#[mcp_tool]
fn hold(
    tree: Option<Tree>,
    amounts: Option<Vec<Amount>>,
    countries: Option<Vec<Country>>,
    trips: Option<Vec<Trip>>,
    names: Option<HashSet<String>>,
    keys: Option<BTreeSet<u64>>,
    wide: Option<Vec<i128>>,
    lists: Option<BTreeMap<String, Vec<u8>>>,
    floats: Option<Vec<f64>>,
) -> bool {
    let _ = (tree, amounts, countries, trips, names, keys, wide, lists, floats);
    true
}

#[mcp_tool(strict)]
fn exact(first_name: Option<String>, last_name: Option<String>) -> bool {
    first_name == last_name
}

/// Its result is validated
#[mcp_tool]
fn mirror(rows: Vec<Row>) -> Json<Vec<Row>> {
    Json(rows)
}

#[mcp_resource(uri = "notes://{id}/{+path}{?page}", subscribe = may_watch)]
fn note(#[mcp(complete("one", "two"))] id: String, path: String, page: Option<u32>) -> String {
    format!("{id} {path} {page:?}")
}

#[mcp_resource(uri = "files://root{/path*}")]
fn file(path: Vec<String>) -> String {
    path.concat()
}

fn may_watch(_: &mcp_runtime::resource::Subscription, _: &Context) -> bool {
    true
}

#[mcp_prompt]
fn greet(#[mcp(complete("Ada", "Grace"))] name: String) -> String {
    name
}

#[mcp_prompt]
fn count(number: Option<u32>, rows: Option<Vec<u32>>) -> String {
    format!("{number:?} {}", rows.map_or(0, |rows| rows.len()))
}

/// A tool whose schema is written by hand, with keywords that types do not have.
fn dynamic() -> ToolDef {
    ToolDef::builder("dynamic")
        .input_schema(json!({
            "type": "object",
            "properties": {
                "unique": { "type": "array", "uniqueItems": true },
                "points": { "type": "array", "items": { "type": "object", "properties": { "x": { "default": 0 } } } },
                "branches": { "type": "array", "items": { "oneOf": [
                    { "type": "object", "properties": { "a": { "const": 1 } }, "required": ["a"] },
                    { "type": "object", "properties": { "a": { "const": 2 } }, "required": ["a"] },
                    { "allOf": [{ "type": "array" }, { "contains": { "minimum": 1 } }] }
                ] } },
                "named": { "type": "object", "patternProperties": { "^k[0-9]+$": { "type": "integer" } },
                    "propertyNames": { "maxLength": 9 }, "additionalProperties": false },
                "tree": { "$ref": "#/$defs/Tree" }
            },
            "$defs": { "Tree": { "type": "object", "properties": { "next": { "$ref": "#/$defs/Tree" } },
                "patternProperties": { "^c": { "$ref": "#/$defs/Tree" } }, "unevaluatedProperties": false } }
        }))
        .handler(|_: ToolCall| async { "" })
}

pub(crate) fn server() -> mcp_runtime::Server {
    builder().build().expect("a server")
}

pub(crate) fn builder() -> ServerBuilder {
    mcp_runtime::server!()
        .tool::<echo>()
        .tool::<take>()
        .tool::<hold>()
        .tool::<exact>()
        .tool::<mirror>()
        .resource::<note>()
        .resource::<file>()
        .prompt::<greet>()
        .prompt::<count>()
        .tool::<keys::index>()
        .tool::<nested::nest>()
        .tool::<texts::parse>()
        .add(dynamic())
        .add(keys::named())
        .add(nested::branching())
        .add(api::api())
        .tool::<answers::ask>()
        .tool::<answers::think>()
        .tool::<answers::look>()
        .with_handle(drop)
}
