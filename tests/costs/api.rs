//! Calls of an API whose requests are larger than their arguments: each leaf of a `deepObject` has the whole name, and each file
//! a part with a head.

use axum::Router;
use mcp_runtime_openapi::OpenApi;
use serde_json::{Map, Value, json};

use super::requests::{
    Outcome::{Bounded, Result, ToolError},
    Request, copies, members,
};

/// Three operations, whose requests stay in this process.
pub(crate) fn api() -> OpenApi {
    let deep = json!({ "name": "deep", "in": "query", "style": "deepObject", "explode": true, "schema": {} });
    let file = json!({ "type": "string", "format": "binary" });
    let parts = json!({ "type": "object", "properties": {
        "file": file, "files": { "type": "array", "items": file }, "values": {},
    } });
    let body = json!({ "required": true, "content": { "multipart/form-data": { "schema": parts } } });
    let mapping: Map<String, Value> = (0..5_000).map(|n| (format!("kind {n}"), "Cat".into())).collect();
    let pet = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let pets = json!({ "type": "array", "items": {
        "oneOf": [pet("Cat"), pet("Dog")], "discriminator": { "propertyName": "kind", "mapping": mapping },
    } });
    let pets = json!({ "type": "object", "properties": { "pets": pets } });
    let adopts = json!({ "required": true, "content": { "application/json": { "schema": pets } } });
    let schemas = json!({
        "Cat": { "type": "object", "required": ["lives"], "properties": { "lives": { "type": "integer" } } },
        "Dog": { "type": "object", "required": ["barks"] },
    });
    let description = json!({ "openapi": "3.1.0", "components": { "schemas": schemas }, "paths": {
        "/search": { "get": { "operationId": "search", "parameters": [deep] } },
        "/upload": { "post": { "operationId": "upload", "requestBody": body } },
        "/adopt": { "post": { "operationId": "adopt", "requestBody": adopts } },
    } });
    let routes = Router::new().fallback(async || "");
    OpenApi::routes(routes, &description).expect("a description").timeout(std::time::Duration::from_secs(600))
}

/// Those that are too large are refused while they are written.
pub(crate) fn requests(bytes: usize) -> Vec<Request> {
    let half = || "k".repeat(bytes / 2);
    let search = |name, arguments: String| Request::call(name, "search", &arguments, Bounded);
    let upload = |name, arguments: String, outcome| Request::call(name, "upload", &arguments, outcome);
    let adopt = |name, pet: &str| Request::call(name, "adopt", &copies("pets", pet, bytes), ToolError);
    vec![
        search("a deep object with many keys", members("deep", |n| format!(r#""k{n}":1"#), bytes)),
        search(
            "a deep object with a long key",
            format!(r#""deep":{{"{}":[{}]}}"#, half(), "1,".repeat(bytes.min(200_000) / 4) + "1"),
        ),
        search("a deep object of lists in lists", members("deep", |n| format!(r#""{n}":[[[[1]]]]"#), bytes)),
        upload("a file in a part", format!(r#""file":"{}""#, "aGkh".repeat(bytes / 4)), Result),
        upload("many files in parts", copies("files", r#""""#, bytes), Bounded),
        upload("many values in parts", copies("values", "1", bytes), Bounded),
        adopt("objects of a variant that a discriminator names", r#"{"kind":"kind 7"}"#),
        adopt("objects of no variant of a discriminator", r#"{"kind":"kind"}"#),
        upload("many objects in parts", copies("values", r#"{"a":1}"#, bytes), Bounded),
    ]
}
