//! What servers ask of clients, and what they send on their own: forms, samples, folders, tasks, changes.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_runtime::{
    Revision, Server, ServerBuilder, ServerHandle,
    client::{ChangeEvent, Client, ClientBuilder, ElicitAnswer, Error, SampleAnswer},
    client_request::{Answer, CreateMessage, Root},
    context::LogLevel,
    prelude::*,
};
use mcp_tests::support::{Act, Peer, SUBSCRIPTION, initialized, notification};
use serde_json::{Value, json};

use super::{Transport, connect, keeping_changes, pinned, played, until, within};

#[mcp_type]
#[derive(Debug)]
struct Order {
    name: String,
    #[serde(default = "three")]
    count: u32,
}

fn three() -> u32 {
    3
}

#[tokio::test]
async fn answers_that_do_not_fit_the_form_are_not_sent() {
    let server = mcp_runtime::server!().tool::<survey>().build().unwrap();
    for (answer, says) in [
        (json!({ "name": 5 }), "name"),
        (json!({ "name": "tea", "count": "three" }), "count"),
        (json!({}), "name"),
        (json!("tea"), "not an object"),
    ] {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let given = answer.clone();
            let builder = Client::builder().revision(revision).on_elicit(move |_| {
                let given = given.clone();
                async move { ElicitAnswer::Accept(given) }
            });
            let connected = connect(&server, Transport::Stdio, builder).await.unwrap();
            let called = within(connected.client.call("survey", json!({})).into_future()).await;
            let error = match called {
                Ok(result) => result.ok().unwrap_err(),
                Err(error) => error,
            };
            let is_ours = matches!(&error, Error::Handler { message, .. } if message.contains(says));
            // a legacy server gets an error in place of the answer
            assert!(is_ours || revision == Revision::V2025_11_25, "{answer}: {error:?}");
        }
    }
}

/// Asks for everything that clients have
#[mcp_tool]
async fn survey(ctx: &Context) -> Result<String, ToolError> {
    let order: Order = ctx.elicit("order", "What do you want?").await?;
    let sampled = ctx.sample("poem", CreateMessage::user(format!("A poem about {}", order.name))).await?;
    let roots = ctx.roots("roots").await?;
    Ok(format!("{} {} {} {}", order.count, order.name, sampled.text(), roots[0].uri))
}

fn asked() -> ClientBuilder {
    Client::builder()
        .on_elicit(|form| async move {
            assert_eq!(form.message, "What do you want?");
            ElicitAnswer::Accept(json!({ "name": "tea" }))
        })
        .on_sample(|request| async move {
            assert!(request.params["maxTokens"].is_u64(), "{}", request.params);
            Ok(SampleAnswer::text("scripted", "Steam."))
        })
        .on_roots(|| async { vec![Root::new("file:///tea").name("Tea")] })
}

#[tokio::test]
async fn the_servers_requests_are_answered_in_both_eras() {
    let server = mcp_runtime::server!().tool::<survey>().build().unwrap();
    for way in Transport::ALL {
        for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
            let connected = connect(&server, way, asked().revision(revision)).await.unwrap();
            let result = within(connected.client.call("survey", json!({})).into_future()).await.unwrap();
            assert_eq!(result.text(), "3 tea Steam. file:///tea", "{way:?} {revision}");
        }
    }
}

#[tokio::test]
async fn a_client_without_functions_declares_nothing_and_is_not_asked() {
    let server = mcp_runtime::server!().tool::<survey>().build().unwrap();
    for way in Transport::ALL {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let connected = connect(&server, way, Client::builder().revision(revision)).await.unwrap();
            let failed = match within(connected.client.call("survey", json!({})).into_future()).await {
                Ok(result) => result.is_error,
                Err(error) => matches!(error, Error::Protocol { .. }),
            };
            assert!(failed, "{way:?} {revision}");
        }
    }
}

/// A server of 2026-07-28 that answers `tools/call` by a function of its params.
async fn modern(answer: impl Fn(&Value) -> Value + Send + 'static, builder: ClientBuilder) -> Client {
    let answer = move |method: &str, message: &Value| match method {
        "tools/call" => Ok(answer(&message["params"])),
        _ => Err(-32601),
    };
    played(Revision::LATEST, json!({ "tools": {} }), builder, answer).await.0
}

fn form() -> Value {
    json!({ "method": "elicitation/create", "params": { "message": "What do you want?", "requestedSchema": {
        "type": "object", "properties": { "name": { "type": "string" } } } } })
}

