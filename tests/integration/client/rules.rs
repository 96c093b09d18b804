//! Rules of the protocol for clients, with servers that do not keep theirs: what is ignored, refused, or never sent.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_runtime::{
    Revision,
    client::{ChangeEvent, Client, ClientBuilder, CompletionOf, ElicitAnswer, Error, SampleAnswer},
};
use mcp_tests::support::{
    Peer, SUBSCRIPTION, cancelled, discovered, initialized, notification, refusal, request,
};
use serde_json::{Value, json};

use super::{keeping_changes, until, within};

/// A client of this revision and its server, after the handshake.
async fn connected(revision: Revision, capabilities: Value, builder: ClientBuilder) -> (Client, Peer) {
    let (streams, mut peer) = Peer::new(1 << 16);
    let handshake = async {
        if revision.is_modern() {
            peer.answer("server/discover", &discovered(capabilities)).await;
            return;
        }
        peer.answer("initialize", &initialized(revision.as_str(), capabilities)).await;
        assert_eq!(peer.next().await["method"], "notifications/initialized");
    };
    let connecting = within(builder.revision(revision).connect(streams));
    let (client, ()) = tokio::join!(connecting, handshake);
    (client.unwrap(), peer)
}

/// Functions for questions, and how often they were called.
fn asked(form: bool, url: bool, sample: bool) -> (ClientBuilder, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let mut builder = Client::builder();
    let counted = || {
        let calls = calls.clone();
        move || calls.fetch_add(1, Ordering::SeqCst)
    };
    if form {
        let count = counted();
        builder = builder.on_elicit(move |_| {
            count();
            async { ElicitAnswer::Accept(json!({})) }
        });
    }
    if url {
        let count = counted();
        builder = builder.on_elicit_url(move |_| {
            count();
            async { ElicitAnswer::Accept(json!({})) }
        });
    }
    if sample {
        let count = counted();
        builder = builder.on_sample(move |_| {
            count();
            async { Ok(SampleAnswer::text("scripted", "x")) }
        });
    }
    (builder, calls)
}

#[tokio::test]
async fn a_server_that_ends_fails_its_calls_whatever_they_wait_for() {
    let (answer, answered) = tokio::sync::watch::channel(false);
    let builder = Client::builder().on_elicit(move |_| {
        let mut answered = answered.clone();
        async move {
            answered.wait_for(|answered| *answered).await.unwrap();
            ElicitAnswer::Accept(json!({}))
        }
    });
    let (client, mut peer) = connected(Revision::V2026_07_28, json!({ "tools": {} }), builder).await;
    let call =
        |tool: &str, text: &str| tokio::spawn(client.call(tool, json!({ "text": text })).into_future());
    let asks = call("asks", "");
    let question = json!({ "method": "elicitation/create", "params": { "message": "?" } });
    let required = json!({ "resultType": "input_required", "inputRequests": { "q": question } });
    peer.answer("tools/call", &required).await;
    let waits = call("waits", "");
    assert_eq!(peer.next().await["params"]["name"], "waits");
    // more than there is room for: the server reads no more
    let text = |n| if n == 0 { "x".repeat(128 << 10) } else { String::new() };
    let unwritten: Vec<_> = (0..300).map(|n| call("unwritten", &text(n))).collect();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    drop(peer);
    for call in unwritten.into_iter().chain([waits]) {
        let failed = within(call).await.unwrap();
        assert!(matches!(failed, Err(Error::Closed { .. })), "{failed:?}");
    }
    answer.send_replace(true);
    let failed = within(asks).await.unwrap();
    assert!(matches!(failed, Err(Error::Closed { .. })), "{failed:?}");
}

