//! 2026-07-28: which checks a request passes, in which order, and what the response contains.

use super::fixture::{builder, plain};
use crate::prelude::*;

fn call(name: &str, arguments: &Value) -> HttpRequest {
    HttpRequest::modern(1, "tools/call", json!({"name": name, "arguments": arguments}))
}

/// A request whose `_meta` is exactly `meta`.
fn with_meta(meta: &Value) -> HttpRequest {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": meta}});
    HttpRequest::post(body.to_string())
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "tools/list")
}

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

#[tokio::test]
async fn missing_meta_is_reported_before_header_mismatches() {
    let server = plain().await;
    let refused = async |request: HttpRequest, code: i64| {
        let reply = request.send(server.address).await;
        assert_eq!((reply.status, reply.code()), (400, code), "{}", reply.text());
        assert_eq!(reply.json()["id"], 7);
        reply.json()
    };
    // `_meta` is absent, incomplete, or not an object; the headers are wrong as well
    let bare = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"}).to_string();
    refused(HttpRequest::post(bare).header("MCP-Protocol-Version", "2026-07-28"), -32602).await;
    refused(with_meta(&json!({VERSION: "2026-07-28"})).without("Mcp-Method"), -32602).await;
    refused(with_meta(&json!({CAPABILITIES: {}})).without("Mcp-Method"), -32602).await;
    refused(with_meta(&json!({VERSION: "2026-07-28", CAPABILITIES: 1})).without("Mcp-Method"), -32602).await;
    refused(with_meta(&json!(5)), -32602).await;
    refused(with_meta(&json!({VERSION: 5, CAPABILITIES: {}})), -32602).await;
    // the version header is compared with `_meta` before the version is checked for support
    let other = with_meta(&json!({VERSION: "v999.0.0", CAPABILITIES: {}})).without("Mcp-Method");
    refused(other.clone(), -32020).await;
    refused(other.clone().without("MCP-Protocol-Version"), -32020).await;
    // an unsupported version is reported before the method header
    let told = refused(other.with("MCP-Protocol-Version", "v999.0.0"), -32022).await;
    assert_eq!(told["error"]["data"], json!({"supported": ["2026-07-28"], "requested": "v999.0.0"}));
    // a version that only the header names, too: the client may know which metadata it has
    for (meta, version) in [(json!({}), "9999-01-01"), (json!({CAPABILITIES: {}}), "bogus")] {
        let told = refused(with_meta(&meta).with("MCP-Protocol-Version", version), -32022).await;
        assert_eq!(told["error"]["data"], json!({"supported": ["2026-07-28"], "requested": version}));
    }
    let legacy = with_meta(&json!({VERSION: "2025-11-25", CAPABILITIES: {}}));
    refused(legacy.with("MCP-Protocol-Version", "2025-11-25"), -32022).await;
}

#[tokio::test]
async fn method_and_name_headers_repeat_the_body() {
    let server = plain().await;
    let status = async |request: HttpRequest| {
        let reply = request.send(server.address).await;
        if reply.status == 400 {
            assert_eq!((reply.code(), &reply.json()["id"]), (-32020, &json!(1)));
        }
        reply.status
    };
    let good = || call("echo", &json!({"message": "x"}));
    assert_eq!(status(good().with("mcp-method", "tools/call")).await, 200);
    assert_eq!(status(good().with("Mcp-Method", "  tools/call\t ")).await, 200);
    assert_eq!(status(good().with("Mcp-Method", "TOOLS/CALL")).await, 400);
    assert_eq!(status(good().with("Mcp-Method", "prompts/get")).await, 400);
    assert_eq!(status(good().without("Mcp-Method")).await, 400);
    assert_eq!(status(good().header("Mcp-Method", "tools/call")).await, 400);
    assert_eq!(status(good().with("MCP-NAME", "  echo  ")).await, 200);
    assert_eq!(status(good().with("Mcp-Name", "=?base64?ZWNobw==?=")).await, 200);
    assert_eq!(status(good().with("Mcp-Name", "=?base64?ZWNobw?=")).await, 400);
    assert_eq!(status(good().with("Mcp-Name", "Echo")).await, 400);
    assert_eq!(status(good().without("Mcp-Name")).await, 400);
    assert_eq!(status(good().header("Mcp-Name", "echo")).await, 400);
    // the header is required of a call without a name, too
    let nameless = || HttpRequest::modern(1, "tools/call", json!({ "arguments": {} }));
    assert_eq!(status(nameless().without("Mcp-Name")).await, 400);
    assert_eq!(status(nameless().with("Mcp-Name", "echo")).await, 400);
    assert_eq!(status(good().header("MCP-Protocol-Version", "2026-07-28")).await, 400);
    let read = || HttpRequest::modern(1, "resources/read", json!({"uri": "test://text"}));
    assert_eq!(status(read()).await, 200);
    assert_eq!(status(read().with("Mcp-Name", "test://other")).await, 400);
    let prompt =
        || HttpRequest::modern(1, "prompts/get", json!({"name": "greet", "arguments": {"name": "Ada"}}));
    assert_eq!(status(prompt()).await, 200);
    assert_eq!(status(prompt().without("Mcp-Name")).await, 400);
    // the name is unknown, but header and body agree: this is not a header error
    assert_eq!(call("none", &json!({})).send(server.address).await.code(), -32602);
}

