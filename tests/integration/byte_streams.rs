//! Any pair of byte streams: the same connection as stdio, over an in-memory duplex.

use mcp_runtime::context::LogLevel;
use tokio::io::AsyncWriteExt;

use crate::prelude::*;

fn connect(builder: ServerBuilder, capacity: usize) -> LineConnection {
    LineConnection::serve(&builder.build().unwrap(), capacity)
}

fn builder() -> ServerBuilder {
    let echo =
        ToolDef::builder("echo").handler(|call: ToolCall| async move { call.arg::<String>("message") });
    let slow = ToolDef::builder("slow").handler(|_: ToolCall| async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        "slept"
    });
    Server::builder("streamed", "1.0.0").add(echo).add(slow)
}

#[tokio::test]
async fn calls_that_run_or_wait_after_the_shutdown_timeout_get_an_error_in_both_eras() {
    for version in [None, Some("2025-11-25"), Some("2025-03-26")] {
        let log = ThreadLog::capture();
        let limit = Duration::from_millis(50);
        let builder = builder().add(hang().0);
        let mut client =
            connect(builder.limits(|limits| limits.shutdown_timeout(limit).max_in_flight(2)), 1 << 20);
        let hang = |id: i64| match version {
            None => call(id, "hang", &json!({})),
            Some(_) => legacy_call(id, "hang", &json!({})),
        };
        if let Some(version) = version {
            client.shake_hands(version).await;
        }
        let mut expected = vec![json!(1), json!(2), json!(3)];
        for id in 1..=3 {
            client.send(&hang(id)).await;
        }
        if version == Some("2025-03-26") {
            client.send(&json!([hang(4), hang(5)])).await;
            expected.push(json!([4, 5]));
        }
        client.close_input().await;
        let id = |reply: &Value| {
            assert_eq!(reply["error"]["code"], -32603, "{reply}");
            reply["id"].clone()
        };
        let mut ids = Vec::new();
        while let Some(reply) = client.next().await {
            ids.push(reply.as_array().map_or_else(|| id(&reply), |batch| batch.iter().map(id).collect()));
        }
        assert!(ids.len() == expected.len() && expected.iter().all(|id| ids.contains(id)), "{ids:?}");
        client.served().await;
        assert_eq!(log.with("still running").len(), 1);
    }
}

#[tokio::test]
async fn calls_do_not_wait_until_their_client_has_read_short_replies() {
    // more than run and wait by default
    const CALLS: usize = 3_000;
    let mut client = connect(builder(), 1 << 12);
    for id in 0..CALLS {
        client.send(&call(id, "echo", &json!({ "message": "hello" }))).await;
    }
    for reply in client.messages(CALLS).await {
        assert_eq!(text_of(&reply), "hello", "{reply}");
    }
}