#[tokio::test]
async fn request_state_is_echoed_and_answers_of_earlier_rounds_are_sent_again() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let answer = move |params: &Value| {
        let mut seen = kept.lock().unwrap();
        seen.push(params.clone());
        match seen.len() {
            1 => {
                json!({ "resultType": "input_required", "inputRequests": { "a": form() }, "requestState": "s\u{e9}\"\\1" })
            }
            2 => {
                json!({ "resultType": "input_required", "inputRequests": { "b": form(), "odd": { "method": "new/kind" } } })
            }
            3 => json!({ "resultType": "input_required", "requestState": "only" }),
            // without `resultType` it is complete
            _ => json!({ "content": [] }),
        }
    };
    let client = modern(answer, asked()).await;
    within(client.call("t", json!({ "x": 1 })).into_future()).await.unwrap();
    let seen = seen.lock().unwrap();
    let accepted = json!({ "action": "accept", "content": { "name": "tea" } });
    assert_eq!((seen[0].get("requestState"), seen[0].get("inputResponses")), (None, None));
    assert_eq!(seen[1]["requestState"], "s\u{e9}\"\\1");
    assert_eq!(seen[1]["inputResponses"], json!({ "a": accepted }));
    assert_eq!(seen[2].get("requestState"), None, "the server sent none");
    assert_eq!(
        seen[2]["inputResponses"],
        json!({ "a": accepted, "b": accepted, "odd": { "action": "decline" } })
    );
    assert_eq!(seen[3]["requestState"], "only");
    assert!(seen.iter().all(|params| params["arguments"] == json!({ "x": 1 })));
}

#[tokio::test]
async fn a_server_that_never_has_enough_is_given_up() {
    let rounds = Arc::new(Mutex::new(0));
    let counted = rounds.clone();
    let answer = move |_: &Value| {
        *counted.lock().unwrap() += 1;
        json!({ "resultType": "input_required", "inputRequests": { "a": form() } })
    };
    let client = modern(answer, asked()).await;
    let error = within(client.call("t", json!({})).into_future()).await.unwrap_err();
    assert!(error.to_string().contains("16 rounds") && *rounds.lock().unwrap() == 16, "{error}");
    let client = modern(|_| json!({ "resultType": "input_required" }), asked()).await;
    assert!(matches!(client.call("t", json!({})).await, Err(Error::Invalid { .. })));
}

#[tokio::test]
async fn a_function_that_fails_fails_the_call() {
    let ask = |_: &Value| json!({ "resultType": "input_required", "inputRequests": { "a": { "method": "sampling/createMessage", "params": {} } } });
    let client =
        modern(ask, Client::builder().on_sample(|_| async { Err("out of tokens".to_owned()) })).await;
    let error = client.call("t", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("out of tokens"), "{error}");
}

#[tokio::test]
async fn functions_that_panic_end_neither_the_connection_nor_what_waits_for_them() {
    let server = mcp_runtime::server!()
        .telemetry(|telemetry| telemetry.client_logging())
        .tool::<survey>()
        .tool::<chatter>()
        .build()
        .unwrap();
    for way in Transport::ALL {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let builder = Client::builder()
                .on_elicit(|_| async { panic!("of the test: a form") })
                .on_log(|_| panic!("of the test: a log message"))
                .on_progress(|_| panic!("of the test: progress"));
            let connected = connect(&server, way, builder.revision(revision)).await.unwrap();
            let client = &connected.client;
            let failed = within(client.call("survey", json!({})).into_future()).await;
            let is_failure = failed.as_ref().map_or(true, |result| result.is_error);
            assert!(is_failure, "{way:?} {revision}: {failed:?}");
            within(client.set_level(LogLevel::Debug).into_future()).await.unwrap();
            within(client.call("chatter", json!({})).into_future()).await.unwrap().ok().unwrap();
            within(client.ping().into_future()).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_server_that_asks_and_does_not_read_is_answered_within_bounds() {
    const REQUESTS: usize = 5000;
    let (streams, mut peer) = Peer::new(1 << 16);
    let (counts, counted) = tokio::sync::oneshot::channel();
    let (asked, has_asked) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        peer.answer("initialize", &initialized("2025-11-25", json!({ "tools": {} }))).await;
        assert_eq!(peer.next().await["method"], "notifications/initialized");
        for id in 0..REQUESTS {
            peer.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list" })).await;
        }
        // the same id again
        peer.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "roots/list" })).await;
        asked.send(()).expect("the test waits");
        let mut refused = 0;
        let call = loop {
            let message = peer.next().await;
            match message["error"]["code"].as_i64() {
                Some(_) => refused += 1,
                None => break message,
            }
        };
        peer.reply(&call, &json!({ "content": [] })).await;
        counts.send(refused).expect("the test waits");
        // until the client is dropped
        while peer.read().await.is_some() {}
    });
    let builder =
        Client::builder().revision(Revision::V2025_11_25).on_roots(|| async { std::future::pending().await });
    let client = within(builder.connect(streams)).await.unwrap();
    within(has_asked).await.unwrap();
    // queued behind the refusals
    within(client.call("t", json!({})).into_future()).await.unwrap();
    let refused = within(counted).await.unwrap();
    assert!((100..REQUESTS / 2).contains(&refused), "{refused}");
}

