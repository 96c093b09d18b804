//! The `repo` example as a client sees it, serving a small tree.

use std::{fs, path::PathBuf};

use mcp_external_tests::package;
use mcp_tests::programs::cache_dir;
use serde_json::{Value, json};

use crate::interop::{
    driver::{Mode, Sdk},
    expect::Step,
};

const LIB: &str = "//! A crate.\n\n/// Adds.\npub fn add(a: u32, b: u32) -> u32 {\n    a + b\n}\n";

/// Files without a match: enough that a search reports progress twice.
const EMPTY: usize = 1100;

/// Creates the tree that is served; files that git ignores must stay hidden.
pub(crate) fn tree() -> PathBuf {
    let tree = cache_dir("tree");
    for folder in ["empty", "src"] {
        fs::create_dir_all(tree.join(folder)).expect("a folder can be made");
    }
    for number in 0..EMPTY {
        package::write(&tree.join(format!("empty/{number:04}")), "");
    }
    package::write(&tree.join("src/lib.rs"), LIB);
    package::write(&tree.join("README.md"), "# Tree\n\nAdds numbers.\n");
    package::write(&tree.join("logo.png"), "\u{0}PNG");
    package::write(&tree.join(".gitignore"), "secret.txt\n");
    package::write(&tree.join("secret.txt"), "fn add\n");
    tree
}

pub(crate) fn steps(sdk: Sdk, mode: Mode) -> Vec<Step> {
    let found = json!({
        "hits": [{ "path": "src/lib.rs", "line": 4, "text": "pub fn add(a: u32, b: u32) -> u32 {" }],
        "files": EMPTY + 3,
        "truncated": false,
    });
    vec![
        Step::result(json!({ "op": "tools" }), &tools(mode)),
        Step::result(
            json!({ "op": "call", "name": "search", "arguments": { "pattern": r"\badd\b" }, "progress": true }),
            &json!({
                "content": [{ "type": "text", "text": { "$json": found } }],
                "structuredContent": found,
                "isError": null,
                "progress": [
                    { "progress": 500, "message": "500 files searched" },
                    { "progress": 1000, "message": "1000 files searched" },
                ],
            }),
        ),
        Step::error(json!({ "op": "call", "name": "serch", "arguments": {} }), -32602, &Value::Null),
        Step::result(
            json!({ "op": "templates" }),
            &json!({ "resourceTemplates": [{ "uriTemplate": "repo:///{+path}", "name": "file" }] }),
        ),
        Step::not_found(sdk, mode, "repo:///secret.txt"),
        Step::result(
            json!({ "op": "prompts" }),
            &json!({
                "prompts": [{
                    "name": "explain",
                    "arguments": [
                        { "name": "path", "description": "Path of the file, from the root of the tree", "required": true },
                        { "name": "audience", "description": "Who is going to read it", "required": true },
                    ],
                }],
            }),
        ),
        Step::result(
            json!({ "op": "complete", "prompt": "explain", "argument": { "name": "audience", "value": "R" } }),
            &json!({ "completion": { "values": ["reviewer"] } }),
        ),
        Step::result(
            json!({ "op": "complete", "uri": "repo:///{+path}", "argument": { "name": "path", "value": "src/l" } }),
            &json!({ "completion": { "values": ["src/lib.rs"] } }),
        ),
    ]
}

fn tools(mode: Mode) -> Value {
    let list = json!({ "type": "array", "items": { "type": "object", "required": ["line", "text"] } });
    let outline = if mode == Mode::Legacy {
        json!({ "type": "object", "properties": { "result": list }, "required": ["result"] })
    } else {
        list
    };
    json!({
        "tools": [
            {
                "name": "search",
                "annotations": { "readOnlyHint": true },
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "pattern": { "type": "string", "minLength": 1, "maxLength": 1000 },
                        "limit": { "type": "integer", "default": 100, "minimum": 1, "maximum": 1000 },
                        "root": null,
                        "ctx": null,
                    },
                    "required": ["pattern"],
                },
                "outputSchema": { "type": "object", "required": ["hits", "files", "truncated"] },
            },
            {
                "name": "outline",
                "annotations": { "readOnlyHint": true },
                "inputSchema": { "required": ["path"] },
                "outputSchema": outline,
            },
        ],
    })
}

/// A structured value that is not an object reaches legacy clients wrapped in one.
pub(crate) fn natural_or_wrapped(mode: Mode, value: &Value) -> Value {
    if mode == Mode::Legacy { json!({ "result": value }) } else { value.clone() }
}
