//! HTTP: servers that answer in every allowed way, and in some others.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    body::Body,
    http::{Method, Response},
};
use futures_util::StreamExt as _;
use mcp_runtime::{
    Revision,
    client::{ChangeEvent, Client, ElicitAnswer, Error},
    prelude::*,
};
use mcp_tests::support::{Gate, HttpServer, discovered, initialized, refusal, response};
use serde_json::{Value, json};

use super::{
    builder,
    site::{Log, Seen, empty, event_stream, json_response, legacy_handshake, respond, serve},
    until, within,
};

/// A legacy server: the handshake with this session, and `answer` for the rest.
fn legacy(seen: &Seen, session: &str, answer: impl FnOnce() -> Response<Body>) -> Response<Body> {
    legacy_handshake(seen, session).unwrap_or_else(answer)
}

fn modern(seen: &Seen, answer: impl FnOnce() -> Response<Body>) -> Response<Body> {
    if seen.message["method"] == "server/discover" {
        return seen.reply(&discovered(json!({ "tools": {} })));
    }
    answer()
}

fn text_result(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}

#[tokio::test]
async fn every_modern_request_has_the_protocols_headers_and_full_meta() {
    let (url, log) = serve(|seen| {
        modern(seen, || match seen.message["method"].as_str() {
            Some("tools/list") => {
                let region = json!({ "type": "string", "x-mcp-header": "Region" });
                let schema = json!({ "type": "object", "properties": { "region": region } });
                seen.reply(&json!({ "tools": [
                    { "name": "t", "inputSchema": schema },
                    { "name": "bad", "inputSchema": { "type": "object", "properties":
                        { "n": { "type": "number", "x-mcp-header": "N" } } } },
                ] }))
            }
            _ => seen.reply(&text_result("x")),
        })
    })
    .await;
    let dropped = Arc::new(Mutex::new(Vec::new()));
    let kept = dropped.clone();
    let client = Client::builder()
        .info("me", "9")
        .header("x-mine", "1")
        .bearer_token("secret")
        .on_change(move |event| kept.lock().unwrap().push(format!("{event:?}")));
    let client = within(client.connect(url)).await.unwrap();
    let tools = client.tools().await.unwrap();
    assert_eq!(tools.iter().map(|tool| tool.name()).collect::<Vec<_>>(), ["t"]);
    assert!(dropped.lock().unwrap()[0].contains("ToolDropped { name: \"bad\""), "{dropped:?}");
    client.call("t", json!({ "region": "Zürich" })).await.unwrap();
    client.call("ü", json!({})).await.unwrap();

    for seen in log.all() {
        assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(seen.header("mcp-method"), seen.message["method"].as_str());
        assert_eq!(seen.header("accept"), Some("application/json, text/event-stream"));
        assert_eq!(seen.header("x-mine"), Some("1"));
        assert_eq!(seen.header("authorization"), Some("Bearer secret"));
        let meta = &seen.message["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"], json!({ "name": "me", "version": "9" }));
        assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
    }
    let calls = log.of("tools/call");
    assert_eq!(
        (calls[0].header("mcp-name"), calls[0].header("mcp-param-region")),
        (Some("t"), Some("=?base64?WsO8cmljaA==?="))
    );
    assert_eq!(
        (calls[1].header("mcp-name"), calls[1].header("mcp-param-region")),
        (Some("=?base64?w7w=?="), None)
    );
}

#[tokio::test]
async fn known_tools_have_their_headers_without_a_list_and_a_mismatch_lists_them() {
    let (url, log) = serve(|seen| {
        modern(seen, || match seen.message["method"].as_str() {
            Some("tools/list") => {
                let schema = json!({ "type": "object", "properties": { "r": { "type": "string", "x-mcp-header": "R" } } });
                seen.reply(&json!({ "tools": [{ "name": "t", "inputSchema": schema }] }))
            }
            _ if seen.header("mcp-param-r").is_none() => {
                json_response(400, &[], &refusal(&seen.message, -32020))
            }
            _ => seen.reply(&text_result("x")),
        })
    })
    .await;
    let client = within(Client::connect(url)).await.unwrap();
    let schema =
        json!({ "type": "object", "properties": { "r": { "type": "string", "x-mcp-header": "R" } } });
    client.add_known_tools([json!({ "name": "t", "inputSchema": schema })]).unwrap();
    client.call("t", json!({ "r": "a" })).await.unwrap();
    assert_eq!(log.of("tools/list").len(), 0);
    client.clear_known_tools();
    client.call("t", json!({ "r": "b" })).await.unwrap();
    assert_eq!((log.of("tools/list").len(), log.of("tools/call").len()), (1, 3));
}