#[tokio::test]
async fn param_headers_are_compared_with_the_raw_arguments() {
    let server = plain().await;
    let send = async |arguments: Value, headers: &[(&str, &str)]| {
        let request = headers.iter().fold(call("routed", &arguments), |request, (n, v)| request.header(n, v));
        request.send(server.address).await
    };
    let ok = async |arguments: Value, headers: &[(&str, &str)]| {
        let reply = send(arguments, headers).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        text_of(&reply.json()).to_owned()
    };
    let bad = async |arguments: Value, headers: &[(&str, &str)]| {
        let reply = send(arguments, headers).await;
        assert_eq!((reply.status, reply.code()), (400, -32020), "{headers:?}");
    };
    assert_eq!(ok(json!({}), &[]).await, "None None None");
    assert_eq!(ok(json!({"region": "eu"}), &[("mcp-param-REGION", "eu")]).await, "Some(\"eu\") None None");
    ok(json!({"region": "Hello, 世界"}), &[("Mcp-Param-Region", "=?base64?SGVsbG8sIOS4lueVjA==?=")]).await;
    ok(json!({"region": null}), &[]).await;
    ok(json!({"shard": 42, "dry": true}), &[("Mcp-Param-Shard", "42.0"), ("Mcp-Param-Dry", "true")]).await;
    // coerced afterwards: header and body agree
    assert_eq!(ok(json!({"shard": "7"}), &[("Mcp-Param-Shard", "7")]).await, "None Some(7) None");
    bad(json!({"shard": "7"}), &[("Mcp-Param-Shard", "7.0")]).await;
    bad(json!({"region": "eu"}), &[]).await;
    bad(json!({"region": "eu"}), &[("Mcp-Param-Region", "us")]).await;
    bad(json!({"region": "eu"}), &[("Mcp-Param-Region", "eu"), ("Mcp-Param-Region", "eu")]).await;
    bad(json!({}), &[("Mcp-Param-Region", "eu")]).await;
    bad(json!({"region": "Hello"}), &[("Mcp-Param-Region", "=?base64?SGVs!!!bG8=?=")]).await;
    bad(json!({"dry": true}), &[("Mcp-Param-Dry", "1")]).await;
}

