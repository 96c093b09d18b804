//! Servers that answer, but not as the protocol says: the call that is concerned fails at once, and with it nothing else.

use std::{
    future::IntoFuture as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_runtime::{
    Revision,
    client::{ChangeEvent, Client, ClientBuilder, CompletionOf, Error},
};
use mcp_tests::support::{Act, Peer, discovered, initialized, play, refusal, response};
use serde_json::{Value, json};

use super::{
    played,
    raw_http::{Raw, raw_http},
    site::{respond, serve},
    within,
};

fn capabilities() -> Value {
    json!({ "tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": null })
}

/// A server of 2026-07-28 on byte streams that answers with the bytes that a function makes of method and message.
async fn over_streams(
    builder: ClientBuilder,
    answer: impl Fn(&str, &Value) -> Vec<u8> + Send + 'static,
) -> Client {
    let answer = move |method: &str, message: &Value| match message.get("id") {
        Some(_) => Act::Bytes(answer(method, message)),
        None => Act::Silence,
    };
    played(Revision::LATEST, capabilities(), builder, answer).await.0
}

/// A server over HTTP whose event streams stay open; its URL.
async fn over_http(answer: impl Fn(&Value) -> Raw + Clone + Send + 'static) -> String {
    raw_http(move |message| match message["method"].as_str() {
        Some("server/discover") => Raw::of(message, &discovered(capabilities())),
        _ => answer(message),
    })
    .await
}

fn bytes_of(message: &Value) -> Vec<u8> {
    message.to_string().into_bytes()
}

/// Responses to the request `ID` that are not valid.
const MALFORMED: [&[u8]; 12] = [
    br#"{"jsonrpc":"2.0","id":ID}"#,
    br#"{"id":ID,"result":{}}"#,
    br#"{"jsonrpc":"1.0","id":ID,"result":{}}"#,
    br#"{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"x"}}"#,
    br#"{"jsonrpc":"2.0","id":ID,"id":ID,"result":{}}"#,
    br#"{"jsonrpc":"2.0","id":ID.0,"result":{}}"#,
    br#"{"jsonrpc":"2.0","id":ID,"result":{"x":NaN}}"#,
    br#"{"jsonrpc":"2.0","result":{"x":NaN},"id":ID}"#,
    br#"{"jsonrpc":"2.0","id":ID,"result":{"x":[1,2"#,
    br#"{"jsonrpc":"2.0","id":ID,"result":{}}, and more"#,
    br#"{"jsonrpc":"2.0","id":ID,"result":[]}"#,
    b"{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\xff\"}]}}",
];

fn with_id(text: &[u8], message: &Value) -> Vec<u8> {
    let (id, mut out) = (message["id"].to_string(), Vec::new());
    let mut rest = text;
    while let Some(at) = rest.windows(2).position(|window| window == b"ID") {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(id.as_bytes());
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
    out
}

#[tokio::test]
async fn a_malformed_response_fails_its_call_at_once() {
    // over streams they may belong to anything
    let deep = "[".repeat(10_000);
    for text in ["", "null", "[]", "{\"jsonrpc\":\"2.0\"}", "not json", deep.as_str()] {
        let body = text.as_bytes().to_vec();
        let url = over_http(move |_| Raw::Whole("application/json", body.clone())).await;
        let client = within(Client::connect(url)).await.unwrap();
        let error = within(client.call("t", json!({})).into_future()).await.unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{text}: {error:?}");
    }
    for text in MALFORMED {
        let shown = String::from_utf8_lossy(text);
        let client = over_streams(Client::builder(), move |_, message| with_id(text, message)).await;
        let error = within(client.call("t", json!({})).into_future()).await.unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{shown}: {error:?}");

        for kind in ["application/json", "text/event-stream"] {
            let url = over_http(move |message| {
                let text = with_id(text, message);
                match kind {
                    "application/json" => Raw::Whole(kind, text),
                    _ => Raw::Open([b"data: ", &text[..], b"\n\n"].concat()),
                }
            })
            .await;
            let client = within(Client::connect(url)).await.unwrap();
            let error = within(client.call("t", json!({})).into_future()).await.unwrap_err();
            assert!(matches!(error, Error::Invalid { .. }), "{kind}, {shown}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_malformed_response_concerns_no_other_call_and_lines_of_a_log_none() {
    let client = over_streams(Client::builder(), |method, message| {
        if method != "tools/call" {
            return with_id(MALFORMED[0], message);
        }
        let (id, result) = (&message["id"], json!({ "content": [{ "type": "text", "text": "fine" }] }));
        let log = json!({ "level": "info", "id": id, "msg": "called" });
        let text = format!("{log}\nlistening\n[]\n{{\"a\": [{{\"id\":{id}}}\n");
        [text.into_bytes(), bytes_of(&response(message, result))].concat()
    })
    .await;
    let (called, sent) = within(async {
        tokio::join!(client.call("t", json!({})).into_future(), client.send("x", json!({})).into_future())
    })
    .await;
    assert_eq!(called.unwrap().text(), "fine");
    assert!(matches!(sent, Err(Error::Invalid { .. })), "{sent:?}");
}

#[tokio::test]
async fn a_response_with_the_id_of_another_request_is_not_that_of_a_call() {
    let result = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    for is_stream in [false, true] {
        let url = over_http(move |message| {
            let mut other = response(message, result("of another"));
            other["id"] = (message["id"].as_u64().unwrap_or_default() + 1).into();
            if !is_stream {
                return Raw::Whole("application/json", bytes_of(&other));
            }
            let own = response(message, result("its own"));
            Raw::Open(format!("data: {other}\n\ndata: {own}\n\n").into_bytes())
        })
        .await;
        let client = within(Client::connect(url)).await.unwrap();
        match within(client.call("t", json!({})).into_future()).await {
            Ok(result) => assert_eq!((is_stream, result.text().as_str()), (true, "its own")),
            Err(error) => assert!(!is_stream, "{error:?}"),
        }
    }
}

#[tokio::test]
async fn an_error_without_an_id_fails_the_only_call_that_waits() {
    let client = over_streams(Client::builder(), |_, _| {
        let error = json!({ "code": -32700, "message": "parse error" });
        bytes_of(&json!({ "jsonrpc": "2.0", "id": null, "error": error }))
    })
    .await;
    let error = within(client.call("t", json!({})).into_future()).await.unwrap_err();
    assert_eq!(error.code(), Some(-32700), "{error:?}");
}

/// A legacy server that answers a message without an id, such as a notification, with an error that has none either, while a
/// call runs.
#[tokio::test]
async fn an_error_without_an_id_that_may_be_of_a_notification_fails_no_call() {
    for error in [
        json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32601, "message": "unknown method" } }),
        json!({ "jsonrpc": "2.0", "error": { "code": -32600, "message": "invalid" } }),
    ] {
        let (streams, _) = play(move |method, message| {
            let told =
                |text: &str| response(message, json!({ "content": [{ "type": "text", "text": text }] }));
            Act::Say(match (method, message["params"]["name"].as_str()) {
                ("initialize", _) => {
                    vec![response(message, initialized("2025-06-18", json!({ "tools": {} })))]
                }
                // after the error of `notifications/initialized`
                (_, Some("first")) => vec![error.clone(), told("first")],
                // answered never: it is cancelled
                (_, Some("dropped")) => vec![],
                // after that of `notifications/cancelled`, and of the response to a ping
                (_, Some("second")) => {
                    vec![error.clone(), json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })]
                }
                // all that may have an error have had it: the next one is the call's
                (_, Some("third")) => vec![error.clone()],
                _ if message["result"].is_object() => {
                    vec![error.clone(), json!({ "jsonrpc": "2.0", "id": 4, "result": { "content": [] } })]
                }
                _ => vec![],
            })
        });
        let client =
            within(Client::builder().revision(Revision::V2025_06_18).connect(streams)).await.unwrap();
        let first = within(client.call("first", json!({})).into_future()).await.unwrap();
        assert_eq!(first.text(), "first");
        let mut dropped = Box::pin(client.call("dropped", json!({})).into_future());
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut dropped).await.is_err());
        drop(dropped);
        within(client.call("second", json!({})).into_future()).await.unwrap();
        let third = within(client.call("third", json!({})).into_future()).await.unwrap_err();
        assert!(matches!(third.code(), Some(-32601 | -32600)), "{third:?}");
    }
}