/// Sends the user away
#[mcp_tool]
async fn visit(ctx: &Context) -> Result<&'static str, ToolError> {
    match ctx.elicit_url("pay", "Pay first", "https://example.com/pay").answer().await? {
        Answer::Accept(()) => Ok("paid"),
        _ => Ok("not paid"),
    }
}

#[tokio::test]
async fn urls_are_shown_to_the_user() {
    let server = mcp_runtime::server!().tool::<visit>().build().unwrap();
    for way in Transport::ALL {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            for (answer, text) in
                [(ElicitAnswer::Accept(Value::Null), "paid"), (ElicitAnswer::Decline, "not paid")]
            {
                let builder = Client::builder().revision(revision).on_elicit_url(move |request| {
                    assert_eq!((&*request.message, &*request.url), ("Pay first", "https://example.com/pay"));
                    let answer = answer.clone();
                    async { answer }
                });
                let connected = connect(&server, way, builder).await.unwrap();
                let result = within(connected.client.call("visit", json!({})).into_future()).await.unwrap();
                assert_eq!(result.text(), text, "{way:?} {revision}");
            }
        }
    }
}

/// Talks
#[mcp_tool]
fn chatter(ctx: &Context) -> &'static str {
    ctx.log(LogLevel::Debug, "quiet").send();
    ctx.log(LogLevel::Warning, "loud").logger("shop").send();
    "said"
}

#[tokio::test]
async fn log_messages_arrive_from_the_level_that_was_set() {
    let server = mcp_runtime::server!()
        .telemetry(|telemetry| telemetry.client_logging())
        .tool::<chatter>()
        .build()
        .unwrap();
    for way in Transport::ALL {
        for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
            let seen = Arc::new(Mutex::new(Vec::new()));
            let kept = seen.clone();
            let builder = Client::builder().revision(revision).on_log(move |log| {
                kept.lock().unwrap().push((log.level, log.logger, log.data));
            });
            let connected = connect(&server, way, builder).await.unwrap();
            connected.client.set_level(LogLevel::Info).await.unwrap();
            within(connected.client.call("chatter", json!({})).into_future()).await.unwrap();
            let expected = (LogLevel::Warning, Some("shop".to_owned()), json!("loud"));
            until(|| *seen.lock().unwrap() == [expected.clone()]).await;
        }
    }
}

/// Works for a while, as a task where the client has them
#[mcp_tool(task)]
async fn errand(ctx: &Context, fails: bool) -> Result<String, ToolError> {
    let order: Order = ctx.elicit("order", "What do you want?").await?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    if fails { Err("sold out".into()) } else { Ok(format!("brought {}", order.name)) }
}

/// Never ends
#[mcp_tool(task)]
async fn forever() -> &'static str {
    std::future::pending().await
}

fn tasks() -> ServerBuilder {
    mcp_runtime::server!().tool::<errand>().tool::<forever>()
}

#[tokio::test]
async fn calls_that_become_tasks_are_driven_to_their_end() {
    let server = tasks().build().unwrap();
    for way in Transport::ALL {
        let connected = connect(&server, way, asked()).await.unwrap();
        let client = &connected.client;
        let result = within(client.call("errand", json!({ "fails": false })).into_future()).await.unwrap();
        assert_eq!(result.text(), "brought tea", "{way:?}");
        let failed = within(client.call("errand", json!({ "fails": true })).into_future()).await.unwrap();
        assert!(failed.is_error && failed.text().contains("sold out"));

        let task = client.call_task("errand", json!({ "fails": false })).await.unwrap();
        assert!(["working", "input_required"].contains(&&*task.status().await.unwrap().status));
        assert_eq!(within(task.result()).await.unwrap().text(), "brought tea");
    }
}