#[tokio::test]
async fn nested_arguments_are_compared_with_their_headers() {
    #[mcp_type]
    struct Place {
        #[schemars(extend("x-mcp-header" = "Region"))]
        region: Option<String>,
        #[schemars(extend("x-mcp-header" = "Number"))]
        number: Option<i64>,
    }
    /// Returns the place
    #[mcp_tool]
    fn nested(place: Place) -> String {
        format!("{:?} {:?}", place.region, place.number)
    }
    let schema = json!({ "type": "object", "properties": { "place": { "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "number": { "type": "integer", "x-mcp-header": "Number" },
    } } } });
    let dynamic = ToolDef::builder("dynamic").input_schema(schema).handler(|call: ToolCall| async move {
        let place = &call.arguments["place"];
        Ok::<_, ToolError>(format!("{:?} {:?}", place["region"].as_str(), place["number"].as_i64()))
    });
    let server = HttpServer::start(builder(&Gate::default()).tool::<nested>().add(dynamic)).await;
    for tool in ["nested", "dynamic"] {
        let send = async |place: Value, headers: &[(&str, &str)]| {
            let request = call(tool, &json!({ "place": place }));
            let request = headers
                .iter()
                .fold(request, |request, (name, value)| request.header(&format!("Mcp-Param-{name}"), value));
            request.send(server.address).await
        };
        let eu = || json!({ "region": "eu" });
        let largest = 9_007_199_254_740_991_i64;
        let number = |number: Value| json!({ "number": number });
        for (place, headers, expected) in [
            (eu(), &[("Region", "eu")][..], "Some(\"eu\") None"),
            (json!({}), &[], "None None"),
            // within the safe range
            (number(json!(largest)), &[("Number", "9007199254740991")], "None Some(9007199254740991)"),
            (number(json!(-largest)), &[("Number", "-9007199254740991")], "None Some(-9007199254740991)"),
            (
                number(json!("9007199254740991")),
                &[("Number", "9007199254740991")],
                "None Some(9007199254740991)",
            ),
        ] {
            assert_eq!(text_of(&send(place, headers).await.json()), expected, "{tool} {headers:?}");
        }
        for (place, headers) in [
            (eu(), &[("Region", "us")][..]),
            (eu(), &[]),
            (json!({}), &[("Region", "eu")]),
            // it is coerced to an object
            (json!(eu().to_string()), &[]),
            (json!("hello"), &[("Region", "eu")]),
            (number(json!(largest + 1)), &[("Number", "9007199254740992")]),
            (number(json!(-largest - 1)), &[("Number", "-9007199254740992")]),
            (number(json!(1e17)), &[("Number", "1e17")]),
            (number(json!("9007199254740992")), &[("Number", "9007199254740992")]),
        ] {
            let reply = send(place, headers).await;
            assert_eq!((reply.status, reply.code()), (400, -32020), "{tool} {headers:?}");
        }
        // not what clients mirror, nor what is coerced to it
        for place in [json!("hello"), json!("[1]"), json!(5), json!([1])] {
            let reply = send(place.clone(), &[]).await;
            assert_eq!((reply.status, &reply.json()["result"]["isError"]), (200, &json!(true)), "{place}");
        }
    }
    // strict arguments are not coerced
    let strict =
        HttpServer::start(mcp_runtime::server!().lists(|lists| lists.strict()).tool::<nested>()).await;
    let text = json!({ "place": json!({ "region": "eu" }).to_string() });
    let reply = call("nested", &text).send(strict.address).await;
    assert_eq!((reply.status, &reply.json()["result"]["isError"]), (200, &json!(true)));
}

#[tokio::test]
async fn header_values_outside_ascii_are_refused() {
    let server = plain().await;
    let eu = || call("routed", &json!({ "region": "é" }));
    let prompt = |name: &str| HttpRequest::modern(1, "prompts/get", json!({ "name": name }));
    for request in [
        eu().header("Mcp-Param-Region", "é"),
        prompt("é").with("Mcp-Name", "é"),
        eu().header("Mcp-Param-Region", "=?base64?w6k=?=").with("Mcp-Method", "tools/cäll"),
        eu().header("Mcp-Param-Region", "=?base64?w6k=?=").with("MCP-Protocol-Version", "2026-07-28é"),
    ] {
        let reply = request.send(server.address).await;
        assert_eq!((reply.status, reply.code()), (400, -32020), "{}", reply.text());
    }
    let encoded = eu().header("Mcp-Param-Region", "=?base64?w6k=?=").send(server.address).await;
    assert_eq!(text_of(&encoded.json()), "Some(\"é\") None None");
}

