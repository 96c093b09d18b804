//! The `catalog` server over real pipes: exact lines of JSON, as clients write them, in every revision.

use std::process::Command;

use mcp_tests::support::{LineConnection, meta};
use serde_json::{Value, json};

fn catalog() -> Command {
    Command::new(env!("CARGO_BIN_EXE_catalog"))
}

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// A connection, and the revision that it speaks.
struct Connection {
    server: LineConnection,
    revision: &'static str,
}

impl Connection {
    fn modern() -> Self {
        Self { server: LineConnection::spawn(&mut catalog()), revision: "2026-07-28" }
    }

    async fn legacy(revision: &'static str) -> Self {
        let mut server = LineConnection::spawn(&mut catalog());
        let hello = server.initialize(revision).await;
        assert_eq!(hello["serverInfo"], json!({ "name": "catalog", "version": "1.0.0" }));
        Self { server, revision }
    }

    async fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for revision in LEGACY {
            all.push(Self::legacy(revision).await);
        }
        all.push(Self::modern());
        all
    }

    fn is_modern(&self) -> bool {
        self.revision == "2026-07-28"
    }

    /// Sends a request whose params are this text, which a JSON library might never write.
    async fn raw(&mut self, method: &str, params: &str) -> Value {
        let inside = params.trim().strip_prefix('{').and_then(|p| p.strip_suffix('}')).expect("an object");
        let meta = if self.is_modern() { format!("\"_meta\":{}", meta()) } else { String::new() };
        let comma = if inside.is_empty() || meta.is_empty() { "" } else { "," };
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":"q","method":"{method}","params":{{{inside}{comma}{meta}}}}}"#);
        assert!(!line.contains('\n'), "one message, one line");
        self.server.write(line.as_bytes()).await;
        self.server.write(b"\n").await;
        let reply = self.server.message().await;
        assert_eq!(reply["id"], "q", "{reply}");
        reply
    }

    /// A result without the members that every modern result has.
    async fn result(&mut self, method: &str, params: &Value) -> Value {
        let reply = self.raw(method, &params.to_string()).await;
        let mut result = reply["result"].clone();
        let Some(map) = result.as_object_mut() else { panic!("no result: {reply}") };
        if self.is_modern() {
            assert_eq!(map.remove("resultType"), Some("complete".into()), "{reply}");
            assert_eq!(
                map.remove("_meta"),
                Some(
                    json!({ "io.modelcontextprotocol/serverInfo": { "name": "catalog", "version": "1.0.0" } })
                )
            );
        }
        result
    }

    #[allow(clippy::needless_pass_by_value)] // so that calls look like those of the other files
    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", &json!({ "name": tool, "arguments": arguments })).await
    }

    async fn error(&mut self, method: &str, params: &str) -> Value {
        let reply = self.raw(method, params).await;
        assert!(reply.get("result").is_none(), "{reply}");
        reply["error"].clone()
    }
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn failed(said: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": said }], "isError": true })
}

#[tokio::test]
async fn tools_are_listed_and_called() {
    for mut wire in Connection::all().await {
        let revision = wire.revision;
        let list = wire.result("tools/list", &json!({})).await;
        assert_eq!(
            list["tools"][0],
            json!({
                "name": "echo",
                "description": "Echoes",
                "inputSchema": {
                    "type": "object", "properties": { "message": { "type": "string" } }, "required": ["message"]
                }
            })
        );
        let mut order = json!({
            "name": "order",
            "description": "Takes arguments that models get wrong",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "limit": { "type": "integer", "minimum": 1, "maximum": 100, "default": 10 },
                    "ids": { "type": "array", "items": { "type": "integer" } },
                    "region": { "type": "string", "x-mcp-header": "Region" }
                },
                "required": ["ids"]
            }
        });
        if revision >= "2025-03-26" {
            order["annotations"] = json!({ "readOnlyHint": true });
        }
        let ids = json!({ "type": "array", "items": { "type": "integer" } });
        if revision >= "2025-06-18" {
            order["title"] = "Order".into();
            order["_meta"] = json!({ "n": 1 });
            order["outputSchema"] =
                json!({ "type": "object", "properties": { "result": ids }, "required": ["result"] });
        }
        if revision >= "2025-11-25" {
            order["icons"] = json!([{ "src": "https://example.org/i.png" }]);
        }
        if wire.is_modern() {
            order["outputSchema"] = ids;
        }
        assert_eq!(list["tools"][1], order, "{revision}");
        assert_eq!(list["tools"].as_array().map(Vec::len), Some(7), "unregistered tools are not listed");
        assert_eq!(wire.call("echo", json!({ "message": "hi" })).await, text("hi"));
        assert_eq!(wire.result("tools/call", &json!({ "name": "anything" })).await, text(""));
    }
}