#[tokio::test]
async fn a_task_is_cancelled_when_it_is_dropped_and_not_when_it_is_detached() {
    let server = tasks().build().unwrap();
    for way in Transport::ALL {
        let connected = connect(&server, way, asked()).await.unwrap();
        let client = &connected.client;
        let status = |id: String| {
            let client = client.clone();
            async move { client.send("tasks/get", json!({ "taskId": id })).await.unwrap()["status"].clone() }
        };
        let task = client.call_task("forever", json!({})).await.unwrap();
        let dropped = task.id().to_owned();
        drop(task);
        let kept = client.call_task("forever", json!({})).await.unwrap().detach();
        within(async {
            while status(dropped.clone()).await != "cancelled" {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        assert_eq!(status(kept.clone()).await, "working", "{way:?}");
        let call = client.call("forever", json!({})).into_future();
        assert!(tokio::time::timeout(Duration::from_millis(100), call).await.is_err());
        let task = client.call_task("forever", json!({})).await.unwrap();
        let id = task.id().to_owned();
        task.cancel().await.unwrap();
        assert_eq!(status(id).await, "cancelled");
    }
}

/// A note
#[mcp_resource(uri = "note://one")]
fn note() -> &'static str {
    "noted"
}

fn watched() -> (Server, ServerHandle) {
    let server = mcp_runtime::server!().resource::<note>().tool::<chatter>().build().unwrap();
    let handle = server.handle();
    (server, handle)
}

#[tokio::test]
async fn changes_reach_those_who_subscribed_and_make_lists_stale() {
    for way in Transport::ALL {
        for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
            let (server, handle) = watched();
            let seen = Arc::new(Mutex::new(Vec::new()));
            let (of_client, of_note) = (seen.clone(), Arc::new(Mutex::new(0)));
            let counted = of_note.clone();
            let builder =
                pinned(Some(revision)).on_change(move |event| of_client.lock().unwrap().push(event));
            let connected = connect(&server, way, builder).await.unwrap();
            let client = &connected.client;
            assert_eq!(client.tools().await.unwrap().len(), 1);
            let subscription = client.subscribe("note://one", move |event| {
                assert_eq!(event, ChangeEvent::Resource { uri: "note://one".to_owned() });
                *counted.lock().unwrap() += 1;
            });
            let subscription = within(subscription).await.unwrap();
            // the stream of a legacy session over HTTP opens on its own
            within(async {
                loop {
                    handle.resource_updated("note://one");
                    if *of_note.lock().unwrap() > 0 {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            })
            .await;
            handle.tools_changed();
            until(|| seen.lock().unwrap().contains(&ChangeEvent::Tools)).await;

            drop(subscription);
            within(async {
                // the server learns of it a little later
                let mut quiet = 0;
                while quiet < 5 {
                    let before = seen.lock().unwrap().len();
                    handle.resource_updated("note://one");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    quiet = if seen.lock().unwrap().len() == before { quiet + 1 } else { 0 };
                }
            })
            .await;
            assert!(client.ping().await.is_ok(), "{way:?} {revision}");
        }
    }
}

#[tokio::test]
async fn the_function_of_a_subscription_may_own_another_one() {
    let (server, _handle) = watched();
    let client = connect(&server, Transport::Memory, Client::builder()).await.unwrap().client;
    let inner = within(client.subscribe("note://one", |_| {})).await.unwrap();
    let owning = move |_| {
        let _owned = &inner;
    };
    let outer = within(client.subscribe("note://one", owning)).await.unwrap();
    // on a thread of its own, which might wait for itself
    let (done, ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        drop(outer);
        done.send(()).unwrap();
    });
    within(ended).await.unwrap();
}

#[tokio::test]
async fn a_stream_of_changes_that_the_server_ends_is_opened_again_and_not_lost() {
    let (server, handle) = watched();
    let (builder, seen) = keeping_changes();
    let connected = connect(&server, Transport::Stdio, builder).await.unwrap();
    let _subscription = within(connected.client.subscribe("note://one", |_| {})).await.unwrap();
    handle.end_subscriptions();
    until(|| !seen.lock().unwrap().is_empty()).await;
    handle.tools_changed();
    until(|| seen.lock().unwrap().len() > 1).await;
    assert_eq!(*seen.lock().unwrap(), [ChangeEvent::Restored, ChangeEvent::Tools]);
}

#[tokio::test]
async fn a_program_declares_extensions_of_its_own_on_both_sides_where_the_revision_has_the_member() {
    /// Says which extensions the client has
    #[mcp_tool]
    fn extensions(ctx: &Context) -> String {
        ctx.client_capabilities()["extensions"].to_string()
    }
    let prices = json!({ "currency": "EUR" });
    let server = mcp_runtime::server!().tool::<extensions>().extension("com.example/prices", prices.clone());
    let server = server.build().unwrap();
    for revision in Revision::ALL {
        for way in Transport::ALL {
            let builder =
                Client::builder().revision(*revision).extension("com.example/prices", prices.clone());
            let client = connect(&server, way, builder).await.unwrap().client;
            let is_modern = revision.is_modern();
            assert_eq!(client.supports("com.example/prices"), is_modern, "{revision} {way:?}");
            let text = within(client.call("extensions", ()).into_future()).await.unwrap().text();
            let declared: Value = serde_json::from_str(&text).unwrap();
            let expected = if is_modern { prices.clone() } else { Value::Null };
            assert_eq!(declared["com.example/prices"], expected, "{revision} {way:?}: {declared}");
        }
    }
    for (name, settings) in [
        ("prices", json!({})),
        ("com.example/a/b", json!({})),
        ("com.example/", json!({})),
        ("com.example/prices", json!(true)),
        ("io.modelcontextprotocol/tasks", json!({})),
    ] {
        let built = mcp_runtime::server!().extension(name, settings.clone()).build();
        assert!(built.is_err(), "{name} {settings}");
        let connected = within(Client::builder().extension(name, settings).connect(&server)).await;
        assert!(matches!(connected, Err(Error::Invalid { .. })), "{connected:?}");
    }
}

#[tokio::test]
async fn arguments_are_whatever_serializes_to_an_object() {
    #[derive(serde::Serialize)]
    struct Words<'a> {
        message: &'a str,
    }
    let server = super::builder().build().unwrap();
    let client = connect(&server, Transport::Memory, Client::builder()).await.unwrap().client;
    let map = std::collections::HashMap::from([("message", "tea")]);
    assert_eq!(client.call("echo", Words { message: "tea" }).await.unwrap().text(), "tea");
    assert_eq!(client.call("echo", &map).await.unwrap().text(), "tea");
    assert_eq!(client.call("echo", json!({ "message": "tea" })).await.unwrap().text(), "tea");
    assert!(client.call("fails", ()).await.unwrap().is_error);
    assert_eq!(
        client
            .prompt("greet", [("name", "Ada")].into_iter().collect::<std::collections::HashMap<_, _>>())
            .await
            .unwrap()
            .messages
            .len(),
        1
    );
    let keys = std::collections::HashMap::from([(vec![1], 1)]);
    for called in [client.call("echo", "tea").await, client.call("echo", keys).await] {
        assert!(matches!(called, Err(Error::Invalid { .. })), "{called:?}");
    }
}

#[tokio::test]
async fn closing_the_own_client_is_the_end_of_subscriptions_and_no_loss() {
    for way in Transport::ALL {
        let (server, _handle) = watched();
        let (builder, seen) = keeping_changes();
        let connected = connect(&server, way, builder).await.unwrap();
        let _subscription = within(connected.client.subscribe("note://one", |_| {})).await.unwrap();
        within(connected.client.close()).await;
        until(|| !seen.lock().unwrap().is_empty()).await;
        assert_eq!(*seen.lock().unwrap(), [ChangeEvent::Ended], "{way:?}");
    }
}

#[tokio::test]
async fn a_broken_stream_of_changes_is_opened_again() {
    let (server, handle) = watched();
    let http = mcp_tests::support::HttpServer::of(&server).await;
    let address = http.address;
    let ((builder, seen), updates) = (keeping_changes(), Arc::new(Mutex::new(0)));
    let counted = updates.clone();
    // a proxy whose connections can be cut
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (cut, _) = tokio::sync::broadcast::channel::<()>(1);
    let cuts = cut.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut cut = cuts.subscribe();
            tokio::spawn(async move {
                let mut server = tokio::net::TcpStream::connect(address).await.unwrap();
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                    _ = cut.recv() => {}
                }
            });
        }
    });
    let client = within(builder.connect(url)).await.unwrap();
    let _subscription =
        within(client.subscribe("note://one", move |_| *counted.lock().unwrap() += 1)).await.unwrap();
    cut.send(()).unwrap();
    until(|| seen.lock().unwrap().contains(&ChangeEvent::Lost)).await;
    until(|| seen.lock().unwrap().contains(&ChangeEvent::Restored)).await;
    within(async {
        while *updates.lock().unwrap() == 0 {
            handle.resource_updated("note://one");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_refuses_subscriptions_loses_nothing() {
    for code in [-32601, -32603] {
        let listens = Arc::new(Mutex::new(0));
        let ((builder, seen), counted) = (keeping_changes(), listens.clone());
        let capabilities = json!({ "tools": { "listChanged": true } });
        let _client = played(Revision::LATEST, capabilities, builder, move |method, _| {
            *counted.lock().unwrap() += usize::from(method == "subscriptions/listen");
            Act::Error(code)
        })
        .await;
        until(|| *listens.lock().unwrap() >= 2).await;
        assert_eq!(*seen.lock().unwrap(), [], "{code}");
    }
}

#[tokio::test]
async fn a_subscription_that_is_refused_does_not_end_the_others() {
    let filters = Arc::new(Mutex::new(Vec::new()));
    let listened = filters.clone();
    let (builder, seen) = keeping_changes();
    let capabilities = json!({ "resources": { "subscribe": true } });
    let (client, _) = played(Revision::LATEST, capabilities, builder, move |method, message| {
        let filter = &message["params"]["notifications"];
        if method != "subscriptions/listen" {
            return Act::Silence;
        }
        listened.lock().unwrap().push(filter["resourceSubscriptions"].clone());
        if filter.to_string().contains("bad") {
            return Act::Error(-32602);
        }
        let params = json!({ "_meta": { SUBSCRIPTION: message["id"] }, "notifications": filter });
        Act::Say(vec![notification("notifications/subscriptions/acknowledged", params)])
    })
    .await;
    let _good = within(client.subscribe("x://good", |_| {})).await.unwrap();
    assert!(within(client.subscribe("x://bad", |_| {})).await.is_err());
    let _other = within(client.subscribe("x://other", |_| {})).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), []);
    let filters = filters.lock().unwrap();
    let of_good = filters.iter().filter(|uris| **uris == json!(["x://good"])).count();
    assert_eq!(of_good, 1, "the first stream stays open: {filters:?}");
}

#[tokio::test]
async fn progress_goes_on_when_a_call_has_become_a_task() {
    for modern in [true, false] {
        let mut polls = 0;
        let revision = if modern { Revision::V2026_07_28 } else { Revision::V2025_11_25 };
        let (client, _) = played(revision, with_tasks(), Client::builder(), move |method, message| {
            let mut task = json!({ "taskId": "t-1", "status": "working", "pollIntervalMs": 10, "pollInterval": 10,
                "createdAt": "2026-07-28T00:00:00Z", "ttl": null, "statusMessage": "1 of 3" });
            match method {
                "tools/list" => Ok(task_tool()),
                "tools/call" => {
                    assert!(message["params"]["_meta"]["progressToken"].is_u64(), "{message}");
                    if modern {
                        task["resultType"] = "task".into();
                        return Ok(task);
                    }
                    Ok(json!({ "task": task }))
                }
                "tasks/get" => {
                    polls += 1;
                    let message = ["1 of 3", "packing", "packing", "2 of 3", "done"][polls.min(5) - 1];
                    task["statusMessage"] = message.into();
                    if polls > 4 {
                        task["status"] = "completed".into();
                        task["result"] = at_last();
                    }
                    Ok(task)
                }
                "tasks/result" => Ok(at_last()),
                _ => Err(-32601),
            }
        })
        .await;
        client.tools().await.unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        let call = client.call("t", json!({})).on_progress(move |update| {
            kept.lock().unwrap().push((update.progress, update.total, update.message.unwrap_or_default()));
        });
        assert_eq!(within(call.into_future()).await.unwrap().text(), "at last");
        let of = |progress: f64, message: &str| (progress, Some(3.0), message.to_owned());
        assert_eq!(*seen.lock().unwrap(), [of(1.0, "1 of 3"), of(1.0, "packing"), of(2.0, "2 of 3")]);
    }
}

/// The capabilities of a server whose calls may be tasks, as 2025-11-25 has them.
fn with_tasks() -> Value {
    json!({ "tools": {}, "tasks": { "cancel": {}, "requests": { "tools": { "call": {} } } } })
}

/// The list of a tool that must be called as a task.
fn task_tool() -> Value {
    json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" },
        "execution": { "taskSupport": "required" } }] })
}