#[tokio::test]
async fn a_session_that_was_lost_is_replaced_once() {
    let sessions = Arc::new(Mutex::new(VecDeque::from(["one", "two", "three"])));
    let valid = Arc::new(Mutex::new("one"));
    let (of_server, current) = (sessions.clone(), valid.clone());
    let (url, log) = serve(move |seen| {
        let session = if seen.message["method"] == "initialize" {
            of_server.lock().unwrap().pop_front().unwrap()
        } else {
            ""
        };
        legacy(seen, session, || match seen.method {
            Method::GET => empty(405),
            Method::DELETE => empty(204),
            _ if seen.header("mcp-session-id") != Some(*current.lock().unwrap()) => empty(404),
            _ => seen.reply(&text_result("done")),
        })
    })
    .await;
    let client = within(Client::connect(url)).await.unwrap();
    client.call("t", json!({})).await.unwrap();
    *valid.lock().unwrap() = "two";
    // calls that find out at the same time share the new session
    let (one, other) =
        tokio::join!(client.call("t", json!({})).into_future(), client.call("t", json!({})).into_future());
    assert_eq!((one.unwrap().text(), other.unwrap().text()), ("done".to_owned(), "done".to_owned()));
    assert_eq!(log.of("initialize").len(), 2);
    assert_eq!(log.of("tools/call").last().unwrap().header("mcp-protocol-version"), Some("2025-11-25"));
    // a server that never keeps one
    *valid.lock().unwrap() = "none";
    assert!(matches!(client.call("t", json!({})).await, Err(Error::NotConnected { .. })));
    assert_eq!(log.of("initialize").len(), 3);
    within(client.close()).await;
    assert!(log.all().iter().any(|seen| seen.method == Method::DELETE), "the session is ended");
}

