//! Legacy and modern clients: negotiation, capabilities, and the members of their results.

use crate::prelude::*;

#[mcp_tool]
fn echo(text: String) -> String {
    text
}

#[mcp_resource(uri = "docs://one", cache(ttl = "1s", public))]
fn one() -> &'static str {
    "one"
}

#[mcp_prompt]
fn ask(loud: bool) -> String {
    loud.to_string()
}

fn full() -> ServerBuilder {
    mcp_runtime::server!()
        .info(|info| info.name("n").version("1.2.3").instructions("Ask nicely."))
        .tool::<echo>()
        .resource::<one>()
        .prompt::<ask>()
}

fn requests() -> Vec<(&'static str, Value)> {
    vec![
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "echo", "arguments": { "text": "x" } })),
        ("tools/call", json!({ "name": "echo" })),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "docs://one" })),
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "ask", "arguments": { "loud": "true" } })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "ask" }, "argument": { "name": "loud", "value": "" } }),
        ),
    ]
}

#[tokio::test]
async fn legacy_clients_may_ping_and_have_no_modern_methods() {
    let mut server = serve(full());
    for revision in LEGACY {
        server = server.legacy(revision);
        for (method, params) in requests() {
            let reply = server.request(method, params).await;
            assert_eq!((reply.error(), reply.value().get("_meta")), (None, None), "{method} {revision}");
        }
        assert_eq!(*server.request("ping", json!({})).await.value(), json!({}), "{revision}");
        for method in ["server/discover", "subscriptions/listen"] {
            server.request(method, json!({})).await.expect_code(-32601);
        }
    }
}

#[tokio::test]
async fn malformed_params_are_invalid_params_errors() {
    let mut server = serve(full());
    let (prompt, loud) =
        (json!({ "type": "ref/prompt", "name": "ask" }), json!({ "name": "loud", "value": "" }));
    let malformed = [
        ("tools/call", json!({})),
        ("tools/call", json!({ "arguments": {} })),
        ("tools/call", json!({ "name": null })),
        ("tools/call", json!({ "name": ["echo"] })),
        ("tools/call", json!({ "name": "echo", "arguments": ["x"] })),
        ("tools/call", json!({ "name": "echo", "arguments": "{\"text\":\"x\"}" })),
        ("tools/call", json!({ "name": "echo", "arguments": true })),
        ("resources/read", json!({})),
        ("resources/read", json!({ "uri": null })),
        ("resources/read", json!({ "uri": ["docs://one"] })),
        ("prompts/get", json!({})),
        ("prompts/get", json!({ "name": 1 })),
        ("prompts/get", json!({ "name": "ask", "arguments": [] })),
        ("prompts/get", json!({ "name": "ask" })),
        ("completion/complete", json!({})),
        ("completion/complete", json!({ "ref": prompt })),
        ("completion/complete", json!({ "argument": loud })),
        ("completion/complete", json!({ "ref": { "type": "ref/tool", "name": "echo" }, "argument": loud })),
        ("completion/complete", json!({ "ref": { "type": "ref/prompt" }, "argument": loud })),
        ("completion/complete", json!({ "ref": "ask", "argument": loud })),
        ("completion/complete", json!({ "ref": prompt, "argument": { "name": "loud" } })),
        ("completion/complete", json!({ "ref": prompt, "argument": { "name": "loud", "value": 1 } })),
        ("completion/complete", json!({ "ref": prompt, "argument": loud, "context": [] })),
        (
            "completion/complete",
            json!({ "ref": prompt, "argument": loud, "context": { "arguments": { "a": 1 } } }),
        ),
    ];
    for revision in [Revision::LATEST, Revision::V2024_11_05, Revision::V2025_11_25] {
        server = server.legacy(revision);
        for (method, params) in &malformed {
            let reply = server.request(method, params.clone()).await;
            let code = reply.error().map(|error| error.code);
            assert_eq!(code, Some(-32602), "{method} {params} {revision}: {reply}");
        }
    }
    server.call("echo", json!({ "text": "next" })).await.expect_text("next");
}