fn at_last() -> Value {
    json!({ "content": [{ "type": "text", "text": "at last" }] })
}

/// A server of 2025-11-25 whose tool must be called as a task; it is working for two polls.
async fn legacy_tasks(seen: Arc<Mutex<Vec<(String, Value)>>>, end: &'static str) -> Client {
    let answer = move |method: &str, message: &Value| {
        let mut seen = seen.lock().unwrap();
        seen.push((method.to_owned(), message["params"].clone()));
        let polls = seen.iter().filter(|(method, _)| method == "tasks/get").count();
        let status = if polls < 3 { "working" } else { end };
        let task = json!({ "taskId": "t-1", "status": status, "createdAt": "2025-11-25T00:00:00Z", "ttl": null,
            "pollInterval": 10 });
        let mut result = at_last();
        result["isError"] = (end == "failed").into();
        match method {
            "tools/list" => Ok(task_tool()),
            "tools/call" => Ok(json!({ "task": task })),
            "tasks/get" | "tasks/cancel" => Ok(task),
            "tasks/result" => Ok(result),
            _ => Err(-32601),
        }
    };
    played(Revision::V2025_11_25, with_tasks(), Client::builder(), answer).await.0
}

#[tokio::test]
async fn tasks_of_2025_11_25_are_driven_to_their_end() {
    for (end, is_error) in [("completed", false), ("failed", true)] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let client = legacy_tasks(seen.clone(), end).await;
        client.tools().await.unwrap();
        // the list says that it must be a task
        let result = within(client.call("t", json!({ "x": 1 })).into_future()).await.unwrap();
        assert_eq!((result.text(), result.is_error), ("at last".into(), is_error), "{end}");
        let seen = seen.lock().unwrap();
        let call = seen.iter().find(|(method, _)| method == "tools/call").unwrap();
        assert_eq!((&call.1["task"], &call.1["arguments"]), (&json!({}), &json!({ "x": 1 })));
        let ends: Vec<_> = seen.iter().filter(|(method, _)| method == "tasks/result").collect();
        assert!(ends.len() == 1 && ends[0].1["taskId"] == "t-1", "{seen:?}");
    }
}