/// A process that ends leaves its port to others.
#[tokio::test]
async fn a_server_in_place_of_an_older_one_is_used_whatever_it_answers_to_the_handshake_of_that() {
    let answers = [
        |_: &Seen| respond(200, &[("content-type", "application/json")], "{\"jsonrpc\": NaN"),
        |seen: &Seen| seen.reply(&json!({})),
        |_: &Seen| empty(404),
    ];
    for answer in answers {
        let is_replaced = Arc::new(AtomicBool::new(false));
        let replaced = is_replaced.clone();
        let (url, log) = serve(move |seen| match replaced.load(Ordering::Relaxed) {
            false => legacy(seen, "s", || empty(405)),
            true => modern(seen, || answer(seen)),
        })
        .await;
        let client = within(Client::connect(url.clone())).await.unwrap();
        assert_eq!(client.revision(), Some(Revision::V2025_11_25));
        drop(client);
        is_replaced.store(true, Ordering::Relaxed);
        let client = within(Client::connect(url)).await.unwrap();
        assert_eq!(client.revision(), Some(Revision::V2026_07_28));
        assert_eq!(log.of("initialize").len(), 2, "the second of them was refused");
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_or_within_an_event_is_resumed_after_the_last_whole_one() {
    for rest in ["", "id: 8\ndata: {\"jsonrpc\""] {
        let (url, log) = serve(move |seen| {
            legacy(seen, "s", || match (&seen.method, seen.header("last-event-id")) {
                (&Method::GET, Some("7")) => {
                    let result = json!({ "jsonrpc": "2.0", "id": 3, "result": text_result("resumed") });
                    event_stream(format!("id: 8\ndata: {result}\n\n"))
                }
                (&Method::GET, _) => empty(405),
                _ => event_stream(format!("id: 7\nretry: 5\ndata:\n\n{rest}")),
            })
        })
        .await;
        let client = within(Client::connect(url)).await.unwrap();
        let result = within(client.call("t", json!({})).into_future()).await.unwrap();
        assert_eq!(result.text(), "resumed");
        let resumption = log.all().into_iter().rfind(|seen| seen.method == Method::GET).unwrap();
        assert_eq!(resumption.header("mcp-session-id"), Some("s"));
    }
}

#[tokio::test]
async fn a_stream_without_an_id_that_can_be_sent_is_not_resumed() {
    for events in [
        "id: 7\nretry: 5\ndata:\n\nid:\ndata:\n\n".to_owned(),
        "id: a\u{1}b\nretry: 5\ndata:\n\n".to_owned(),
        "id: 7\nretry: 5\ndata:\n\nid: a\u{7f}b\ndata:\n\n".to_owned(),
        format!("id: {}\nretry: 5\ndata:\n\n", "x".repeat(10_000)),
    ] {
        let text = events.clone();
        let (url, log) = serve(move |seen| {
            legacy(seen, "s", || match seen.method {
                Method::GET => empty(405),
                _ => event_stream(text.clone()),
            })
        })
        .await;
        let client = within(Client::connect(url)).await.unwrap();
        let gets = || log.all().into_iter().filter(|seen| seen.method == Method::GET).count();
        until(|| gets() == 1).await;
        let error = within(client.call("t", json!({})).into_future()).await.unwrap_err();
        assert!(error.to_string().contains("cannot be resumed"), "{events:?}: {error}");
        assert_eq!(gets(), 1, "the standalone stream is not opened a second time: {events:?}");
    }
}

/// A legacy server whose first session ends when the test says so; what has no session is answered by `answer`.
async fn forgetful(
    answer: impl Fn(&Seen) -> Option<Response<Body>> + Clone + Send + Sync + 'static,
) -> (String, Log, Arc<Mutex<bool>>) {
    let ended = Arc::new(Mutex::new(false));
    let is_ended = ended.clone();
    let (url, log) = serve(move |seen| {
        let is_ended = *is_ended.lock().unwrap();
        let is_old = seen.header("mcp-session-id") == Some("one");
        if is_old && is_ended {
            return empty(404);
        }
        if let Some(response) = answer(seen) {
            return response;
        }
        legacy(seen, if is_ended { "two" } else { "one" }, || match seen.method {
            Method::GET => empty(405),
            Method::DELETE => empty(204),
            _ if seen.message["id"].is_null() => empty(202),
            _ => seen.reply(&text_result("done")),
        })
    })
    .await;
    (url, log, ended)
}

#[tokio::test]
async fn a_session_that_the_standalone_stream_finds_lost_is_replaced() {
    let (url, log, ended) = forgetful(move |seen| {
        (seen.method == Method::GET).then(|| event_stream("id: 1\nretry: 10\ndata:\n\n"))
    })
    .await;
    let client = within(Client::connect(url)).await.unwrap();
    let seen = Arc::<Mutex<Vec<ChangeEvent>>>::default();
    let kept = seen.clone();
    let subscribing = client.subscribe("x://y", move |event| kept.lock().unwrap().push(event));
    let _subscription = within(subscribing).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [], "a stream that is resumed misses nothing");
    *ended.lock().unwrap() = true;
    // without a call of the program
    until(|| log.of("resources/subscribe").len() == 2).await;
    until(|| !seen.lock().unwrap().is_empty()).await;
    assert_eq!(*seen.lock().unwrap(), [ChangeEvent::Restored]);
    assert_eq!(log.of("resources/subscribe")[1].header("mcp-session-id"), Some("two"));
    assert_eq!(log.of("initialize").len(), 2);
    until(|| {
        log.all()
            .iter()
            .any(|seen| seen.method == Method::GET && seen.header("mcp-session-id") == Some("two"))
    })
    .await;
    assert_eq!(client.call("t", json!({})).await.unwrap().text(), "done");
}

#[tokio::test]
async fn a_standalone_stream_that_cannot_be_resumed_may_have_missed_changes_until_it_is_refused() {
    let is_refused = Arc::new(AtomicBool::new(false));
    let refused = is_refused.clone();
    let (url, _, _) = forgetful(move |seen| {
        let stream = || event_stream("retry: 10\ndata:\n\n");
        let answer = || if refused.load(Ordering::SeqCst) { empty(405) } else { stream() };
        (seen.method == Method::GET).then(answer)
    })
    .await;
    let (builder, of_all) = super::keeping_changes();
    let client = within(builder.connect(url)).await.unwrap();
    let of_one = Arc::<Mutex<Vec<ChangeEvent>>>::default();
    let kept = of_one.clone();
    let subscribing = client.subscribe("x://y", move |event| kept.lock().unwrap().push(event));
    let _subscription = within(subscribing).await.unwrap();
    until(|| !of_one.lock().unwrap().is_empty()).await;
    is_refused.store(true, Ordering::SeqCst);
    for seen in [of_one, of_all] {
        until(|| seen.lock().unwrap().contains(&ChangeEvent::Ended)).await;
        let seen = seen.lock().unwrap();
        let (last, before) = seen.split_last().unwrap();
        assert_eq!(*last, ChangeEvent::Ended, "{seen:?}");
        assert!(before.iter().all(|event| *event == ChangeEvent::Restored), "{seen:?}");
    }
}

#[tokio::test]
async fn a_server_without_a_standalone_stream_keeps_its_session() {
    let (url, log, _) = forgetful(|seen| (seen.method == Method::GET).then(|| empty(404))).await;
    let client = within(Client::connect(url)).await.unwrap();
    until(|| log.of("ping").len() == 1).await;
    assert_eq!(client.call("t", json!({})).await.unwrap().text(), "done");
    assert_eq!(log.of("initialize").len(), 1);
}

/// Streams of POSTs that break, and cannot be resumed since the server has nothing at GET.
#[tokio::test]
async fn a_session_that_may_be_lost_is_looked_for_once_and_not_by_its_own_search() {
    let (url, log, _) = forgetful(move |seen| {
        let is_broken = seen.message["method"] == "tools/call" || seen.message["method"] == "ping";
        match seen.method {
            Method::GET => Some(empty(404)),
            _ if is_broken => Some(event_stream("id: 1\nretry: 10\ndata:\n\n")),
            _ => None,
        }
    })
    .await;
    let client = within(Client::connect(url)).await.unwrap();
    until(|| log.of("ping").len() == 1).await;
    let error = within(client.call("t", json!({})).into_future()).await.unwrap_err();
    assert!(matches!(error, Error::NotConnected { .. }), "{error:?}");
    until(|| log.of("ping").len() >= 2).await;
    // each of an endless search takes some 10 ms
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(log.of("ping").len() <= 3, "{}", log.of("ping").len());
}

#[tokio::test]
async fn a_session_that_a_resumption_finds_lost_is_replaced_and_the_call_is_not_repeated() {
    let ended = Arc::new(Mutex::new(None::<Arc<Mutex<bool>>>));
    let end = ended.clone();
    let (url, log, flag) = forgetful(move |seen| {
        (seen.message["params"]["name"] == "slow").then(|| {
            if let Some(ended) = &*end.lock().unwrap() {
                *ended.lock().unwrap() = true;
            }
            event_stream("id: 1\nretry: 5\ndata:\n\n")
        })
    })
    .await;
    *ended.lock().unwrap() = Some(flag);
    let client = within(Client::connect(url)).await.unwrap();
    let error = within(client.call("slow", json!({})).into_future()).await.unwrap_err();
    assert!(matches!(&error, Error::NotConnected { reason } if reason.contains("session")), "{error:?}");
    until(|| log.of("initialize").len() == 2).await;
    assert_eq!(log.of("tools/call").len(), 1, "what has begun is not begun again");
    assert_eq!(client.call("t", json!({})).await.unwrap().text(), "done");
    assert_eq!(log.of("initialize").len(), 2);
}

#[tokio::test]
async fn a_session_that_a_notification_finds_lost_is_replaced() {
    let (url, log, ended) = forgetful(|_| None).await;
    let client = within(Client::connect(url)).await.unwrap();
    *ended.lock().unwrap() = true;
    within(client.roots_changed()).await.unwrap();
    let sent = log.of("notifications/roots/list_changed");
    let sessions: Vec<_> = sent.iter().map(|seen| seen.header("mcp-session-id")).collect();
    assert_eq!(sessions, [Some("one"), Some("two")]);
    assert_eq!(log.of("initialize").len(), 2);
}

#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_says() {
    let attempts = Arc::new(Mutex::new(0));
    let counted = attempts.clone();
    let (url, _) = serve(move |seen| {
        modern(seen, || {
            let mut attempts = counted.lock().unwrap();
            *attempts += 1;
            match *attempts {
                1 => respond(429, &[("retry-after", "0")], ""),
                2 => respond(503, &[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")], ""),
                _ => seen.reply(&text_result("done")),
            }
        })
    })
    .await;
    let client = within(Client::connect(url)).await.unwrap();
    assert_eq!(client.call("t", json!({})).await.unwrap().text(), "done");
    assert_eq!(*attempts.lock().unwrap(), 3);
}

#[tokio::test]
async fn an_answer_that_may_not_have_reached_the_server_is_sent_again() {
    let answered = Arc::new(tokio::sync::Notify::new());
    let statuses = Arc::new(Mutex::new(VecDeque::from([502, 503, 202])));
    let (url, log) = serve(move |seen| {
        legacy(seen, "s", || {
            if seen.method == Method::GET {
                return empty(405);
            }
            if seen.message["id"] == "q" {
                let status = statuses.lock().unwrap().pop_front().unwrap();
                if status == 202 {
                    answered.notify_one();
                }
                return empty(status);
            }
            let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {
                "message": "Sure?", "requestedSchema": { "type": "object", "properties": {} } } });
            let result = response(&seen.message, text_result("done"));
            let answered = answered.clone();
            let then = async move {
                answered.notified().await;
                Ok::<_, std::io::Error>(format!("data: {result}\n\n"))
            };
            let first = std::future::ready(Ok(format!("data: {question}\n\n")));
            let events = futures_util::stream::once(first).chain(futures_util::stream::once(then));
            event_stream(Body::from_stream(events))
        })
    })
    .await;
    let client = Client::builder().on_elicit(|_| async { ElicitAnswer::Accept(json!({})) });
    let client = within(client.connect(url)).await.unwrap();
    assert_eq!(within(client.call("t", json!({})).into_future()).await.unwrap().text(), "done");
    let answers: Vec<_> = log.all().into_iter().filter(|seen| seen.message["id"] == "q").collect();
    assert_eq!(answers.len(), 3);
    for answer in answers {
        assert_eq!(answer.message["result"]["action"], "accept", "{answer:?}");
    }
}