#[tokio::test]
async fn arguments_are_coerced_or_reported() {
    for mut wire in Connection::all().await {
        let mut sent = text("[1]");
        if wire.revision >= "2025-06-18" {
            sent["structuredContent"] = json!({ "result": [1] });
        }
        if wire.is_modern() {
            sent["structuredContent"] = json!([1]);
        }
        assert_eq!(wire.call("order", json!({ "ids": "[1, 20]", "limit": "10", "more": 1 })).await, sent);
        assert_eq!(wire.call("order", json!({ "ids": ["1", 20.0], "limit": null })).await, sent);
        assert_eq!(
            wire.call("order", json!({ "idz": [], "limit": 101 })).await,
            failed(
                "invalid arguments for tool `order`:\n\
                 - ids: is missing (an array)\n\
                 - limit: 101 is greater than the maximum of 100\n\
                 - unknown argument `idz`; did you mean `ids`?\n\
                 expected: order(ids: integer[], limit?: integer 1..=100 = 10, region?: string)"
            )
        );
        assert_eq!(
            wire.call("exact", json!({ "n": "1", "m": 2 })).await,
            failed(
                "invalid arguments for tool `exact`:\n\
                 - n: \"1\" is not an integer\n\
                 - unknown argument `m`\n\
                 expected: exact(n: integer 0..=255)"
            )
        );
        assert_eq!(wire.call("exact", json!({ "n": 1.0 })).await, text("1"));
    }
}