#[tokio::test]
async fn a_task_without_an_id_fails_its_call() {
    let without_id =
        [json!({}), json!({ "status": "working" }), json!({ "taskId": 5 }), json!({ "taskId": null })];
    for task in without_id {
        let mut result = task.clone();
        result["resultType"] = "task".into();
        let modern = modern(move |_| result.clone(), Client::builder()).await;
        let created = task.clone();
        let answer = move |method: &str, _: &Value| match method {
            "tools/list" => Ok(task_tool()),
            "tools/call" => Ok(json!({ "task": created })),
            _ => Err(-32601),
        };
        let (legacy, _) = played(Revision::V2025_11_25, with_tasks(), Client::builder(), answer).await;
        // the list says that it must be a task
        legacy.tools().await.unwrap();
        for client in [modern, legacy] {
            let called = within(client.call("t", json!({})).into_future()).await.map(|result| result.text());
            let begun = within(client.call_task("t", json!({})).into_future()).await;
            for error in [called.expect_err("no result"), begun.expect_err("no task")] {
                assert!(error.to_string().contains("a task without an id"), "{task}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn a_task_of_2025_11_25_is_cancelled_with_its_handle() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let client = legacy_tasks(seen.clone(), "cancelled").await;
    let task = within(client.call_task("t", json!({})).into_future()).await.unwrap();
    assert_eq!(task.status().await.unwrap().status, "working");
    drop(task);
    until(|| {
        seen.lock()
            .unwrap()
            .iter()
            .any(|(method, params)| method == "tasks/cancel" && params["taskId"] == "t-1")
    })
    .await;
    let task = within(client.call_task("t", json!({})).into_future()).await.unwrap();
    assert!(matches!(within(task.result()).await, Err(Error::Cancelled)));
}