#[tokio::test]
async fn redirects_are_followed_only_within_the_origin_and_with_their_method() {
    let (elsewhere, other) = serve(|seen| seen.reply(&json!({}))).await;
    for (status, location, is_followed) in [
        (307, "/moved", true),
        (308, "/moved", true),
        (302, "/moved", false),
        (307, elsewhere.as_str(), false),
    ] {
        let target = location.to_owned();
        let redirected = Arc::new(Mutex::new(false));
        let (url, log) = serve(move |seen| {
            modern(seen, || {
                let mut redirected = redirected.lock().unwrap();
                if std::mem::replace(&mut *redirected, true) {
                    return seen.reply(&text_result("done"));
                }
                respond(status, &[("location", &target)], "")
            })
        })
        .await;
        let client = within(Client::builder().bearer_token("secret").connect(url)).await.unwrap();
        let called = within(client.call("t", json!({})).into_future()).await;
        assert_eq!(called.is_ok(), is_followed, "{status} {location}: {called:?}");
        if let Err(error) = called {
            assert!(matches!(error, Error::Http { status: code, .. } if code == status), "{error:?}");
            let why = if status == 302 { "would repeat the POST as a GET" } else { "of another origin" };
            let text = error.to_string();
            assert!(text.contains(location) && text.contains(why), "{text}");
        }
        let posts = log.of("tools/call").len();
        assert_eq!(posts, if is_followed { 2 } else { 1 });
    }
    assert_eq!(other.all().len(), 0, "the token stays with its origin");
}