#[tokio::test]
async fn broken_utf_8_in_an_event_stream_is_not_replaced() {
    let url = over_http(|message| {
        let event = b"data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[],\"_meta\":{\"x\":\"a\xffb\"}}}\n\n";
        Raw::Open(with_id(event, message))
    })
    .await;
    let client = within(Client::connect(url)).await.unwrap();
    let error = within(client.call("t", json!({})).into_future()).await.unwrap_err();
    assert!(error.to_string().contains("not UTF-8"), "{error}");
}

/// While a large reply is parsed, another task of the only thread gets its turns.
#[tokio::test]
async fn a_large_reply_is_parsed_without_holding_the_thread() {
    const SIZE: usize = 512 << 10;
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = turns.clone();
    let ticker = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let (streams, mut peer) = Peer::new(1 << 20);
    let (at_end, counter) = (Arc::new(AtomicUsize::new(0)), turns.clone());
    let sent = at_end.clone();
    tokio::spawn(async move {
        peer.answer("server/discover", &discovered(capabilities())).await;
        let call = peer.next().await;
        let row = r#"{"name":"tea","price":1.5,"tags":["a","b"]},"#;
        let rows = row.repeat(SIZE / row.len());
        let rows = format!("[{}]", rows.trim_end_matches(','));
        let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[],"#, call["id"]);
        let text = format!("{head}\"structuredContent\":{{\"rows\":{rows},\"x\":\"\\u0074\"}}}}}}\n");
        peer.write(text.as_bytes()).await.unwrap();
        sent.store(counter.load(Ordering::Relaxed), Ordering::Relaxed);
        // until the client is dropped
        peer.read().await
    });
    let client = within(Client::connect(streams)).await.unwrap();
    let result = within(client.call("t", json!({})).into_future()).await.unwrap();
    let meanwhile = turns.load(Ordering::Relaxed) - at_end.load(Ordering::Relaxed);
    ticker.abort();
    assert!(result.structured.is_some());
    assert!(meanwhile > 100, "another task got {meanwhile} turns while the reply was parsed");
}