#[tokio::test]
async fn capabilities_count_whatever_is_nested_beside_them() {
    let deep = format!("{}{}", "[".repeat(130), "]".repeat(130));
    let capabilities = format!(
        r#"{{"elicitation":{{"form":{{}}}},"experimental":{{"x":{deep}}},"sampling":{{"tools":{{"x":{deep}}}}}}}"#
    );
    let server = plain().await;
    let whoami = json!({ "name": "whoami" });
    let meta = format!(r#"{{"{VERSION}":"2026-07-28","{CAPABILITIES}":{capabilities}}}"#);
    let params = format!(r#"{{"name":"whoami","_meta":{meta}}}"#);
    let modern = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    let modern = HttpRequest::post(modern)
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "tools/call")
        .header("Mcp-Name", "whoami");
    let client = r#"{"name":"c","version":"1"}"#;
    let params =
        format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{client}}}"#);
    let initialize = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
    let session = HttpRequest::post(initialize).send(server.address).await.session();
    let legacy = HttpRequest::legacy(&session, 1, "tools/call", &whoami);
    for request in [modern, legacy] {
        let text = request.send(server.address).await.json();
        let declared = text_of(&text).rsplit(' ').next().expect("capabilities");
        let declared: Value = serde_json::from_str(declared).expect("JSON");
        assert_eq!(declared["elicitation"], json!({ "form": {} }));
        assert!(declared["sampling"]["tools"].is_object(), "{declared}");
    }
}

#[tokio::test]
async fn headers_of_event_streams_mean_nothing_in_a_modern_request() {
    let server = plain().await;
    let echo = call("echo", &json!({ "message": "x" }));
    let repeated = echo.header("Last-Event-ID", "1").header("Last-Event-ID", "2");
    assert_eq!(repeated.send(server.address).await.status, 200);
    for method in ["GET", "DELETE"] {
        for version in ["2026-07-28", "2027-01-01", "bogus"] {
            let reply = HttpRequest::new(method).header("MCP-Protocol-Version", version);
            let reply = reply.header("Accept", "text/event-stream").send(server.address).await;
            assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")), "{method} {version}");
        }
    }
}

#[tokio::test]
async fn legacy_methods_are_unknown() {
    let server = plain().await;
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "unknown/method"] {
        let reply = HttpRequest::modern(1, method, json!({})).send(server.address).await;
        assert_eq!((reply.status, reply.code()), (404, -32601), "{method}");
    }
    let initialize = HttpRequest::initialize("2025-11-25").header("MCP-Protocol-Version", "2026-07-28");
    let reply = initialize.send(server.address).await;
    assert_eq!((reply.status, reply.header("mcp-session-id")), (400, None));
}

#[tokio::test]
async fn modern_notifications_are_ignored_and_responses_are_refused() {
    let gate = Gate::default();
    let server = HttpServer::start(builder(&gate)).await;
    let hold = spawn({
        let at = server.address;
        async move { call("hold", &json!({})).send(at).await }
    });
    gate.more_entered(1).await;
    let cancelled = HttpRequest::notification("notifications/cancelled", &json!({"requestId": 1}));
    let reply = cancelled.header("MCP-Protocol-Version", "2026-07-28").send(server.address).await;
    assert_eq!((reply.status, reply.text()), (202, ""));
    gate.open(1);
    assert_eq!(text_of(&hold.await.expect("no panic").json()), "let go");
    let response = HttpRequest::post(json!({"jsonrpc": "2.0", "id": 1, "result": {}}).to_string());
    let reply = response.header("MCP-Protocol-Version", "2026-07-28").send(server.address).await;
    assert_eq!(reply.status, 400);
}

#[tokio::test]
async fn a_hundred_clients_that_use_one_id_get_their_own_responses() {
    let server = plain().await;
    let clients: Vec<_> = (0..100)
        .map(|n| {
            let at = server.address;
            spawn(async move {
                let message = format!("client {n}");
                let reply = call("echo", &json!({"message": message})).send(at).await.json();
                assert_eq!((text_of(&reply), &reply["id"]), (message.as_str(), &json!(1)));
            })
        })
        .collect();
    for client in clients {
        client.await.expect("its own answer");
    }
}