#[tokio::test]
async fn refusals_have_errors_of_their_own() {
    for (status, challenge, check) in [
        (
            401,
            Some("Bearer realm=\"x\""),
            (|error| matches!(error, Error::Unauthorized { challenge: Some(_) })) as fn(&Error) -> bool,
        ),
        (401, None, |error| matches!(error, Error::Unauthorized { challenge: None })),
        (
            403,
            Some("Bearer error=\"insufficient_scope\", scope=\"a b\""),
            |error| matches!(error, Error::Forbidden { scopes, .. } if scopes == &["a", "b"]),
        ),
        (
            403,
            None,
            |error| matches!(error, Error::Forbidden { scopes, body, .. } if scopes.is_empty() && body == "oops"),
        ),
        (500, None, |error| matches!(error, Error::Http { status: 500, body, .. } if body == "oops")),
    ] {
        let (url, _) = serve(move |seen| {
            modern(seen, || {
                let challenge = challenge.map(|text| ("www-authenticate", text));
                respond(status, challenge.as_slice(), "oops")
            })
        })
        .await;
        // pinned: the port may be that of a legacy server of another test, which the process remembers
        let builder = Client::builder().revision(Revision::V2026_07_28).bearer_token("top-secret");
        let client = within(builder.connect(url)).await.unwrap();
        let error = client.call("t", json!({})).await.unwrap_err();
        assert!(check(&error), "{status}: {error:?}");
        assert!(!format!("{error} {error:?} {client:?}").contains("top-secret"));
    }
    let refused = Client::connect("http://127.0.0.1:1/mcp").await.unwrap_err();
    assert!(matches!(refused, Error::NotConnected { .. }), "{refused:?}");
    assert!(matches!(Client::connect("http://").await, Err(Error::Invalid { .. })));
}