#[tokio::test]
async fn a_server_that_refuses_initialize_before_it_answers_the_probe_is_used() {
    let (streams, mut peer) = Peer::new(1 << 16);
    let builder = Client::builder().probe_timeout(Duration::from_millis(20));
    let connecting = tokio::spawn(builder.connect(streams));
    let (probe, handshake) = (peer.next().await, peer.next().await);
    peer.send(&refusal(&handshake, -32601)).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    peer.reply(&probe, &discovered(capabilities())).await;
    let client = within(connecting).await.unwrap().unwrap();
    assert_eq!(client.revision(), Some(Revision::V2026_07_28));
}

#[tokio::test]
async fn a_tool_whose_schema_is_too_deep_is_left_out_of_the_list() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let kept = events.clone();
    let builder = Client::builder().on_change(move |event| kept.lock().unwrap().push(event));
    let client = over_streams(builder, |_, message| {
        let deep = format!("{}{{}}{}", r#"{"items":"#.repeat(500), "}".repeat(500));
        let tools = format!(
            r#"[{{"name":"a","inputSchema":{{}}}},{{"name":"deep\u001b[2J","inputSchema":{deep}}},{{"name":"b","inputSchema":{{}}}}]"#
        );
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":{tools}}}}}"#, message["id"]).into_bytes()
    })
    .await;
    let tools = within(client.tools().into_future()).await.unwrap();
    assert_eq!(tools.iter().map(|tool| tool.name()).collect::<Vec<_>>(), ["a", "b"]);
    let events = events.lock().unwrap();
    assert!(
        events.iter().any(|event| matches!(event, ChangeEvent::ToolDropped { name, reason }
            if name == "deep\u{1b}[2J" && reason.contains("recursion"))),
        "{events:?}"
    );
}

