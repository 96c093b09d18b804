//! Which revision is used: servers of both eras, silent ones, ones that end, and ones that contradict themselves.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::Method,
};
use futures_util::{StreamExt as _, stream};
use mcp_runtime::{
    Revision,
    client::{Client, Error},
};
use mcp_tests::support::{
    Act, ClientStreams, PATIENCE, Peer, discovered, initialized, play, refusal, response as response_to,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{
    site::{Seen, empty, json_response, respond, serve_async},
    within,
};

fn old(version: &str) -> Value {
    initialized(version, json!({ "tools": {} }))
}

fn naming(versions: &[&str]) -> Value {
    let mut result = discovered(json!({ "tools": {} }));
    result["supportedVersions"] = json!(versions);
    result
}

/// Connects to a played server; the methods that it was asked for.
async fn negotiate<A: Into<Act>>(
    answer: impl Fn(&str) -> A + Send + 'static,
) -> (Result<Client, Error>, Vec<String>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let (streams, _) = play(move |method, message| {
        if message.get("id").is_some() {
            kept.lock().unwrap().push(method.to_owned());
        }
        answer(method)
    });
    let client = Client::builder().probe_timeout(Duration::from_millis(50));
    let connected = within(client.connect(streams)).await;
    let seen = seen.lock().unwrap().clone();
    (connected, seen)
}

#[tokio::test]
async fn a_modern_server_that_is_slow_to_start_is_used_as_one() {
    let (streams, mut peer) = Peer::new(1 << 16);
    let client = Client::builder().probe_timeout(Duration::from_millis(20));
    let connecting = tokio::spawn(client.connect(streams));
    let (probe, handshake) = (peer.next().await, peer.next().await);
    peer.reply(&probe, &naming(&["2026-07-28"])).await;
    peer.send(&refusal(&handshake, -32601)).await;
    let client = within(connecting).await.unwrap().unwrap();
    assert_eq!(client.revision(), Some(Revision::V2026_07_28));
}

#[tokio::test]
async fn a_server_that_names_only_legacy_revisions_gets_a_handshake() {
    let (client, seen) = negotiate(|method| match method {
        "initialize" => Ok(old("2025-11-25")),
        _ => Ok(naming(&["2025-03-26", "2025-11-25"])),
    })
    .await;
    assert_eq!(client.unwrap().revision(), Some(Revision::V2025_11_25));
    assert_eq!(seen, ["server/discover", "initialize"]);
}

#[tokio::test]
async fn an_unsupported_version_is_asked_for_again_once() {
    let (client, seen) = negotiate(|_| Err(-32022)).await;
    assert!(matches!(client, Err(Error::Unsupported { .. })), "{client:?}");
    assert_eq!(seen, ["server/discover", "server/discover"]);
}

#[tokio::test]
async fn a_server_that_contradicts_itself_is_an_error_and_no_loop() {
    // it names a legacy revision, and refuses the handshake of it
    let (client, seen) = negotiate(|method| match method {
        "initialize" => Err(-32022),
        _ => Ok(naming(&["2025-11-25"])),
    })
    .await;
    assert!(matches!(client, Err(Error::Unsupported { .. })), "{client:?}");
    assert_eq!(seen, ["server/discover", "initialize"]);

    // it answers a handshake with a revision that has none
    let (client, seen) = negotiate(|method| match method {
        "initialize" => Ok(old("2026-07-28")),
        _ => Err(-32601),
    })
    .await;
    assert!(matches!(client, Err(Error::Unsupported { .. })), "{client:?}");
    assert_eq!(seen, ["server/discover", "initialize"]);

    let (client, _) = negotiate(|_| Ok(naming(&["2099-01-01"]))).await;
    assert!(matches!(client, Err(Error::Unsupported { .. })), "{client:?}");
}

#[tokio::test]
async fn a_pinned_revision_is_the_only_one_that_is_tried() {
    for revision in Revision::ALL {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = asked.clone();
        let (streams, _) = play(move |method, message| {
            kept.lock().unwrap().push((method.to_owned(), message["params"]["protocolVersion"].clone()));
            Act::Error(-32601)
        });
        let connected = within(Client::builder().revision(*revision).connect(streams)).await;
        assert!(connected.is_err());
        let expected = if revision.is_modern() {
            ("server/discover".to_owned(), Value::Null)
        } else {
            ("initialize".to_owned(), json!(revision.as_str()))
        };
        assert_eq!(*asked.lock().unwrap(), [expected]);
    }
}

/// How a server fails the probe.
#[derive(Debug, Clone, Copy)]
enum Failure {
    /// With this text in place of a response; `ID` is the id of the request.
    Says(&'static str),
    /// With text that over lines may belong to anything, so that only silence is left.
    Chats(&'static str),
    /// It says nothing, and keeps the connection.
    Silence,
    /// It ends what it would answer with: the streams, an empty body, an empty event stream.
    End,
    /// A status of HTTP with a body.
    Status(u16, &'static str),
}

/// How the client gets its answers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wire {
    Lines,
    Json,
    Events,
}

/// A legacy server that fails the probe; its URL. The methods that it was asked for, over HTTP with the session of each.
async fn failing_over_http(failure: Failure, wire: Wire, seen: Arc<Mutex<Vec<String>>>) -> String {
    let answer = move |request: Seen| async move {
        let respond = |status, kind, body: Body| {
            respond(status, &[("content-type", kind), ("mcp-session-id", "s")], body)
        };
        let say = |text: String| match wire {
            Wire::Events => {
                respond(200, "text/event-stream", Body::from(format!(": hi\n\ndata: {text}\n\n")))
            }
            _ => respond(200, "application/json", Body::from(text)),
        };
        if request.method != Method::POST {
            return respond(405, "text/plain", Body::empty());
        }
        let message = &request.message;
        let (method, id) = (message["method"].as_str().unwrap(), &message["id"]);
        if id.is_null() {
            return respond(202, "text/plain", Body::empty());
        }
        let session = request.header("mcp-session-id").map_or("", |_| " in a session");
        seen.lock().unwrap().push(format!("{method}{session}"));
        match (method, failure) {
            ("initialize", _) => say(response_to(message, old("2025-06-18")).to_string()),
            ("ping", _) => say(response_to(message, json!({})).to_string()),
            (_, Failure::Says(text) | Failure::Chats(text)) => say(text.replace("ID", &id.to_string())),
            (_, Failure::Silence) if wire == Wire::Events => {
                let first = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b": hi\n\n"))]);
                respond(200, "text/event-stream", Body::from_stream(first.chain(stream::pending())))
            }
            (_, Failure::Silence) => std::future::pending().await,
            (_, Failure::End) if wire == Wire::Events => respond(200, "text/event-stream", Body::empty()),
            (_, Failure::End) => respond(200, "application/json", Body::empty()),
            (_, Failure::Status(status, body)) => respond(status, "text/plain", Body::from(body)),
        }
    };
    let (url, _) = serve_async(move |request| Box::pin(answer.clone()(request.clone()))).await;
    // the process remembers old servers by their URL, and the system gives ports again
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("{url}/{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The same over lines; the client's end.
fn failing_over_lines(failure: Failure, seen: Arc<Mutex<Vec<String>>>) -> ClientStreams {
    let (streams, _) = play(move |method, message| {
        if message.get("id").is_some() {
            seen.lock().unwrap().push(method.to_owned());
        }
        match (method, failure) {
            ("initialize", _) => Act::Result(old("2025-06-18")),
            ("ping", _) => Act::Result(json!({})),
            ("notifications/initialized", _) | (_, Failure::Silence) => Act::Silence,
            (_, Failure::Says(text) | Failure::Chats(text)) => {
                Act::Bytes(text.replace("ID", &message["id"].to_string()).into_bytes())
            }
            (_, Failure::End | Failure::Status(..)) => Act::End,
        }
    });
    streams
}

/// How a server of another era fails the probe, over each wire: all of them are used by a handshake.
#[tokio::test]
async fn a_server_that_fails_the_probe_in_any_way_gets_a_handshake() {
    let ways = [
        Failure::Says(r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"unknown method"}}"#),
        Failure::Says(r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32002,"message":"not initialized"}}"#),
        Failure::Says(r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"invalid"}}"#),
        Failure::Says(r#"{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"no"}}"#),
        Failure::Says(r#"{"jsonrpc":"2.0","id":ID,"error":"no"}"#),
        Failure::Says(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid"}}"#),
        Failure::Says(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"unknown"}}"#),
        Failure::Says(r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"parse error"}}"#),
        Failure::Chats(r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"no"}}"#),
        Failure::Says(r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#),
        Failure::Says(r#"{"jsonrpc":"2.0","id":ID,"result":null}"#),
        Failure::Says(r#"{"jsonrpc":"2.0","id":ID,"result":"hello"}"#),
        Failure::Says(r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","capabilities":{}}}"#),
        Failure::Says(r#"{"jsonrpc":"2.0","id":ID,"result":{"supportedVersions":"2026-07-28"}}"#),
        Failure::Says(
            r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"dance","supportedVersions":["2026-07-28"],"capabilities":{}}}"#,
        ),
        Failure::Says(r#"{"id":ID,"result":{"supportedVersions":["2026-07-28"]}}"#),
        Failure::Says(r#"{"jsonrpc":"2.0","id":ID,"result":{"x":NaN}}"#),
        Failure::Chats("<!doctype html><h1>Welcome</h1>"),
        Failure::Chats(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}"#),
        Failure::Silence,
        Failure::End,
        Failure::Status(202, ""),
        Failure::Status(400, "Bad Request: Server not initialized"),
        Failure::Status(400, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}"#),
        Failure::Status(404, "not found"),
        Failure::Status(406, ""),
        Failure::Status(500, "internal server error"),
    ];
    for (way, wire) in
        ways.into_iter().flat_map(|way| [Wire::Lines, Wire::Json, Wire::Events].map(|wire| (way, wire)))
    {
        let is_of_http = matches!(way, Failure::Status(..));
        if is_of_http && wire != Wire::Json {
            continue;
        }
        let seen = Arc::new(Mutex::new(Vec::new()));
        let is_silent = match way {
            Failure::Silence => true,
            Failure::Chats(_) => wire == Wire::Lines,
            _ => false,
        };
        // the others do not take the time of the probe
        let patience = if is_silent { Duration::from_millis(50) } else { PATIENCE };
        let builder = Client::builder().probe_timeout(patience);
        let connected = match wire {
            Wire::Lines => within(builder.connect(failing_over_lines(way, seen.clone()))).await,
            _ => within(builder.connect(failing_over_http(way, wire, seen.clone()).await)).await,
        };
        if wire == Wire::Lines && matches!(way, Failure::End) {
            // nothing is left to send a handshake to
            assert!(matches!(connected, Err(Error::Closed { .. })), "{connected:?}");
            continue;
        }
        let client = connected.unwrap_or_else(|error| panic!("{way:?} over {wire:?}: {error}"));
        assert_eq!(client.revision(), Some(Revision::V2025_06_18), "{way:?} over {wire:?}");
        within(client.ping().into_future()).await.unwrap();
        let session = if wire == Wire::Lines { "" } else { " in a session" };
        let expected = ["server/discover".to_owned(), "initialize".to_owned(), format!("ping{session}")];
        assert_eq!(*seen.lock().unwrap(), expected, "{way:?} over {wire:?}");
    }
}

#[tokio::test]
async fn errors_that_a_handshake_would_get_as_well_and_those_of_2026_07_28_fail_the_connection() {
    for (status, code, text) in [
        (401, None, "no"),
        (403, None, "no"),
        (400, Some(-32020), r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"no"}}"#),
        (400, Some(-32021), r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"no"}}"#),
        (
            400,
            Some(-32022),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":["2099-01-01"]}}}"#,
        ),
    ] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let url = failing_over_http(Failure::Status(status, text), Wire::Json, seen.clone()).await;
        let error = within(Client::connect(url)).await.unwrap_err();
        match code {
            None if status == 401 => assert!(matches!(error, Error::Unauthorized { .. }), "{error:?}"),
            None => assert!(matches!(error, Error::Forbidden { .. }), "{error:?}"),
            Some(-32022) => assert!(matches!(error, Error::Unsupported { .. }), "{error:?}"),
            code => assert_eq!(error.code(), code, "{error:?}"),
        }
        assert_eq!(*seen.lock().unwrap(), ["server/discover"]);
    }
}