#[tokio::test]
async fn a_stream_of_changes_that_the_server_cancels_is_opened_again_and_has_ended_once_it_is_refused() {
    let (builder, seen) = keeping_changes();
    let capabilities = json!({ "tools": { "listChanged": true } });
    let (client, mut peer) = connected(Revision::V2026_07_28, capabilities.clone(), builder).await;
    let listen = peer.next().await;
    assert_eq!(listen["method"], "subscriptions/listen");
    let meta = json!({ SUBSCRIPTION: listen["id"] });
    let accepted = json!({ "_meta": meta, "notifications": { "toolsListChanged": true } });
    peer.send(&notification("notifications/subscriptions/acknowledged", accepted.clone())).await;
    // one that names no subscription ends none
    peer.send(&cancelled(9999)).await;
    peer.send(&notification("notifications/tools/list_changed", json!({ "_meta": meta }))).await;
    until(|| !seen.lock().unwrap().is_empty()).await;
    assert_eq!(*seen.lock().unwrap(), [ChangeEvent::Tools]);
    peer.send(&cancelled(listen["id"].clone())).await;
    let again = peer.next().await;
    assert_eq!(
        (&again["method"], &again["params"]["notifications"]),
        (&listen["method"], &accepted["notifications"])
    );
    peer.send(&refusal(&again, -32601)).await;
    until(|| seen.lock().unwrap().len() > 1).await;
    assert_eq!(*seen.lock().unwrap(), [ChangeEvent::Tools, ChangeEvent::Ended]);
    // a request that has ended is not cancelled by the client
    let (pinged, ()) = tokio::join!(within(client.ping().into_future()), async {
        peer.answer("server/discover", &discovered(capabilities.clone())).await;
    });
    pinged.unwrap();
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_while_a_server_ends_its_streams_of_changes_at_once() {
    let (builder, seen) = keeping_changes();
    let capabilities = json!({ "tools": { "listChanged": true } });
    let (_client, mut peer) = connected(Revision::V2026_07_28, capabilities, builder).await;
    let (start, mut streams) = (tokio::time::Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(300) {
        let listen = peer.next().await;
        streams += 1;
        let params = json!({ "_meta": { SUBSCRIPTION: listen["id"] }, "notifications": {} });
        peer.send(&notification("notifications/subscriptions/acknowledged", params)).await;
        peer.reply(&listen, &json!({})).await;
    }
    assert!((5..=12).contains(&streams), "{streams} streams");
    assert!(seen.lock().unwrap().iter().all(|event| *event == ChangeEvent::Restored), "{seen:?}");
    // the pause after the first one that lasted, such as for the life of a short token, is a second
    let mut start = None::<tokio::time::Instant>;
    for lasts in [4, 10, 30, 3] {
        let listen = peer.next().await;
        let pause = start.map(|start| start.elapsed());
        assert!(pause.is_none_or(|pause| pause < Duration::from_millis(1500)), "{lasts}: {pause:?}");
        let params = json!({ "_meta": { SUBSCRIPTION: listen["id"] }, "notifications": {} });
        peer.send(&notification("notifications/subscriptions/acknowledged", params)).await;
        tokio::time::sleep(Duration::from_secs(lasts)).await;
        peer.reply(&listen, &json!({})).await;
        start = Some(tokio::time::Instant::now());
    }
}

/// How a server ends a stream of changes, or refuses the next one.
#[derive(Debug, Clone, Copy)]
enum Interruption {
    Ended,
    Broken,
    Refused,
    OneRefused,
}

#[tokio::test(start_paused = true)]
async fn each_subscription_hears_what_becomes_of_the_stream_of_changes_without_a_function_for_all() {
    for interruption in
        [Interruption::Ended, Interruption::Broken, Interruption::Refused, Interruption::OneRefused]
    {
        let capabilities = json!({ "resources": { "subscribe": true } });
        let (client, mut peer) = connected(Revision::V2026_07_28, capabilities, Client::builder()).await;
        let (mut subscriptions, mut seen) = (Vec::new(), Vec::new());
        let mut listen = Value::Null;
        for uri in ["x://one", "x://other"] {
            let kept = Arc::<Mutex<Vec<ChangeEvent>>>::default();
            seen.push(kept.clone());
            let subscribing = client.subscribe(uri, move |event| kept.lock().unwrap().push(event));
            let (subscription, asked) = tokio::join!(within(subscribing), async {
                let listen = peer.next().await;
                acknowledge(&mut peer, &listen, &listen["params"]["notifications"]).await;
                listen
            });
            subscriptions.push(subscription.unwrap());
            listen = asked;
        }
        // the first stream
        assert_eq!(peer.next().await["method"], "notifications/cancelled");
        match interruption {
            Interruption::Broken => peer.send(&refusal(&listen, -32603)).await,
            _ => peer.reply(&listen, &json!({})).await,
        }
        let again = peer.next().await;
        assert_eq!(again["params"]["notifications"], listen["params"]["notifications"]);
        let of_one = json!({ "resourceSubscriptions": ["x://one"] });
        match interruption {
            Interruption::Refused => peer.send(&refusal(&again, -32601)).await,
            Interruption::OneRefused => acknowledge(&mut peer, &again, &of_one).await,
            _ => acknowledge(&mut peer, &again, &again["params"]["notifications"]).await,
        }
        let (restored, ended) = (vec![ChangeEvent::Restored], vec![ChangeEvent::Ended]);
        let expected = match interruption {
            Interruption::Ended => [restored.clone(), restored],
            Interruption::Broken => [(); 2].map(|()| vec![ChangeEvent::Lost, ChangeEvent::Restored]),
            Interruption::Refused => [ended.clone(), ended],
            Interruption::OneRefused => [restored, ended],
        };
        for (seen, expected) in seen.iter().zip(&expected) {
            until(|| seen.lock().unwrap().len() >= expected.len()).await;
            assert_eq!(*seen.lock().unwrap(), *expected, "{interruption:?}");
        }
        if matches!(interruption, Interruption::OneRefused) {
            // the stream goes on without it, and it may be subscribed to again
            let without = peer.next().await;
            assert_eq!(without["params"]["notifications"], of_one);
            acknowledge(&mut peer, &without, &of_one).await;
            assert_eq!(peer.next().await["method"], "notifications/cancelled");
            let (again, ()) = tokio::join!(within(client.subscribe("x://other", |_| {})), async {
                let listen = peer.next().await;
                acknowledge(&mut peer, &listen, &listen["params"]["notifications"]).await;
            });
            drop(again.unwrap());
        }
    }
}

/// Opens a stream of changes with this filter.
async fn acknowledge(peer: &mut Peer, listen: &Value, filter: &Value) {
    assert_eq!(listen["method"], "subscriptions/listen");
    let params = json!({ "_meta": { SUBSCRIPTION: listen["id"] }, "notifications": filter });
    peer.send(&notification("notifications/subscriptions/acknowledged", params)).await;
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_request_stands_still_while_the_program_answers_the_server() {
    const REQUEST: Duration = Duration::from_secs(30);
    async fn think() {
        tokio::time::sleep(Duration::from_secs(200)).await;
    }
    let form = json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } });
    let sample = json!({ "messages": [], "maxTokens": 1 });
    for (method, params) in
        [("elicitation/create", form), ("sampling/createMessage", sample), ("roots/list", json!({}))]
    {
        let builder = Client::builder()
            .request_timeout(REQUEST)
            .on_elicit(|_| async {
                think().await;
                ElicitAnswer::Accept(json!({}))
            })
            .on_sample(|_| async {
                think().await;
                Ok(SampleAnswer::text("m", "x"))
            })
            .on_roots(|| async {
                think().await;
                Vec::new()
            });
        let (client, mut peer) = connected(Revision::V2025_06_18, json!({ "tools": {} }), builder).await;
        let call = tokio::spawn(client.call("t", json!({})).into_future());
        let called = peer.next().await;
        peer.send(&request(7, method, params.clone())).await;
        assert_eq!(peer.next().await["id"], 7, "{method}");
        tokio::time::sleep(REQUEST / 2).await;
        peer.reply(&called, &json!({ "content": [] })).await;
        call.await.unwrap().unwrap_or_else(|error| panic!("{method}: {error}"));
        // the time goes on afterwards, and that of the whole call goes on meanwhile
        let start = tokio::time::Instant::now();
        let call = tokio::spawn(client.call("t", json!({})).into_future());
        peer.next().await;
        peer.send(&request(8, method, params.clone())).await;
        let failed = call.await.unwrap();
        assert!(matches!(failed, Err(Error::Timeout { option: Some("request_timeout"), .. })), "{failed:?}");
        assert!((229..=235).contains(&start.elapsed().as_secs()), "{method}: {:?}", start.elapsed());
        let call = client.call("t", json!({})).timeout(Duration::from_secs(100));
        let (failed, ()) = tokio::join!(call.into_future(), async {
            while peer.next().await["method"] != "tools/call" {}
            peer.send(&request(9, method, params)).await;
        });
        assert!(matches!(failed, Err(Error::Timeout { option: Some("timeout"), .. })), "{failed:?}");
    }
}

