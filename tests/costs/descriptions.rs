//! Servers with an API whose description has many of one thing: building one is linear in the description.

use std::fmt::Write as _;

use mcp_runtime_openapi::OpenApi;
use serde_json::{Map, Value, json};

use super::{cpu_time, instructions_of};

/// What a description may have many of, each with a description that has a number of it.
const KINDS: [(&str, fn(usize) -> String); 34] = [
    ("operations", |n| api(paths(n, |_| json!({})), &json!({}))),
    ("operations of an own tag", |n| api(paths(n, |i| json!({ "tags": [format!("t{i}")] })), &json!({}))),
    ("tags of an operation", |n| one(json!({ "tags": names(n) }))),
    ("operations of one name", |n| {
        api(paths(n, |i| json!({ "operationId": format!("a{}", "_".repeat(i % 2 + 1)) })), &json!({}))
    }),
    ("operations that cannot be called", |n| {
        api(members(n, |i| (format!("/p{i}/.."), json!({ "get": {} }))), &json!({}))
    }),
    ("references to nothing", |n| api(paths(n, |i| with_schema(reference(&format!("X{i}")))), &json!({}))),
    ("path items that are references", |n| {
        let mut paths = members(n, |i| (format!("/p{i}"), json!({ "$ref": "#/paths/~1" })));
        paths.insert("/".to_owned(), json!({ "get": { "summary": "One" } }));
        api(paths, &json!({}))
    }),
    ("aliases of a path item", |n| {
        let paths = members(n, |i| (format!("/p{i}"), json!({ "$ref": format!("#/paths/~1p{}", i + 1) })));
        api_of(paths, &json!({}))
    }),
    ("parameters", |n| {
        let parameter = |i| json!({ "name": format!("p{i}"), "in": "query", "schema": { "type": "string" } });
        let parameters = || (0..500).map(parameter).collect::<Value>();
        api(paths(n / 500, |_| json!({ "parameters": parameters() })), &json!({}))
    }),
    ("references to one parameter", |n| {
        let parameter = json!({ "name": "p", "in": "query", "schema": { "type": "string" } });
        let refers = json!({ "parameters": [{ "$ref": "#/components/parameters/P" }] });
        api(paths(n, |_| refers.clone()), &json!({ "parameters": { "P": parameter } }))
    }),
    ("parameters of one name", |n| {
        let parameter = |i| json!({ "name": format!("p{}", "<".repeat(i)), "in": "query" });
        let parameters = || (0..200).map(parameter).collect::<Value>();
        api(paths(n / 200, |_| json!({ "parameters": parameters() })), &json!({}))
    }),
    ("variables of paths", |n| {
        let path: String = (0..500).fold(String::new(), |path, i| format!("{path}/{{v{i}}}"));
        api(members(n / 500, |i| (format!("/{i}{path}"), json!({ "get": {} }))), &json!({}))
    }),
    ("schemas", |n| {
        let schemas = members(n, |i| (format!("S{i}"), json!({ "type": "object" })));
        api(paths(n, |i| with_schema(reference(&format!("S{i}")))), &json!({ "schemas": schemas }))
    }),
    ("references to schemas in one schema", |n| {
        let schemas = members(n, |i| (format!("S{i}"), json!({ "type": "object" })));
        let list: Vec<_> = (0..n).map(|i| reference(&format!("S{i}"))).collect();
        api(paths(1, |_| with_schema(json!({ "prefixItems": list }))), &json!({ "schemas": schemas }))
    }),
    ("references to parts of one schema", |n| {
        let properties = members(n, |i| (format!("p{i}"), json!({ "type": "string" })));
        let list: Vec<_> = (0..n).map(|i| reference(&format!("S/properties/p{i}"))).collect();
        let schemas = json!({ "S": { "properties": properties } });
        api(paths(1, |_| with_schema(json!({ "prefixItems": list }))), &json!({ "schemas": schemas }))
    }),
    ("operations that refer to parts of one schema", |n| {
        let properties = members(n, |i| (format!("p{i}"), json!({ "type": "string" })));
        let of = |i| with_schema(reference(&format!("S/properties/p{i}")));
        api(paths(n, of), &json!({ "schemas": { "S": { "properties": properties } } }))
    }),
    ("referred schemas of one name", |n| {
        let schemas = members(n, |i| (format!("S{i}"), json!({ "x": { "description": "x".repeat(200) } })));
        let of = |i| reference(&format!("S{i}/x"));
        let list: Vec<_> = (0..n).flat_map(|i| [of(i), of(i)]).collect();
        api(paths(1, |_| with_schema(json!({ "prefixItems": list }))), &json!({ "schemas": schemas }))
    }),
    ("references in a row", |n| {
        let schemas =
            members(n, |i| (format!("S{i}"), json!({ "items": reference(&format!("S{}", i + 1)) })));
        let schemas = json!({ "schemas": schemas, "last": {} });
        let text = api(paths(1, |_| with_schema(reference("S0"))), &schemas);
        text.replace(&format!("schemas/S{n}\""), "schemas/S0\"")
    }),
    ("aliases of schemas", |n| {
        let schemas =
            members(n, |i| (format!("S{i}"), reference(&format!("S{}", (i / 50 * 50).max(i + 1) / 50 * 50))));
        let mut schemas = schemas;
        for i in (0..=n).step_by(50) {
            schemas.insert(format!("S{i}"), json!({ "type": "string" }));
        }
        api(paths(n, |i| with_schema(reference(&format!("S{i}")))), &json!({ "schemas": schemas }))
    }),
    ("hidden and required properties", |n| {
        let properties = members(n, |i| (format!("p{i}"), json!({ "readOnly": true })));
        api(paths(1, |_| with_schema(json!({ "properties": properties, "required": names(n) }))), &json!({}))
    }),
    ("properties with wrong examples", |n| {
        let properties = members(n, |i| (format!("p{i}"), json!({ "type": "string", "example": i })));
        api(paths(1, |_| with_schema(json!({ "properties": properties }))), &json!({}))
    }),
    ("patterns that cannot be enforced", |n| {
        let properties = members(n, |i| (format!("p{i}"), json!({ "pattern": "(?=a)" })));
        api(paths(1, |_| with_schema(json!({ "properties": properties }))), &json!({}))
    }),
    ("choices", |n| api(paths(1, |_| with_schema(json!({ "enum": names(n) }))), &json!({}))),
    ("alternatives", |n| {
        let of = |i| json!({ "type": "object", "required": ["a"], "properties": { "a": { "const": i } } });
        api(paths(1, |_| with_schema(json!({ "oneOf": (0..n).map(of).collect::<Value>() }))), &json!({}))
    }),
    ("names of a discriminator", |n| {
        let mapping = members(n, |i| (format!("k{i}"), ["A", "Nothing"][i % 2].into()));
        let pet = json!({ "oneOf": [reference("A"), reference("B")],
            "discriminator": { "propertyName": "kind", "mapping": mapping } });
        let schemas = json!({ "A": { "required": ["a"] }, "B": { "required": ["pet"], "properties": { "pet": reference("Pet") } }, "Pet": pet });
        api(paths(2, |_| with_schema(reference("Pet"))), &json!({ "schemas": schemas }))
    }),
    ("alternatives of a discriminator", |n| {
        let schemas = members(n, |i| (format!("S{i}"), json!({ "type": "object", "required": ["a"] })));
        let list: Value = (0..n).map(|i| reference(&format!("S{i}"))).collect();
        let schema = json!({ "anyOf": list, "discriminator": { "propertyName": "kind" } });
        api(paths(1, |_| with_schema(schema.clone())), &json!({ "schemas": schemas }))
    }),
    ("members of a body", |n| {
        let properties = || members(500, |i| (format!("p{i}"), json!({ "type": "string" })));
        let body =
            || with_body(json!({ "type": "object", "properties": properties(), "required": names(500) }));
        api(posts(n / 500, |_| body()), &json!({}))
    }),
    ("parts of a body", |n| {
        let part =
            |i| json!({ "type": "object", "properties": { format!("p{}", i % 500): { "type": "string" } } });
        api(posts(1, |_| with_body(json!({ "allOf": (0..n).map(part).collect::<Value>() }))), &json!({}))
    }),
    ("parts that are references of a body", |n| {
        let of = |i| json!({ "type": "object", "properties": { format!("p{}", i % 500): {} } });
        let all: Value = (0..n).map(|i| reference(&format!("S{i}"))).collect();
        let schemas = members(n, |i| (format!("S{i}"), of(i)));
        api(posts(1, |_| with_body(json!({ "allOf": all }))), &json!({ "schemas": schemas }))
    }),
    ("responses", |n| {
        let response = |i| json!({ "content": { "application/json": { "schema": { "const": i } } } });
        let responses = || members(100, |i| (format!("2{i:02}"), response(i)));
        api(paths(n / 100, |_| json!({ "responses": responses() })), &json!({}))
    }),
    ("media types", |n| {
        let content = members(n, |i| (format!("text/x{i}"), json!({})));
        one(json!({ "responses": { "200": { "content": content } } }))
    }),
    ("lines of YAML", |n| {
        (0..n).fold("openapi: 3.1.0\npaths:\n".to_owned(), |mut yaml, i| {
            let _ = writeln!(yaml, "  /p{i}: {{ get: {{ tags: [a, b] }} }}");
            yaml
        })
    }),
    ("anchors of YAML", |n| {
        (0..n).fold("openapi: 3.1.0\npaths:\n".to_owned(), |mut yaml, i| {
            let _ = writeln!(yaml, "  /p{i}: &a{i}\n    get:\n  /q{i}: *a{i}");
            yaml
        })
    }),
    ("servers", |n| {
        let servers = || (0..n).map(|i| json!({ "url": format!("https://s{i}.example") })).collect::<Value>();
        json!({ "openapi": "3.1.0", "servers": servers(), "paths": { "/": { "get": {} } } }).to_string()
    }),
];