#[tokio::test]
async fn each_kind_of_failure_has_its_form() {
    for mut wire in Connection::all().await {
        assert_eq!(
            wire.error("tools/call", r#"{"name":"ehco","arguments":{}}"#).await,
            json!({ "code": -32602, "message": "unknown tool `ehco`; did you mean `echo`?" })
        );
        for params in [
            "{}",
            r#"{"name":5}"#,
            r#"{"name":"echo","arguments":[]}"#,
            r#"{"name":"echo","arguments":"{}"}"#,
        ] {
            assert_eq!(wire.error("tools/call", params).await["code"], -32602, "{params}");
        }
        assert_eq!(wire.call("fail", json!({ "how": "public" })).await, failed("m"));
        assert_eq!(wire.call("fail", json!({ "how": "private" })).await, failed("tool 'fail' failed"));
        assert_eq!(wire.call("fail", json!({ "how": "panic" })).await, failed("tool 'fail' failed"));
        assert_eq!(
            wire.error("tools/call", r#"{"name":"fail","arguments":{"how":"protocol"}}"#).await,
            json!({ "code": 1001, "message": "own", "data": [1] })
        );
        assert_eq!(wire.call("fail", json!({ "how": "not" })).await, json!({ "content": [] }));
        assert_eq!(
            wire.call("slow", json!({})).await,
            failed("tool 'slow' took longer than its limit of 20ms")
        );
    }
}

#[tokio::test]
async fn causes_appear_only_in_the_log() {
    let mut wire = Connection::modern();
    for how in ["private", "panic"] {
        assert_eq!(wire.call("fail", json!({ "how": how })).await, failed("tool 'fail' failed"));
    }
    wire.server.close_input().await;
    assert_eq!(wire.server.next().await, None);
    let (status, log) = wire.server.exit().await;
    assert!(status.success());
    assert!(log.contains("secret of the error") && log.contains("secret of the panic"), "{log}");
}

#[tokio::test]
async fn results_are_downgraded_for_older_revisions() {
    for mut wire in Connection::all().await {
        let content = wire.call("blocks", json!({})).await["content"].clone();
        let audio = json!({ "type": "audio", "data": "AQID", "mimeType": "audio/wav" });
        assert_eq!(content[1] == audio, wire.revision >= "2025-03-26", "{content}");
        assert_eq!(content[1]["type"] == "resource", wire.revision < "2025-03-26", "{content}");
        let link = json!({ "type": "resource_link", "uri": "docs://a", "name": "a" });
        let expected = if wire.revision >= "2025-06-18" {
            link
        } else {
            json!({ "type": "text", "text": "a: docs://a" })
        };
        assert_eq!(content[2], expected);
    }
}

#[tokio::test]
async fn every_character_survives_on_one_line() {
    let mut wire = Connection::modern();
    let odd: String =
        (0..0x250).chain([0x2028, 0x2029, 0xfeff, 0xffff, 0x1f600]).filter_map(char::from_u32).collect();
    assert_eq!(wire.call("echo", json!({ "message": odd })).await, text(&odd));
    let escaped = wire
        .raw("tools/call", r#"{"name":"\u0065cho","arguments":{"\u006dessage":"\ud83d\ude00\/\u0000"}}"#)
        .await;
    assert_eq!(escaped["result"]["content"][0]["text"], "😀/\u{0}");
}

#[tokio::test]
async fn an_unpaired_surrogate_is_an_argument_error() {
    for mut wire in Connection::all().await {
        for arguments in [
            r#"{"message":"\ud800"}"#,
            r#"{"message":"a\udc00b"}"#,
            r#"{"message":"\ud83d\ud83d"}"#,
            r#"{"message":"x","\ud800":1}"#,
        ] {
            let reply =
                wire.raw("tools/call", &format!(r#"{{"name":"echo","arguments":{arguments}}}"#)).await;
            // the value of an unknown key is ignored whatever it is
            let answered = reply["result"]["isError"] == true || reply["result"]["content"][0]["text"] == "x";
            assert!(answered, "{arguments}: {reply}");
        }
        assert_eq!(wire.call("echo", json!({ "message": "next" })).await, text("next"));
    }
}

#[tokio::test]
async fn numbers_of_any_size_get_a_response() {
    let mut wire = Connection::modern();
    for (number, good) in [
        ("1e2", true),
        ("1E+1", true),
        ("-0", true),
        ("-0.0", true),
        ("255.000", true),
        ("256", false),
        ("1e400", false),
        ("-1e-400", true),
        ("0.1", false),
        ("123456789012345678901234567890", false),
        ("1e999999999999", false),
    ] {
        let reply =
            wire.raw("tools/call", &format!(r#"{{"name":"exact","arguments":{{"n":{number}}}}}"#)).await;
        assert_eq!(reply["result"]["isError"] != true, good, "{number}: {reply}");
        if !good {
            let said = reply["result"]["content"][0]["text"].as_str().unwrap_or_default();
            assert!(said.starts_with("invalid arguments for tool `exact`:\n- "), "{number}: {said}");
        }
    }
    assert_eq!(wire.call("exact", json!({ "n": 255 })).await, text("255"));
}

#[tokio::test]
async fn a_duplicate_key_is_refused() {
    let mut wire = Connection::modern();
    let reply = wire.raw("tools/call", r#"{"name":"exact","arguments":{"n":1,"n":2}}"#).await;
    assert_eq!(reply["result"]["isError"], true, "{reply}");
    let reply = wire.raw("tools/call", r#"{"name":"exact","name":"echo","arguments":{"n":1}}"#).await;
    assert_eq!(reply["error"]["code"], -32600, "{reply}");
    let reply = wire.raw("tools/call", r#"{"name":"exact","arguments":{"n":1},"arguments":{}}"#).await;
    assert_eq!(reply["error"]["code"], -32600, "{reply}");
}

#[tokio::test]
async fn deep_nesting_gets_a_response() {
    let mut wire = Connection::modern();
    for depth in [100, 1_000, 15_000] {
        let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let reply =
            wire.raw("tools/call", &format!(r#"{{"name":"anything","arguments":{{"value":{deep}}}}}"#)).await;
        assert!(reply["result"]["content"][0]["text"].is_string(), "{depth}: {reply}");
    }
    assert_eq!(wire.call("echo", json!({ "message": "next" })).await, text("next"));
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    for mut wire in Connection::all().await {
        let mut read =
            json!({ "contents": [{ "uri": "config://app", "mimeType": "application/json", "text": "{}" }] });
        if wire.is_modern() {
            read["ttlMs"] = 1000.into();
            read["cacheScope"] = "private".into();
        }
        assert_eq!(wire.result("resources/read", &json!({ "uri": "config://app" })).await, read);
        let blob = wire.result("resources/read", &json!({ "uri": "docs://a/%37" })).await;
        assert_eq!(
            blob["contents"],
            json!([{ "uri": "docs://a/%37", "mimeType": "application/octet-stream", "blob": "Bw==" }])
        );
        let bad = wire.error("resources/read", r#"{"uri":"docs://a/x"}"#).await;
        assert_eq!((&bad["code"], &bad["data"]), (&json!(-32602), &json!({ "uri": "docs://a/x" })));
        let code = if wire.is_modern() { -32602 } else { -32002 };
        for uri in ["docs://b", "docs://a/300", "docs://a/.."] {
            let unknown = wire.error("resources/read", &json!({ "uri": uri }).to_string()).await;
            assert_eq!((&unknown["code"], &unknown["data"]), (&json!(code), &json!({ "uri": uri })));
        }
    }
}

#[tokio::test]
async fn prompts_are_listed_and_rendered() {
    for mut wire in Connection::all().await {
        let list = wire.result("prompts/list", &json!({})).await;
        assert_eq!(
            list["prompts"],
            json!([{
                "name": "write",
                "description": "Writes",
                "arguments": [{ "name": "topic", "required": true }, { "name": "length", "required": false }]
            }])
        );
        let got = wire
            .result("prompts/get", &json!({ "name": "write", "arguments": { "topic": "x", "length": "3" } }))
            .await;
        assert_eq!(
            got,
            json!({
                "description": "Writes",
                "messages": [{ "role": "user", "content": { "type": "text", "text": "x Some(3)" } }]
            })
        );
        let bad = wire.error("prompts/get", r#"{"name":"write","arguments":{"length":"long"}}"#).await;
        assert_eq!(bad["code"], -32602);
        assert!(
            bad["message"].as_str().is_some_and(|m| m.contains("`topic`") && m.contains("`length`")),
            "{bad}"
        );
        assert_eq!(
            wire.error("prompts/get", r#"{"name":"writ"}"#).await,
            json!({ "code": -32602, "message": "unknown prompt `writ`; did you mean `write`?" })
        );
        let completed = wire.result(
            "completion/complete",
            &json!({ "ref": { "type": "ref/prompt", "name": "write" }, "argument": { "name": "length", "value": "L" } }),
        ).await;
        assert_eq!(completed["completion"], json!({ "values": ["long"], "total": 1, "hasMore": false }));
    }
}

/// What the server writes to stderr between start and exit.
async fn log_of(first: &str) -> String {
    let mut server = LineConnection::spawn(&mut catalog());
    server.write(first.as_bytes()).await;
    server.message().await;
    server.close_input().await;
    server.exit().await.1
}

#[tokio::test]
async fn unregistered_items_are_reported_once() {
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string() + "\n";
    let log = log_of(&ping).await;
    let lines: Vec<_> = log.lines().filter(|line| line.contains("no server offers it")).collect();
    assert_eq!(lines.len(), 3, "{log}");
    assert!(lines[0].contains("or mark it `unregistered`") && lines[0].contains("catalog.rs:"), "{log}");
    // only tools have the option
    assert!(lines[1].contains("`unregistered_prompt`") && lines[1].ends_with("; register it"), "{log}");
    assert!(lines[2].contains("::Unregistered` at ") && lines[2].contains("with `.service(..)`"), "{log}");
    assert!(!log.contains("left_out"), "{log}");
}