#[tokio::test]
async fn a_question_of_a_task_is_asked_once_while_it_is_listed() {
    let (builder, calls) = asked(true, false, false);
    let (client, mut peer) = connected(Revision::V2026_07_28, json!({ "tools": {} }), builder).await;
    let call = tokio::spawn(client.call("t", json!({})).into_future());
    let task = |status: &str| json!({ "taskId": "1", "status": status, "pollIntervalMs": 10 });
    let mut created = task("working");
    created["resultType"] = "task".into();
    peer.answer("tools/call", &created).await;
    let question = |text: &str| json!({ "method": "elicitation/create", "params": { "message": text } });
    let mut polls = 0;
    loop {
        let message = peer.next().await;
        match message["method"].as_str() {
            Some("tasks/get") => {
                polls += 1;
                let mut state = task("input_required");
                state["inputRequests"] = json!({ "q": question("?") });
                if polls > 2 {
                    state["inputRequests"]["other"] = question("!");
                }
                if polls > 4 {
                    state = task("completed");
                    state["result"] = json!({ "content": [] });
                }
                peer.reply(&message, &state).await;
                if polls > 4 {
                    break;
                }
            }
            Some("tasks/update") => {
                let key = if polls > 2 { "other" } else { "q" };
                let answers = message["params"]["inputResponses"].as_object().unwrap();
                assert_eq!(answers.keys().collect::<Vec<_>>(), [key]);
                peer.reply(&message, &json!({})).await;
            }
            other => panic!("{other:?}"),
        }
    }
    within(call).await.unwrap().unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_capability_that_is_true_is_declared_and_one_that_is_false_is_not() {
    let capabilities = json!({ "tools": true, "prompts": false, "resources": { "subscribe": null } });
    let (client, mut peer) = connected(Revision::V2026_07_28, capabilities, Client::builder()).await;
    assert!(client.supports("tools") && !client.supports("prompts") && client.supports("resources"));
    assert!(!client.supports("resources.subscribe"));
    let none = json!({ "tools": [] });
    let (tools, _) = tokio::join!(within(client.tools().into_future()), peer.answer("tools/list", &none));
    assert_eq!(tools.unwrap().len(), 0);
    assert!(matches!(client.prompts().await, Err(Error::Unsupported { .. })));
    assert!(matches!(client.subscribe("a://b", |_| {}).await, Err(Error::Unsupported { .. })));
}

#[tokio::test]
async fn halves_of_surrogate_pairs_are_read_as_the_replacement_character() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let logged = seen.clone();
    let builder = Client::builder().on_log(move |log| logged.lock().unwrap().push(log.data));
    let capabilities = json!({ "tools": {}, "logging": {} });
    let (client, mut peer) = connected(Revision::V2025_06_18, capabilities, builder).await;
    peer.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"a\\ude00\"}}\n")
        .await
        .unwrap();
    for (reply, expected) in [
        (r#""result":{"content":[{"type":"text","text":"a\ud83d"}]}"#, "a\u{fffd}"),
        (r#""error":{"code":-32603,"message":"a\ud83db"}"#, "a\u{fffd}b (-32603)"),
    ] {
        let call = tokio::spawn(client.call("t", json!({})).into_future());
        let called = peer.next().await;
        let reply = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},{reply}}}\n", called["id"]);
        peer.write(reply.as_bytes()).await.unwrap();
        let text = match within(call).await.unwrap() {
            Ok(result) => result.text(),
            Err(error) => error.to_string(),
        };
        assert_eq!(text, expected);
    }
    assert_eq!(*seen.lock().unwrap(), [json!("a\u{fffd}")]);
}