/// Servers of the TypeScript SDK 1.x say draft-07, others write OpenAPI or patterns of JavaScript.
#[tokio::test]
async fn an_output_schema_that_is_known_is_enforced_as_far_as_it_can_be() {
    let draft = "http://json-schema.org/draft-07/schema#";
    let object = |properties: Value| json!({ "type": "object", "properties": properties, "required": ["a"] });
    let of_draft = |properties: Value| {
        let mut schema = object(properties);
        schema["$schema"] = draft.into();
        schema
    };
    let texts = json!({ "type": "string" });
    for (schema, good, bad, unenforced) in [
        (of_draft(json!({ "a": texts })), json!({ "a": "x" }), json!({ "a": 1 }), ""),
        (
            of_draft(json!({ "a": { "type": "array", "items": [texts, { "type": "integer" }] } })),
            json!({ "a": ["x", 1] }),
            json!({ "a": ["x", "y"] }),
            "",
        ),
        (
            object(json!({ "a": { "type": "string", "nullable": true, "example": "x" } })),
            json!({ "a": null }),
            json!({ "a": 1 }),
            "",
        ),
        (
            object(json!({ "a": { "type": "string", "pattern": "^(?=x)", "maxLength": 1 } })),
            json!({ "a": "y" }),
            json!({ "a": "xy" }),
            "`pattern` at `#/properties/a`",
        ),
        (
            object(json!({ "a": { "type": "string", "pattern": "^\\p{L}$" } })),
            json!({ "a": "ä" }),
            json!({ "a": 1 }),
            "`pattern` at `#/properties/a`",
        ),
        (
            object(json!({ "a": { "$ref": "https://example.com/a.json" } })),
            json!({ "a": 1 }),
            json!({}),
            "`$ref` at `#/properties/a`",
        ),
    ] {
        let (sent, structured) = (schema.clone(), [good.clone(), bad.clone()]);
        let answer = move |method: &str, message: &Value| match method {
            "tools/list" => {
                Act::Result(json!({ "tools": [{ "name": "t", "inputSchema": {}, "outputSchema": sent }] }))
            }
            _ => {
                let which = usize::from(message["params"]["arguments"]["bad"] == true);
                Act::Result(json!({ "content": [], "structuredContent": structured[which] }))
            }
        };
        let (client, _) = played(Revision::LATEST, capabilities(), Client::builder(), answer).await;
        let call = |bad: bool| within(client.call("t", json!({ "bad": bad })).into_future());
        assert!(call(true).await.unwrap().structured::<Value>().is_ok(), "its schema is not known");
        let tools = within(client.tools().into_future()).await.unwrap();
        let named = tools[0].unenforced_output();
        assert_eq!(named.len(), usize::from(!unenforced.is_empty()), "{named:?}");
        assert!(named.iter().all(|keyword| keyword.starts_with(unenforced)), "{named:?}");
        assert_eq!(call(false).await.unwrap().structured::<Value>().unwrap(), good, "{schema}");
        let error = call(true).await.unwrap().structured::<Value>().unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{bad} against {schema}: {error:?}");
    }
}