#[tokio::test]
async fn every_modern_result_has_server_info_and_a_result_type() {
    let server = serve(full());
    for (method, params) in requests().into_iter().chain([("server/discover", json!({}))]) {
        let reply = server.request(method, params).await;
        assert_eq!(reply.value()["resultType"], "complete", "{method}: {reply}");
        let meta = json!({ "io.modelcontextprotocol/serverInfo": { "name": "n", "version": "1.2.3" } });
        assert_eq!(reply.value()["_meta"], meta, "{method}");
        let cacheable = method.ends_with("/list") || ["resources/read", "server/discover"].contains(&method);
        assert_eq!(reply.value().get("ttlMs").is_some(), cacheable, "{method}: {reply}");
        assert_eq!(reply.value().get("cacheScope").is_some(), cacheable, "{method}: {reply}");
    }
    for method in ["ping", "initialize", "logging/setLevel", "nonsense", "", "tools/List"] {
        let reply = server.request(method, json!({})).await;
        assert_eq!(refusal(&reply).0, -32601, "{method}");
    }
}

#[tokio::test]
async fn discover_returns_the_capabilities() {
    let server = serve(full());
    let found = server.request("server/discover", json!({})).await;
    let mut found = found.value().clone();
    found.as_object_mut().map(|found| found.remove("_meta"));
    assert_eq!(
        found,
        json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "completions": {}, "prompts": {}, "resources": {}, "tools": {} },
            "instructions": "Ask nicely.",
            "ttlMs": 0,
            "cacheScope": "private"
        })
    );
    let bare = serve(mcp_runtime::server!());
    assert_eq!(bare.capabilities().await, json!({}));
    for (method, params) in requests() {
        assert_eq!(refusal(&bare.request(method, params).await).0, -32601, "{method}");
    }
}

/// Claude Code discovers the server first, and initializes the same connection then.
#[tokio::test]
async fn a_client_that_discovers_may_initialize_the_same_connection_and_send_requests_of_both_eras() {
    let server = full().build().expect("valid");
    let mut client = LineConnection::serve(&server, 1 << 16);
    let found = client.request(1, "server/discover", json!({ "_meta": meta() })).await;
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]), "{found}");
    client.shake_hands("2025-11-25").await;
    let call = json!({ "name": "echo", "arguments": { "text": "x" } });
    let modern_call = json!({ "name": "echo", "arguments": { "text": "x" }, "_meta": meta() });
    for (id, params, modern) in [(3, call.clone(), false), (4, modern_call, true), (5, call, false)] {
        let reply = client.request(id, "tools/call", params).await;
        assert_eq!(reply["result"]["content"][0]["text"], "x", "{reply}");
        assert_eq!(reply["result"].get("resultType").is_some(), modern, "{reply}");
    }
}

#[tokio::test]
async fn modern_requests_declare_client_capabilities() {
    let server = serve(full());
    for meta in [
        json!({ "io.modelcontextprotocol/clientCapabilities": [] }),
        json!({ "io.modelcontextprotocol/clientCapabilities": null }),
        json!({ "io.modelcontextprotocol/clientCapabilities": "x" }),
    ] {
        let reply = server.request("tools/list", json!({ "_meta": meta })).await;
        assert_eq!(refusal(&reply).0, -32602, "{meta}");
    }
    for meta in [json!([]), json!("x"), json!(1), json!(null)] {
        let reply = server.request("tools/list", json!({ "_meta": meta })).await;
        assert_eq!(refusal(&reply).0, -32602, "{meta}");
    }
}

/// Says whether it may ask the client
#[mcp_tool]
async fn agreed(ctx: &Context) -> Result<String, ToolError> {
    let is_agreed: bool = ctx.elicit("agreed", "Agreed?").await?;
    Ok(is_agreed.to_string())
}