#[tokio::test]
async fn changes_on_a_shared_channel_count_only_with_the_id_of_a_subscription() {
    let (builder, seen) = keeping_changes();
    let capabilities = json!({ "tools": { "listChanged": true }, "prompts": { "listChanged": true } });
    let (_client, mut peer) = connected(Revision::V2026_07_28, capabilities, builder).await;
    let listen = peer.next().await;
    for params in [json!({}), json!({ "_meta": { SUBSCRIPTION: 9999 } })] {
        for method in ["notifications/tools/list_changed", "notifications/resources/updated"] {
            let mut params = params.clone();
            params["uri"] = "x://y".into();
            peer.send(&notification(method, params)).await;
        }
    }
    let meta = json!({ SUBSCRIPTION: listen["id"] });
    peer.send(&notification("notifications/prompts/list_changed", json!({ "_meta": meta }))).await;
    until(|| !seen.lock().unwrap().is_empty()).await;
    assert_eq!(*seen.lock().unwrap(), [ChangeEvent::Prompts]);
}

#[tokio::test]
async fn a_client_of_2026_07_28_answers_no_request_of_the_server() {
    let (builder, calls) = asked(true, true, true);
    let (client, mut peer) = connected(Revision::V2026_07_28, json!({ "tools": {} }), builder).await;
    for round in 0..3 {
        for (method, params) in [
            ("ping", json!({})),
            ("elicitation/create", json!({ "message": "?", "requestedSchema": { "type": "object" } })),
            ("sampling/createMessage", json!({ "messages": [], "maxTokens": 1 })),
            ("no/such", json!({})),
        ] {
            let id = format!("{method}{round}");
            peer.send(&request(id, method, params)).await;
        }
        // a response would come before what is sent later
        let (pinged, ()) = tokio::join!(within(client.ping().into_future()), async {
            peer.answer("server/discover", &discovered(json!({ "tools": {} }))).await;
        });
        pinged.unwrap();
    }
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_legacy_server_gets_an_error_for_what_the_client_did_not_declare() {
    let form = json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } });
    let of_mode = |mode: Value| {
        let mut params = form.clone();
        params["mode"] = mode;
        params["url"] = "https://example.com".into();
        params["elicitationId"] = "1".into();
        params
    };
    let sample = json!({ "messages": [], "maxTokens": 1 });
    let with = |key: &str| {
        let mut params = sample.clone();
        params[key] = json!(if key == "tools" { json!([]) } else { json!({ "mode": "auto" }) });
        params
    };
    for (form_too, url_too, method, params, code) in [
        (true, false, "elicitation/create", form.clone(), None),
        (true, false, "elicitation/create", of_mode("form".into()), None),
        (true, false, "elicitation/create", of_mode("url".into()), Some(-32602)),
        (true, true, "elicitation/create", of_mode("voice".into()), Some(-32602)),
        (true, true, "elicitation/create", of_mode(json!(5)), Some(-32602)),
        (false, true, "elicitation/create", of_mode("url".into()), None),
        (false, true, "elicitation/create", form.clone(), Some(-32602)),
        (false, true, "elicitation/create", of_mode("form".into()), Some(-32602)),
        (false, false, "elicitation/create", form.clone(), Some(-32601)),
        (false, false, "sampling/createMessage", sample.clone(), None),
        (false, false, "sampling/createMessage", with("tools"), Some(-32602)),
        (false, false, "sampling/createMessage", with("toolChoice"), Some(-32602)),
    ] {
        let (builder, calls) = asked(form_too, url_too, true);
        let (_client, mut peer) = connected(Revision::V2025_11_25, json!({}), builder).await;
        let reply = peer.ask(method, &params).await;
        assert_eq!(reply["error"]["code"].as_i64(), code, "{params}: {reply}");
        assert_eq!(calls.load(Ordering::SeqCst), usize::from(code.is_none()), "{params}");
    }
    let (builder, calls) = asked(false, false, true);
    let (_client, mut peer) = connected(Revision::V2025_11_25, json!({}), builder.sample_with_tools()).await;
    let reply = peer.ask("sampling/createMessage", &with("tools")).await;
    assert_eq!((reply["result"]["model"].as_str(), calls.load(Ordering::SeqCst)), (Some("scripted"), 1));
}