/// A schema by which each item costs many steps.
#[tokio::test]
async fn a_result_is_checked_in_few_steps_unless_it_is_large_and_checked_on_another_thread() {
    let properties: serde_json::Map<String, Value> = (0..200).map(|n| (n.to_string(), json!({}))).collect();
    let items = json!({ "type": "object", "properties": properties });
    let costly = json!({ "type": "object", "properties": { "a": { "items": items } } });
    let lengths = [10, 60_000, 110_000, 110_000];
    let answer = move |method: &str, message: &Value| match method {
        "tools/list" => {
            Act::Result(json!({ "tools": [{ "name": "t", "inputSchema": {}, "outputSchema": costly }] }))
        }
        _ => {
            let which = message["params"]["arguments"]["which"]
                .as_u64()
                .and_then(|which| usize::try_from(which).ok());
            let mut list = json!(vec![json!({}); lengths[which.unwrap()]]);
            if which == Some(3) {
                list[109_999] = json!("x");
            }
            Act::Result(json!({ "content": [], "structuredContent": { "a": list } }))
        }
    };
    let (client, _) = played(Revision::LATEST, capabilities(), Client::builder(), answer).await;
    within(client.tools().into_future()).await.unwrap();
    for (which, problem) in [
        (0, None),
        (1, Some("takes too many steps to check")),
        (2, None),
        (3, Some("what the tool's output schema requires")),
    ] {
        let result = within(client.call("t", json!({ "which": which })).into_future()).await.unwrap();
        let checked = result.structured::<Value>();
        match problem {
            None => assert!(checked.is_ok(), "{which}: {checked:?}"),
            Some(problem) => {
                let error = checked.unwrap_err().to_string();
                assert!(error.contains(problem), "{which}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn a_byte_order_mark_before_the_first_message_is_not_a_part_of_it() {
    let mark = b"\xef\xbb\xbf";
    let (streams, mut peer) = Peer::new(1 << 16);
    let connecting = tokio::spawn(Client::connect(streams));
    peer.write(mark).await.unwrap();
    peer.answer("server/discover", &discovered(capabilities())).await;
    within(connecting).await.unwrap().unwrap();

    let url = over_http(move |message| {
        let text = bytes_of(&response(message, json!({ "content": [] })));
        Raw::Whole("application/json", [&mark[..], &text].concat())
    })
    .await;
    let client = within(Client::connect(url)).await.unwrap();
    within(client.call("t", json!({})).into_future()).await.unwrap();
}

/// Servers that write null for every member that they do not have.
#[tokio::test]
async fn members_of_results_that_are_null_are_absent() {
    let client = over_streams(Client::builder(), |method, message| {
        let result = match method {
            "tools/list" => {
                json!({ "tools": [{ "name": "t", "title": null, "description": null, "inputSchema": {},
                "outputSchema": null, "annotations": null, "icons": null, "_meta": null }],
                "nextCursor": null, "ttlMs": null, "cacheScope": null, "_meta": null })
            }
            "tools/call" => {
                json!({ "resultType": null, "content": [{ "type": "text", "text": "[1]", "annotations": null,
                "_meta": null }], "structuredContent": null, "isError": null, "_meta": null })
            }
            "resources/read" => {
                json!({ "contents": [{ "uri": "a:b", "mimeType": null, "text": "x", "blob": null,
                "_meta": null }], "ttlMs": null, "_meta": null })
            }
            "prompts/get" => json!({ "description": null, "messages": [], "_meta": null }),
            "completion/complete" => {
                json!({ "completion": { "values": ["v"], "total": null, "hasMore": null } })
            }
            _ => json!({}),
        };
        bytes_of(&response(message, result))
    })
    .await;
    assert_eq!(within(client.tools().into_future()).await.unwrap()[0].output_schema(), None);
    let called = within(client.call("t", json!({})).into_future()).await.unwrap();
    assert!(!called.is_error && called.meta.is_empty());
    assert_eq!(called.structured::<Vec<i32>>().unwrap(), [1]);
    assert_eq!(called.structured::<Option<Vec<i32>>>().unwrap(), None, "null is what this type means by it");
    let read = within(client.read("a:b").into_future()).await.unwrap();
    assert_eq!(read.text().unwrap(), "x");
    assert!(within(client.prompt("p", json!({})).into_future()).await.unwrap().meta.is_empty());
    let of = CompletionOf::Prompt("p");
    let completed = within(client.complete(&of, "a", "").into_future()).await.unwrap();
    assert!(completed.values == ["v"] && !completed.has_more);
}

#[tokio::test]
async fn a_page_in_place_of_a_reply_is_named_with_its_type_and_beginning() {
    let page = b"<!doctype html><h1>Sign in</h1>";
    let url = over_http(|_| Raw::Whole("text/html; charset=utf-8", page.to_vec())).await;
    let client = within(Client::connect(url)).await.unwrap();
    let error = within(client.call("t", json!({})).into_future()).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("text/html") && text.contains("<!doctype html><h1>Sign in"), "{text}");
}

#[tokio::test]
async fn replies_are_read_within_the_limits_of_what_they_become_once_they_are_decompressed() {
    use std::io::Write as _;

    let gzip = |text: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    };
    let (url, _) = serve(move |seen| {
        let message = &seen.message;
        assert_eq!(seen.header("accept-encoding"), Some("gzip"));
        let arguments = &message["params"]["arguments"];
        let text = "x".repeat(usize::try_from(arguments["size"].as_u64().unwrap_or(1)).unwrap());
        let result = json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] });
        let (is_stream, is_plain) = (arguments["stream"] == true, arguments["plain"] == true);
        let text = match message["method"].as_str() {
            Some("server/discover") => bytes_of(&response(message, discovered(capabilities()))),
            _ if is_stream => format!("data: {}\n\n", response(message, result)).into_bytes(),
            _ => bytes_of(&response(message, result)),
        };
        let mut body = if is_plain { text } else { gzip(&text) };
        if arguments["cut"] == true {
            body.truncate(body.len() / 2);
        }
        let kind = if is_stream { "text/event-stream" } else { "application/json" };
        let headers = [("content-type", kind), ("content-encoding", "gzip")];
        respond(200, if is_plain { &headers[..1] } else { &headers }, body)
    })
    .await;
    let client =
        within(Client::builder().max_message(100_000).probe_timeout(Duration::from_secs(60)).connect(&url))
            .await
            .unwrap();
    for stream in [false, true] {
        let send = |arguments: Value| within(client.call("t", arguments).into_future());
        let call = |size: usize, cut: bool| send(json!({ "size": size, "stream": stream, "cut": cut }));
        assert_eq!(call(20_000, false).await.unwrap().text().len(), 20_000);
        // 1 KB that becomes 1 MB
        let bomb = call(1_000_000, false).await.unwrap_err();
        assert!(matches!(bomb, Error::TooLarge { limit: 100_000, .. }), "{bomb:?}");
        let large = send(json!({ "size": 120_000, "stream": stream, "plain": true })).await.unwrap_err();
        assert!(matches!(large, Error::TooLarge { limit: 100_000, .. }), "{large:?}");
        let cut = call(20_000, true).await.unwrap_err();
        assert!(matches!(cut, Error::NotConnected { .. }), "{cut:?}");
    }
}

#[test]
fn text_of_servers_cannot_write_to_a_terminal_or_forge_a_line() {
    let bad = "a\u{1b}[31mb\r\nERROR c\u{2028}\u{202e}d".to_owned();
    let errors = [
        Error::NotConnected { reason: bad.clone() },
        Error::Unsupported { what: bad.clone() },
        Error::NotFound { uri: bad.clone() },
        Error::Forbidden { scopes: vec![bad.clone()], content_type: Some(bad.clone()), body: bad.clone() },
        Error::Protocol { code: 1, message: bad.clone(), data: None },
        Error::Closed { status: None, stderr: bad.clone() },
        Error::Http { status: 500, content_type: Some(bad.clone()), body: bad.clone() },
        Error::Invalid { what: bad.clone() },
        Error::Handler { method: bad.clone(), message: bad.clone() },
        Error::Authorization { cause: Box::new(Error::Invalid { what: bad }) },
    ];
    for error in errors {
        let text = error.to_string();
        assert!(!text.contains(['\u{1b}', '\r', '\u{2028}', '\u{202e}']), "{error:?}: {text}");
        assert!(!text.lines().any(|line| line.starts_with("ERROR")), "{error:?}: {text}");
    }
}