#[tokio::test]
async fn a_batch_with_an_id_in_use_does_not_start_before_what_waits() {
    let started = Arc::new(AtomicUsize::new(0));
    let count = started.clone();
    let hang = ToolDef::builder("hang").handler(move |_: ToolCall| {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<&'static str>()
    });
    let builder = builder().add(hang).limits(|limits| limits.max_in_flight(1));
    let mut client = connect(builder, 1 << 20);
    client.shake_hands("2025-03-26").await;
    let hang = |id: i64| legacy_call(id, "hang", &json!({}));
    client.send(&hang(1)).await;
    for _ in 0..3 {
        client.send(&json!([hang(1), hang(2), hang(3)])).await;
        let replies = client.message().await;
        let refused: Vec<_> = (0..3).map(|n| (&replies[n]["id"], &replies[n]["error"]["code"])).collect();
        let code = &json!(-32600);
        assert_eq!(refused, [(&json!(1), code), (&json!(2), code), (&json!(3), code)], "{replies}");
    }
    assert_eq!(started.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn the_client_of_a_byte_stream_is_the_caller_that_the_program_names_until_that_expires() {
    #[mcp_tool(scopes("notes:read"))]
    fn of_a_tenant(caller: &Principal) -> String {
        caller.subject().to_owned()
    }
    #[mcp_tool(scopes("admin"))]
    fn of_administrators() {}
    #[mcp_tool]
    fn of_anyone(caller: Option<&Principal>) -> String {
        caller.map_or("anonymous", Principal::subject).to_owned()
    }
    let builder = || {
        Server::builder("streamed", "1.0.0")
            .tool::<of_a_tenant>()
            .tool::<of_administrators>()
            .tool::<of_anyone>()
    };
    let ada = || Principal::new("urn:example:tests", "ada").with_scopes(["notes:read"]);
    let expired = ada().with_expiry(std::time::SystemTime::UNIX_EPOCH);
    for legacy in [false, true] {
        for (caller, subject, seen) in [
            (Some(ada()), "ada", &["of_a_tenant", "of_anyone"][..]),
            (Some(expired.clone()), "anonymous", &["of_anyone"]),
            // the host that no one describes is not told apart
            (None, "anonymous", &["of_a_tenant", "of_administrators", "of_anyone"]),
        ] {
            let mut builder = builder();
            if let Some(caller) = caller {
                builder = builder.stdio(|stdio| stdio.caller(caller));
            }
            let mut client = connect(builder, 1 << 20);
            let (called, meta) = if legacy {
                client.shake_hands("2025-11-25").await;
                (legacy_call(1, "of_anyone", &json!({})), json!({}))
            } else {
                (call(1, "of_anyone", &json!({})), meta())
            };
            let listed = request(9, "tools/list", json!({ "_meta": meta }));
            assert_eq!(text_of(&client.reply_to(&called).await), subject);
            assert_eq!(tool_names(&client.reply_to(&listed).await), seen);
        }
    }
}

#[tokio::test]
async fn the_reason_of_a_cancellation_is_logged() {
    let log = ThreadLog::capture();
    let mut client = connect(builder(), 1 << 20);
    for reason in [json!("the user\nleft\u{1b}[2J"), json!("y".repeat(10_000)), json!(7), Value::Null] {
        let params = json!({ "requestId": "one", "reason": reason });
        client.send(&notification("notifications/cancelled", params)).await;
    }
    client.reply_to(&ping("after")).await;
    let logged = log.with("cancels");
    assert_eq!(logged.len(), 4, "{logged:?}");
    assert!(logged.iter().all(|line| line.starts_with("DEBUG") && line.contains("one") && line.len() < 200));
    // on one line, without control characters
    assert!(logged[0].contains(r"the user\nleft\u{1b}[2J"), "{}", logged[0]);
}

#[tokio::test]
async fn nothing_is_lost_through_a_narrow_stream() {
    let mut client = connect(builder(), 256);
    let mut input = client.input.take().unwrap();
    // the client writes everything before it reads anything
    let message = "m".repeat(1000);
    let writer = spawn(async move {
        for id in 0..200 {
            let request = format!("{}\n", call(id, "echo", &json!({ "message": message })));
            input.write_all(request.as_bytes()).await.unwrap();
        }
        input
    });
    client.input = Some(writer.await.unwrap());
    for _ in 0..200 {
        assert_eq!(text_of(&client.message().await).len(), 1000);
    }
    client.send(&ping("end")).await;
    assert_eq!(client.message().await["id"], "end");
}

/// A tool that never returns, and how many of its calls there are.
fn hang() -> (ToolDef, impl Fn() -> usize) {
    let calls = Arc::new(());
    let call = Arc::downgrade(&calls);
    let hang = ToolDef::builder("hang").handler(move |_: ToolCall| {
        let call = call.upgrade();
        async move {
            std::future::pending::<()>().await;
            drop(call);
        }
    });
    (hang, move || Arc::strong_count(&calls) - 1)
}

#[tokio::test]
async fn dropping_the_connection_cancels_its_calls() {
    let (hang, running) = hang();
    let mut client = connect(Server::builder("dropped", "1.0.0").add(hang), 1 << 16);
    client.send(&call(1, "hang", &json!({}))).await;
    client.send(&ping("begun")).await;
    assert_eq!(client.message().await["id"], "begun");
    assert_eq!(running(), 1);
    client.abort();
    assert!(soon(|| running() == 0).await);
}

#[tokio::test]
async fn two_thousand_cancelled_calls_leave_none_running() {
    let (hang, running) = hang();
    let mut client = connect(builder().add(hang), 1 << 20);
    for round in 0..20_u64 {
        let ids = round * 101..round * 101 + 100;
        for id in ids.clone() {
            client.send(&call(id, "hang", &json!({}))).await;
        }
        for id in ids.clone() {
            client.send(&cancelled(id)).await;
        }
        // cancelled calls get no response, so the next line answers this request
        client.send(&call(ids.end, "echo", &json!({ "message": "here" }))).await;
        let reply = client.message().await;
        assert_eq!((&reply["id"], &reply["result"]["content"][0]["text"]), (&ids.end.into(), &"here".into()));
    }
    client.close_input().await;
    assert_eq!(client.next().await, None);
    client.served().await;
    // a cancelled task is dropped when it is next polled
    assert!(soon(|| running() == 0).await, "{} are left", running());
}

/// The context of the last call, kept beyond its end.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Option<Context>>>);

/// Keeps its context
#[mcp_tool]
fn keep(ctx: &Context, kept: &Kept) -> &'static str {
    ctx.progress(1.0).send();
    *kept.0.lock().unwrap() = Some(ctx.clone());
    "kept"
}

#[tokio::test]
async fn a_call_that_has_ended_reports_no_progress_and_logs_nothing() {
    let kept = Kept::default();
    let builder = mcp_runtime::server!().tool::<keep>().state(kept.clone());
    let server = builder.telemetry(|telemetry| telemetry.client_logging()).build().expect("a server");
    let mut client = LineConnection::serve(&server, 1 << 16);
    let mut modern = meta();
    modern["progressToken"] = 1.into();
    modern["io.modelcontextprotocol/logLevel"] = "debug".into();
    for (version, meta) in [(None, modern), (Some("2025-11-25"), json!({ "progressToken": 1 }))] {
        if let Some(version) = version {
            client.shake_hands(version).await;
        }
        client.start(1, "tools/call", json!({ "name": "keep", "_meta": meta })).await;
        assert_eq!(client.message().await["params"]["progress"], 1.0);
        assert_eq!(text_of(&client.message().await), "kept");
        let ctx = kept.0.lock().unwrap().take().expect("a context");
        ctx.progress(2.0).send();
        ctx.log(LogLevel::Error, "too late").send();
        // the next message is that of the next request
        client.request(2, "ping", json!({})).await;
    }
}