#[tokio::test]
async fn input_that_the_client_did_not_declare_is_not_given() {
    let tools = json!({ "method": "sampling/createMessage",
        "params": { "messages": [], "maxTokens": 1, "tools": [{ "name": "t", "inputSchema": {} }] } });
    let voice = json!({ "method": "elicitation/create",
        "params": { "mode": "voice", "message": "?", "requestedSchema": { "type": "object" } } });
    for (request, is_error) in [(tools, true), (voice, false)] {
        let (builder, calls) = asked(true, true, true);
        let (client, mut peer) = connected(Revision::V2026_07_28, json!({ "tools": {} }), builder).await;
        let required = json!({ "resultType": "input_required", "inputRequests": { "a": request } });
        let (called, ()) = tokio::join!(within(client.call("t", json!({})).into_future()), async {
            peer.answer("tools/call", &required).await;
            if !is_error {
                let again =
                    peer.answer("tools/call", &json!({ "resultType": "complete", "content": [] })).await;
                assert_eq!(again["params"]["inputResponses"], json!({ "a": { "action": "decline" } }));
            }
        });
        match called {
            Err(Error::Handler { method, .. }) if is_error => assert_eq!(method, "sampling/createMessage"),
            called => assert!(called.is_ok() && !is_error, "{called:?}"),
        }
        assert_eq!(calls.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn a_tool_becomes_a_task_of_2025_11_25_only_where_server_and_tool_allow_it() {
    let declared = json!({ "tools": {}, "tasks": { "requests": { "tools": { "call": {} } } } });
    let tool = |support: Value| {
        json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" },
        "execution": support }] })
    };
    let task = json!({ "task": { "taskId": "1", "status": "working", "createdAt": "2025-11-25T00:00:00Z", "ttl": null } });
    let done = json!({ "content": [] });
    for (revision, capabilities, support, is_task) in [
        (Revision::V2025_11_25, &declared, json!({ "taskSupport": "required" }), true),
        (Revision::V2025_11_25, &declared, json!({ "taskSupport": "optional" }), true),
        (Revision::V2025_11_25, &declared, json!({ "taskSupport": "forbidden" }), false),
        (Revision::V2025_11_25, &declared, json!({}), false),
        (Revision::V2025_11_25, &json!({ "tools": {} }), json!({ "taskSupport": "required" }), false),
        (Revision::V2025_06_18, &declared, json!({ "taskSupport": "required" }), false),
    ] {
        let (client, mut peer) = connected(revision, capabilities.clone(), Client::builder()).await;
        // a tool that is not known yet is looked up, where the server could make a task of it
        let begin = async {
            let begun = client.call_task("t", json!({})).await;
            begun.map(|task| drop(task.detach()))
        };
        let serve = async {
            if revision == Revision::V2025_11_25 && capabilities.get("tasks").is_some() {
                peer.answer("tools/list", &tool(support.clone())).await;
            }
            if is_task {
                let call = peer.answer("tools/call", &task).await;
                assert_eq!(call["params"]["task"], json!({}));
            }
        };
        let (begun, ()) = tokio::join!(within(begin), serve);
        match begun {
            Err(Error::Unsupported { what }) if !is_task => assert!(what.contains("`t` as a task"), "{what}"),
            begun => assert!(begun.is_ok() && is_task, "{support}: {begun:?}"),
        }
        if is_task {
            continue;
        }
        let (listed, ()) =
            tokio::join!(client.tools().refresh(mcp_runtime::client::Refresh::Yes).into_future(), async {
                peer.answer("tools/list", &tool(support.clone())).await;
            });
        assert_eq!(listed.unwrap().len(), 1);
        let (called, ()) = tokio::join!(within(client.call("t", json!({})).into_future()), async {
            let call = peer.answer("tools/call", &done).await;
            assert_eq!(call["params"].get("task"), None, "{support} {revision}");
        });
        called.unwrap();
    }
}