/// A server over HTTP that is slow to start: both requests wait, and `initialize` is answered with another session first.
#[tokio::test]
async fn a_modern_server_that_is_slow_over_http_is_used_as_one_and_without_the_session_of_the_handshake() {
    let begun = Arc::new(Notify::new());
    let answer = move |request: Seen| async move {
        let result = match request.message["method"].as_str() {
            Some("server/discover") => {
                // not before the handshake waits for the end of its notification
                begun.notified().await;
                naming(&["2026-07-28"])
            }
            Some("initialize") => old("2025-11-25"),
            Some("notifications/initialized") => {
                begun.notify_one();
                std::future::pending().await
            }
            _ => json!({ "resultType": "complete", "tools": [] }),
        };
        json_response(200, &[("mcp-session-id", "s")], &response_to(&request.message, result))
    };
    let (url, log) = serve_async(move |request| Box::pin(answer.clone()(request.clone()))).await;
    let client =
        within(Client::builder().probe_timeout(Duration::from_millis(20)).connect(url)).await.unwrap();
    assert_eq!(client.revision(), Some(Revision::V2026_07_28));
    within(client.tools().into_future()).await.unwrap();
    let last = log.all().pop().unwrap();
    assert_eq!((last.message["method"].as_str(), last.header("mcp-session-id")), (Some("tools/list"), None));
}

/// A server of both eras that is slow for once: it is used as a legacy one then, and not taken for one the next time.
#[tokio::test]
async fn a_server_that_was_slow_to_answer_the_probe_is_probed_again() {
    let probes = Arc::new(AtomicUsize::new(0));
    let counted = probes.clone();
    let (url, _) = serve_async(move |request| {
        let result = match request.message["method"].as_str() {
            _ if request.method != Method::POST => return Box::pin(async { empty(405) }),
            Some("server/discover") if counted.fetch_add(1, Ordering::SeqCst) == 0 => {
                return Box::pin(std::future::pending());
            }
            Some("server/discover") => naming(&["2025-11-25", "2026-07-28"]),
            _ => old("2025-11-25"),
        };
        let response = request.reply(&result);
        Box::pin(async { response })
    })
    .await;
    for (patience, revision) in
        [(Duration::from_millis(20), Revision::V2025_11_25), (PATIENCE, Revision::V2026_07_28)]
    {
        let client = within(Client::builder().probe_timeout(patience).connect(&url)).await.unwrap();
        assert_eq!(client.revision(), Some(revision));
    }
    assert_eq!(probes.load(Ordering::SeqCst), 2);
}