fn members(count: usize, member: impl Fn(usize) -> (String, Value)) -> Map<String, Value> {
    (0..count).map(member).collect()
}

fn names(count: usize) -> Value {
    (0..count).map(|i| format!("p{i}")).collect()
}

fn paths(count: usize, operation: impl Fn(usize) -> Value) -> Map<String, Value> {
    members(count, |i| (format!("/p{i}"), json!({ "get": operation(i) })))
}

fn posts(count: usize, operation: impl Fn(usize) -> Value) -> Map<String, Value> {
    members(count, |i| (format!("/p{i}"), json!({ "post": operation(i) })))
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

fn with_schema(schema: Value) -> Value {
    json!({ "parameters": [{ "name": "p", "in": "query", "schema": schema }] })
}

fn with_body(schema: Value) -> Value {
    json!({ "requestBody": { "required": true, "content": { "application/json": { "schema": schema } } } })
}

fn one(operation: Value) -> String {
    api(paths(1, |_| operation.clone()), &json!({}))
}

fn api(paths: Map<String, Value>, components: &Value) -> String {
    api_of(paths, components)
}

fn api_of(paths: Map<String, Value>, components: &Value) -> String {
    json!({ "openapi": "3.1.0", "paths": paths, "components": components }).to_string()
}

/// Builds a server; a description may be refused.
fn build(description: String) {
    let api = OpenApi::parse(description).map(|api| api.server("https://x.example").allow_all());
    drop(api.map(|api| mcp_runtime::server!().add(api).build()));
}

fn is_wanted(name: &str) -> bool {
    std::env::var(super::ONLY).map_or(true, |only| name.contains(&only))
}

/// In a debug build, with a generous factor: eight times as much costs 64 times as much if that is quadratic.
#[test]
fn a_server_of_a_description_takes_time_that_is_linear_in_it() {
    let mut found = Vec::new();
    for (name, description) in KINDS.into_iter().filter(|(name, _)| is_wanted(name)) {
        let cost = |count: usize| {
            let text = description(count);
            let start = cpu_time();
            build(text);
            cpu_time() - start
        };
        let few = cost(1_000).max(1.0);
        let times = cost(8_000) / few;
        eprintln!("{times:6.1} {few:8.1} ms {name}");
        if times > 32.0 {
            found.push(format!("{times:.1} times as much for 8 times as many: {name}"));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// What a program that this test starts is to build.
const BUILDS: &str = "MCP_TEST_BUILDS";

#[test]
#[ignore = "needs valgrind: run it with `--release`"]
fn four_times_as_many_parts_of_a_description_take_at_most_five_times_the_instructions() {
    if let Ok(builds) = std::env::var(BUILDS) {
        let (count, name) = builds.split_once(' ').expect("a count and a name");
        let kind = KINDS.iter().find(|(kind, _)| *kind == name).expect("a kind");
        let text = kind.1(count.parse().expect("a number"));
        return std::env::var_os("MCP_TEST_ONLY_TEXT").map_or_else(|| build(text), drop);
    }
    let test =
        "descriptions::four_times_as_many_parts_of_a_description_take_at_most_five_times_the_instructions";
    let mut found = Vec::new();
    for (name, _) in KINDS.into_iter().filter(|(name, _)| is_wanted(name)) {
        // without the start of the program and the text
        let cost = |count: usize| {
            let builds = format!("{count} {name}");
            let all = instructions_of(test, &[(BUILDS, &builds)], &[]);
            all - instructions_of(test, &[(BUILDS, &builds), ("MCP_TEST_ONLY_TEXT", "1")], &[])
        };
        let times = cost(40_000) / cost(10_000);
        eprintln!("{times:6.2} times the instructions: {name}");
        if times > 5.0 {
            found.push(format!("{times:.2} times as much for 4 times as many: {name}"));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