#[tokio::test]
async fn a_result_of_a_type_that_the_client_does_not_know_is_invalid() {
    let capabilities = json!({ "tools": {}, "resources": {}, "prompts": {}, "completions": {} });
    let (client, mut peer) = connected(Revision::V2026_07_28, capabilities, Client::builder()).await;
    let members = json!({ "tools": [], "contents": [], "messages": [], "content": [], "taskId": "1",
        "completion": { "values": [] }, "supportedVersions": ["2026-07-28"], "capabilities": {} });
    let of_type = |kind: &str| {
        let mut result = members.clone();
        result["resultType"] = kind.into();
        result
    };
    macro_rules! refused {
        ($method:literal, $kind:literal, $call:expr) => {
            let result = of_type($kind);
            let (called, ()) = tokio::join!(within($call.into_future()), async {
                peer.answer($method, &result).await;
            });
            let error = called.map(drop).expect_err($method);
            assert!(matches!(&error, Error::Invalid { what } if what.contains($kind)), "{}: {error:?}", $method);
        };
    }
    for _ in 0..2 {
        refused!("tools/list", "dance", client.tools());
        refused!("tools/list", "task", client.tools());
        refused!("tools/list", "input_required", client.tools());
        refused!("completion/complete", "dance", client.complete(&CompletionOf::Prompt("p"), "a", "b"));
        refused!("server/discover", "dance", client.ping());
        refused!("resources/read", "dance", client.read("x://y"));
        refused!("resources/read", "task", client.read("x://y"));
        refused!("prompts/get", "task", client.prompt("p", json!({})));
        refused!("tools/call", "dance", client.call("t", json!({})));
    }
    let (begun, ()) = tokio::join!(within(client.call_task("t", json!({})).into_future()), async {
        peer.answer("tools/call", &of_type("task")).await;
    });
    let task = begun.unwrap();
    let (status, ()) = tokio::join!(within(task.status()), async {
        peer.answer("tasks/get", &of_type("dance")).await;
    });
    assert!(matches!(&status, Err(Error::Invalid { what }) if what.contains("dance")), "{status:?}");
    drop(task.detach());
}