/// Waits until it is dropped
#[mcp_tool]
async fn linger(gate: &Gate) -> &'static str {
    gate.pass().await
}

#[tokio::test]
async fn dropped_calls_are_cancelled_in_the_way_of_their_revision_and_leave_no_task_here() {
    const AT_ONCE: usize = 25;
    for revision in [Revision::V2025_03_26, Revision::V2025_11_25, Revision::V2026_07_28] {
        let gate = Gate::default();
        let server = HttpServer::start(mcp_runtime::server!().tool::<linger>().state(gate.clone())).await;
        let client = Client::builder().revision(revision);
        let client = within(client.connect(format!("http://{}/mcp", server.address))).await.unwrap();
        client.ping().await.unwrap();
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        for batch in 1..=4 {
            let calls: Vec<_> =
                (0..AT_ONCE).map(|_| tokio::spawn(client.call("linger", json!({})).into_future())).collect();
            gate.until_entered(batch * AT_ONCE).await;
            for call in calls {
                call.abort();
                assert!(call.await.unwrap_err().is_cancelled());
            }
            gate.until_ended(batch * AT_ONCE, 0).await;
        }
        // those of both ends of connections that are kept for the next request, of which eight are for cancellations: a hundred
        // calls were dropped
        until(|| tasks() <= before + 2 * (8 + 2)).await;
        assert!(client.ping().await.is_ok());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxy_of_the_environment_is_used_with_its_credentials() {
    let (url, log) = serve(|seen| {
        if seen.header("proxy-authorization") != Some("Basic YWRhOm9wZW4=") {
            return empty(407);
        }
        modern(seen, || seen.reply(&text_result("through the proxy")))
    })
    .await;
    let proxy = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let run = move |credentials: &str| {
        let mut command = super::programs::program("proxy");
        // no such host exists: only the proxy can be reached
        command.env("MCP_TESTS_URL", "http://shop.invalid/mcp");
        command.env("HTTP_PROXY", format!("http://{credentials}@{proxy}")).env_remove("NO_PROXY");
        command.env("http_proxy", format!("http://{credentials}@{proxy}")).env_remove("no_proxy");
        let limit = crate::client::PATIENCE;
        tokio::task::spawn_blocking(move || mcp_tests::programs::child::run(&mut command, "", limit).unwrap())
    };
    let finished = run("ada:open").await.unwrap();
    assert!(finished.success && finished.stderr.contains("called through the proxy."), "{}", finished.stderr);
    assert!(log.all().iter().all(|seen| seen.header("host") == Some("shop.invalid")));
    let refused = run("ada:wrong").await.unwrap();
    assert!(
        !refused.success && refused.stderr.contains("HTTP status 407"),
        "{}\n{}",
        refused.stdout,
        refused.stderr
    );
}

#[tokio::test]
async fn each_caller_has_its_own_lists() {
    let (url, log) = serve(|seen| {
        modern(seen, || {
            let caller = seen.header("x-user").unwrap_or("none");
            let tool = json!({ "name": format!("of_{caller}"), "inputSchema": { "type": "object" } });
            seen.reply(&json!({ "resultType": "complete", "tools": [tool], "ttlMs": 60_000 }))
        })
    })
    .await;
    let user = Arc::new(Mutex::new("ada".to_owned()));
    let current = user.clone();
    let client = Client::builder().headers_with(move |headers| {
        headers.insert("x-user", current.lock().unwrap().parse().unwrap());
    });
    let client = within(client.connect(url)).await.unwrap();
    for (name, requests) in [("ada", 1), ("ada", 1), ("ben", 2), ("ada", 2), ("ben", 2)] {
        name.clone_into(&mut user.lock().unwrap());
        let tools = client.tools().await.unwrap();
        assert_eq!(tools[0].name(), format!("of_{name}"));
        assert_eq!(log.of("tools/list").len(), requests, "{name}");
    }
    // what is kept is bounded: the first one was dropped
    for number in 0..16 {
        *user.lock().unwrap() = format!("user{number}");
        client.tools().await.unwrap();
    }
    "ada".clone_into(&mut user.lock().unwrap());
    client.tools().await.unwrap();
    assert_eq!(log.of("tools/list").len(), 2 + 16 + 1);
}

#[tokio::test]
async fn a_server_over_http_sse_is_used_and_its_session_is_replaced() {
    let with_sse = || builder().http(|http| http.legacy_sse("/sse"));
    let mut server = HttpServer::start(with_sse()).await;
    let address = server.address;
    let url = format!("http://{address}/sse");
    for revision in [None, Some(Revision::V2024_11_05)] {
        let options = super::pinned(revision).http_sse();
        let client = within(options.connect(&url)).await.unwrap();
        assert_eq!(client.revision(), Some(revision.unwrap_or(Revision::V2025_11_25)));
        assert_eq!(
            client.call("echo", json!({ "message": "a\u{2028}b" })).await.unwrap().text(),
            "a\u{2028}b"
        );
        let steps = Arc::new(Mutex::new(0));
        let counted = steps.clone();
        let call = client.call("steps", json!({})).on_progress(move |_| *counted.lock().unwrap() += 1);
        assert_eq!(within(call.into_future()).await.unwrap().text(), "worked");
        assert_eq!(*steps.lock().unwrap(), 3);
        within(client.close()).await;
    }
    let options = Client::builder().http_sse();
    let client = within(options.connect(&url)).await.unwrap();
    assert!(client.ping().await.is_ok());
    server.stop();
    server.stopped().await;
    // until the client has seen the end of its connection
    within(async {
        while client.ping().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let _server = HttpServer::at(address, &with_sse().build().unwrap()).await;
    let result = within(client.call("echo", json!({ "message": "again" })).into_future()).await.unwrap();
    assert_eq!(result.text(), "again");

    // nothing of that kind, another revision, and an address somewhere else
    let error =
        within(Client::builder().http_sse().connect(format!("http://{address}/mcp"))).await.unwrap_err();
    assert!(matches!(error, Error::Http { .. } | Error::Invalid { .. }), "{error:?}");
    let modern = Client::builder().http_sse().revision(Revision::V2026_07_28);
    assert!(matches!(within(modern.connect(&url)).await, Err(Error::Unsupported { .. })));
    let (elsewhere, _) = serve(|_| {
        let event = "event: endpoint\ndata: http://other.invalid/messages\n\n";
        event_stream(event)
    })
    .await;
    let error = within(Client::builder().http_sse().connect(elsewhere)).await.unwrap_err();
    assert!(matches!(&error, Error::Invalid { what } if what.contains("origin")), "{error:?}");
}

#[tokio::test]
async fn posts_over_http_sse_have_the_header_of_the_revision() {
    for (version, header) in
        [("2025-11-25", Some("2025-11-25")), ("2025-06-18", Some("2025-06-18")), ("2024-11-05", None)]
    {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel::<String>();
        let events = Arc::new(Mutex::new(Some(receiver)));
        let (url, log) = serve(move |seen| {
            if seen.method == Method::GET {
                let receiver = events.lock().unwrap().take().expect("one stream");
                let events = futures_util::stream::unfold(receiver, |mut receiver| async move {
                    let event = receiver.recv().await?;
                    Some((Ok::<_, std::io::Error>(event), receiver))
                });
                let first = futures_util::stream::iter([Ok("event: endpoint\ndata: /moved\n\n".to_owned())]);
                return event_stream(Body::from_stream(first.chain(events)));
            }
            let result = match seen.message["method"].as_str() {
                Some("initialize") => initialized(version, json!({ "tools": {} })),
                _ => text_result("done"),
            };
            if !seen.message["id"].is_null() {
                let reply = response(&seen.message, result);
                sender.send(format!("data: {reply}\n\n")).unwrap();
            }
            empty(202)
        })
        .await;
        let client = within(Client::builder().http_sse().connect(url)).await.unwrap();
        assert_eq!(within(client.call("t", json!({})).into_future()).await.unwrap().text(), "done");
        let of = |method: &str| log.of(method)[0].header("mcp-protocol-version").map(str::to_owned);
        assert_eq!(of("initialize"), None);
        assert_eq!(of("notifications/initialized").as_deref(), header, "{version}");
        assert_eq!(of("tools/call").as_deref(), header, "{version}");
    }
}

#[tokio::test]
async fn the_standalone_stream_is_open_before_a_client_that_answers_requests_is_used() {
    let opened = Arc::new(Mutex::new(Vec::new()));
    let kept = opened.clone();
    let (url, _) = serve(move |seen| {
        legacy(seen, "s", || {
            kept.lock().unwrap().push(seen.method.clone());
            match seen.method {
                Method::GET => event_stream(": open\n\n"),
                _ => seen.reply(&text_result("x")),
            }
        })
    })
    .await;
    let client = Client::builder().on_roots(|| async { Vec::new() });
    let client = within(client.connect(url)).await.unwrap();
    client.call("t", json!({})).await.unwrap();
    assert_eq!(opened.lock().unwrap()[0], Method::GET);
}

#[tokio::test]
async fn replies_without_a_response_are_described_in_plain_words() {
    for (status, kind, body, expected) in [
        (
            202,
            None,
            "",
            "the server answers `tools/call` with HTTP status 202 and no response: the body is empty",
        ),
        (
            204,
            None,
            "",
            "the server answers `tools/call` with HTTP status 204 and no response: the body is empty",
        ),
        (
            202,
            Some("text/plain"),
            "later",
            "the server answers `tools/call` with HTTP status 202 and no response: the body is text/plain, and begins \
             with `later`",
        ),
        (
            200,
            None,
            "ok",
            "the server answers `tools/call` with HTTP status 200 and no response: the body has no type, and begins \
             with `ok`",
        ),
    ] {
        let (url, _) = serve(move |seen| {
            let headers: Vec<_> = kind.map(|kind| ("content-type", kind)).into_iter().collect();
            match seen.message["method"].as_str() {
                Some("server/discover") => seen.reply(&discovered(json!({ "tools": {} }))),
                _ => respond(status, &headers, body),
            }
        })
        .await;
        let client = within(Client::connect(url)).await.unwrap();
        let error = within(client.call("t", json!({})).into_future()).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let (url, _) = serve(|seen| match seen.message["method"].as_str() {
        Some("notifications/initialized") => {
            let error = json!({ "code": -32600, "message": "Bad Request: no session" });
            json_response(400, &[], &json!({ "jsonrpc": "2.0", "id": null, "error": error }))
        }
        _ => legacy_handshake(seen, "s").unwrap_or_else(|| empty(405)),
    })
    .await;
    let error = within(Client::connect(url)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "HTTP status 400: the server accepts `initialize`, and refuses `notifications/initialized`, which follows it: \
         Bad Request: no session"
    );
}