#[tokio::test]
async fn a_client_may_write_a_byte_order_mark_before_its_first_message() {
    let server = full().build().expect("valid");
    let mut client = LineConnection::serve(&server, 1 << 16);
    client.write(b"\xef\xbb\xbf").await;
    assert!(client.request(1, "server/discover", json!({ "_meta": meta() })).await["result"].is_object());
}

#[tokio::test]
async fn null_is_absent_wherever_a_member_is_optional() {
    let server = full().tool::<agreed>().build().expect("valid");
    let mut legacy = LineConnection::serve(&server, 1 << 16);
    let capabilities =
        json!({ "elicitation": { "form": {}, "url": null }, "roots": null, "extensions": null });
    let client = json!({ "name": "c", "version": "1", "title": null });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client, "_meta": null });
    assert!(legacy.request(1, "initialize", hello).await["result"].is_object());
    // one that is dropped leaves a client that cannot be asked
    legacy.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized", "params": null })).await;
    legacy.start(2, "tools/call", json!({ "name": "agreed", "arguments": null, "_meta": null })).await;
    let asked = legacy.message().await;
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let answer = json!({ "action": "accept", "content": { "value": true }, "_meta": null });
    legacy.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer })).await;
    let reply = legacy.message().await;
    assert_eq!(reply["result"]["content"][0]["text"], "true", "{reply}");

    let mut modern = LineConnection::serve(&server, 1 << 16);
    let nulls = json!({ "progressToken": null, "io.modelcontextprotocol/logLevel": null,
        "io.modelcontextprotocol/clientInfo": null, "traceparent": null });
    for (method, params) in requests() {
        for (id, optional) in [
            (1, vec![]),
            (2, vec!["_meta", "cursor", "context", "inputResponses", "requestState", "maxAgeMs"]),
        ] {
            let mut sent = params.clone();
            for member in &optional {
                sent[*member] = Value::Null;
            }
            if method == "completion/complete" && id == 2 {
                sent["context"] = json!({ "arguments": { "other": null } });
            }
            if method.ends_with("/list") && id == 2 {
                assert!(legacy.request(3, method, Value::Null).await["result"].is_object(), "{method}");
            }
            let reply = legacy.request(3, method, sent.clone()).await;
            assert!(reply["result"].is_object(), "{method} {sent}: {reply}");
            sent["_meta"] = meta();
            if id == 2 {
                sent["_meta"].as_object_mut().unwrap().extend(nulls.as_object().unwrap().clone());
            }
            let reply = modern.request(3, method, sent.clone()).await;
            assert!(reply["result"].is_object(), "{method} {sent}: {reply}");
        }
    }
}

#[tokio::test]
async fn lists_have_cache_hints_where_configured() {
    let server = serve(full().lists(|lists| lists.ttl(Duration::from_secs(60))));
    for method in
        ["tools/list", "resources/list", "resources/templates/list", "prompts/list", "server/discover"]
    {
        let reply = server.request(method, json!({})).await;
        assert_eq!(reply.value()["ttlMs"], 60_000, "{method}");
        assert_eq!(reply.value()["cacheScope"], "public", "{method}");
    }
    let read = server.read("docs://one").await;
    assert_eq!((&read.value()["ttlMs"], &read.value()["cacheScope"]), (&json!(1000), &json!("public")));
}

#[tokio::test]
async fn lists_do_not_depend_on_earlier_requests() {
    let server = serve(full());
    let before = server.request("tools/list", json!({})).await;
    for (method, params) in requests() {
        let _ = server.request(method, params).await;
    }
    let after = server.request("tools/list", json!({})).await;
    assert_eq!(before.value(), after.value());
    assert_eq!(
        server.legacy(Revision::V2025_11_25).list_tools().await,
        before.value()["tools"].as_array().cloned().unwrap_or_default()
    );
}