#[tokio::test]
async fn responses_that_belong_to_a_task_say_so_and_pings_are_answered_by_a_busy_client() {
    let builder = Client::builder().limits(|limits| limits.server_requests(1)).on_elicit(|form| async move {
        if form.message == "wait" {
            std::future::pending::<()>().await;
        }
        ElicitAnswer::Decline
    });
    let (_client, mut peer) = connected(Revision::V2025_11_25, json!({}), builder).await;
    let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": "t-1" } });
    let form = |message: &str| json!({ "message": message, "requestedSchema": { "type": "object" }, "_meta": related });
    let reply = peer.ask("elicitation/create", &form("now")).await;
    assert_eq!(reply["result"], json!({ "action": "decline", "_meta": related }));
    peer.send(&request("w", "elicitation/create", form("wait"))).await;
    assert_eq!(peer.ask("elicitation/create", &form("now")).await["error"]["code"], -32603, "it is busy");
    assert_eq!(peer.ask("ping", &json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn structured_content_that_is_null_is_kept_and_a_schema_of_an_unknown_dialect_is_enforced_in_part() {
    let (client, mut peer) =
        connected(Revision::V2026_07_28, json!({ "tools": {} }), Client::builder()).await;
    let result = |structured: Value| json!({ "resultType": "complete", "content": [], "structuredContent": structured });
    let mut call = async |result: Value| {
        let (called, ()) = tokio::join!(within(client.call("t", json!({})).into_future()), async {
            peer.answer("tools/call", &result).await;
        });
        called.unwrap()
    };
    let null = call(result(Value::Null)).await;
    assert_eq!(null.structured, Some(Value::Null));
    assert_eq!(null.structured::<Option<u8>>().unwrap(), None);
    assert_eq!(call(json!({ "resultType": "complete", "content": [] })).await.structured, None);
    let definition = json!({ "name": "t", "inputSchema": { "type": "object" },
        "outputSchema": { "$schema": "https://example.com/a-dialect", "type": "object" } });
    client.add_known_tools([definition]).unwrap();
    assert!(call(result(json!({ "a": 1 }))).await.structured::<Value>().is_ok());
    let error = call(result(json!([1]))).await.structured::<Value>().unwrap_err();
    assert!(matches!(&error, Error::Invalid { what } if what.contains("output schema")), "{error:?}");
}

#[tokio::test]
async fn a_list_that_was_asked_for_with_meta_is_not_kept() {
    let capabilities = json!({ "tools": {} });
    let (client, mut peer) = connected(Revision::V2026_07_28, capabilities, Client::builder()).await;
    for (meta, name, is_asked) in [
        (None, "a", true),
        (None, "a", false),
        (Some("x"), "b", true),
        (Some("x"), "c", true),
        (None, "a", false),
    ] {
        let mut list = client.tools();
        if let Some(meta) = meta {
            list = list.meta("mine", meta);
        }
        let page = json!({ "resultType": "complete", "ttlMs": 60_000, "tools": [{ "name": name, "inputSchema": {} }] });
        let (tools, ()) = tokio::join!(within(list.into_future()), async {
            if is_asked {
                peer.answer("tools/list", &page).await;
            }
        });
        assert_eq!(tools.unwrap()[0].name(), name);
    }
}
