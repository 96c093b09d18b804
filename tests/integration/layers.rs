//! Layers: their order, what they may do with a call, and what a call that they run again has of its own.

use mcp_runtime::{
    content::Content,
    layer::{CallOutput, ItemKind, Layer, LayeredCall, Next, Outcome},
    prompt::{PromptCall, PromptDef},
    resource::{ResourceCall, ResourceDef},
    tool::TaskMode,
};

use crate::prelude::*;

/// What layers and functions record, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// A layer that records when a call enters and leaves it.
    fn layer(&self, name: &'static str) -> impl Layer {
        let log = self.clone();
        move |call: LayeredCall, next: Next| {
            let log = log.clone();
            async move {
                log.add(format!("{name} in"));
                let outcome = next.run(&call).await;
                log.add(format!("{name} out"));
                outcome
            }
        }
    }
}

async fn first(call: LayeredCall, next: Next) -> Outcome {
    let log = call.context().state::<Log>().expect("the state of the item").clone();
    log.add("first");
    next.run(&call).await
}

struct Named(&'static str);

impl Layer for Named {
    async fn call(&self, call: LayeredCall, next: Next) -> Outcome {
        call.context().state::<Log>().expect("the state of the item").add(self.0);
        next.run(&call).await
    }
}

/// Has layers of its own
#[mcp_tool(layers(first, Named("second")))]
fn layered(log: &Log) {
    log.add("function");
}

/// A page with layers
#[mcp_resource(uri = "page://{id}", layers(first, Named("second")))]
async fn page(id: u32, log: &Log) -> String {
    log.add("function");
    id.to_string()
}

/// A prompt with a layer
#[mcp_prompt(layers(Named("only")))]
fn poem(log: &Log) -> &'static str {
    log.add("function");
    "Write."
}

struct Shop;

#[mcp_service]
impl Shop {
    /// Sells
    #[mcp_tool(layers(Named("of the service")))]
    fn sell(&self, log: &Log) {
        log.add("function");
    }
}

#[tokio::test]
async fn layers_of_the_server_surround_those_of_mounts_and_those_of_items() {
    let log = Log::default();
    let inner = mcp_runtime::server!()
        .tool::<layered>()
        .resource::<page>()
        .prompt::<poem>()
        .service(Shop)
        .state(log.clone())
        .layer(log.layer("inner"));
    let middle = mcp_runtime::server!().mount("b", inner).layer(log.layer("middle"));
    let server = serve(
        mcp_runtime::server!().mount("a", middle).layer(log.layer("outer")).layer(log.layer("second outer")),
    );
    server.call("a_b_layered", json!({})).await.expect_ok();
    let around = ["outer in", "second outer in", "middle in", "inner in"];
    let back = ["inner out", "middle out", "second outer out", "outer out"];
    let all = |inside: &[&'static str]| [&around[..], inside, &back[..]].concat();
    assert_eq!(log.take(), all(&["first", "second", "function"]));
    server.read("page://a_b/7").await.expect_ok();
    assert_eq!(log.take(), all(&["first", "second", "function"]));
    server.prompt("a_b_poem", json!({})).await.expect_ok();
    assert_eq!(log.take(), all(&["only", "function"]));
    server.call("a_b_sell", json!({})).await.expect_ok();
    assert_eq!(log.take(), all(&["of the service", "function"]));
}

#[tokio::test]
async fn items_made_at_run_time_have_layers_and_those_of_their_server() {
    let log = Log::default();
    let tool =
        |name: &str| ToolDef::builder(name).layer(log.layer("own")).handler(|_: ToolCall| async { "done" });
    let builder = mcp_runtime::server!().add(tool("early")).layer(log.layer("server")).build().unwrap();
    let handle = builder.handle();
    let resource = ResourceDef::builder("late://{id}")
        .layer(log.layer("own"))
        .handler(|call: ResourceCall| async move { call.uri });
    let prompt = PromptDef::builder("late").layer(log.layer("own")).handler(|_: PromptCall| async { "late" });
    handle
        .update(|items| {
            items.add(tool("late"));
            items.add(resource);
            items.add(prompt);
        })
        .unwrap();
    let server = TestServer::of(&builder);
    let all = ["server in", "own in", "own out", "server out"];
    for name in ["early", "late"] {
        server.call(name, json!({})).await.expect_text("done");
        assert_eq!(log.take(), all);
    }
    server.read("late://1").await.expect_ok();
    assert_eq!(log.take(), all);
    server.prompt("late", json!({})).await.expect_ok();
    assert_eq!(log.take(), all);
}

/// Fails as often as the state says
#[mcp_tool(timeout = "5s", max_concurrency = 1)]
async fn flaky(failures: &AtomicUsize, ctx: &Context) -> Result<&'static str, ToolError> {
    assert!(!ctx.is_cancelled(), "the context of an earlier run");
    let answer: bool = ctx.elicit("sure", "Sure?").await?;
    assert!(answer);
    ctx.progress(1.0).send();
    if failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
        return Err(std::io::Error::other("the disk is full").into());
    }
    Ok("saved")
}

/// Runs a call again while it fails for a reason that is private.
async fn retry(call: LayeredCall, next: Next) -> Outcome {
    let mut outcome = next.run(&call).await;
    for _ in 0..3 {
        let cause = outcome.as_ref().err().and_then(ToolError::cause);
        if !cause.is_some_and(|cause| cause.is::<std::io::Error>()) {
            break;
        }
        outcome = next.run(&call).await;
    }
    outcome
}

#[tokio::test]
async fn a_call_runs_again_from_its_raw_arguments() {
    for (failures, expected) in [(0, Some("saved")), (3, Some("saved")), (4, None)] {
        let builder = || {
            mcp_runtime::server!().tool::<flaky>().state(Arc::new(AtomicUsize::new(failures))).layer(retry)
        };
        let answers = json!({ "elicitation": {} });
        let accept = |_: &str, _: &Value| Ok(json!({ "action": "accept", "content": { "value": true } }));
        for legacy in [false, true] {
            let server = serve(builder()).answering(answers.clone(), accept);
            let server = if legacy { server.legacy(Revision::LATEST_LEGACY) } else { server };
            let reply = server.call("flaky", json!({})).await;
            match expected {
                Some(text) => reply.expect_text(text),
                None => reply.expect_failure("tool 'flaky' failed"),
            };
        }
    }
}

/// Is slow at first
#[mcp_tool(timeout = "20ms", max_concurrency = 1)]
async fn slow(runs: &AtomicUsize, ctx: &Context) -> &'static str {
    if runs.fetch_add(1, Ordering::SeqCst) == 0 {
        ctx.cancelled().await;
        std::future::pending::<()>().await;
    }
    assert!(!ctx.is_cancelled());
    "in time"
}

#[tokio::test]
async fn each_run_has_a_time_limit_and_a_permit_of_its_own() {
    async fn once_more(call: LayeredCall, next: Next) -> Outcome {
        match next.run(&call).await {
            Err(error) if error.is_timeout() => next.run(&call).await,
            outcome => outcome,
        }
    }
    let runs = Arc::new(AtomicUsize::new(0));
    let server = serve(mcp_runtime::server!().tool::<slow>().state(runs.clone()).layer(once_more));
    server.call("slow", json!({})).await.expect_text("in time");
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

/// Takes a number
#[mcp_tool]
fn square(n: i32) -> i32 {
    n * n
}

#[tokio::test]
async fn a_layer_knows_why_a_call_failed() {
    let log = Log::default();
    let seen = log.clone();
    let layer = move |call: LayeredCall, next: Next| {
        let log = seen.clone();
        async move {
            let outcome = next.run(&call).await;
            let error = outcome.as_ref().expect_err("a failure");
            assert_eq!((call.kind(), call.method()), (ItemKind::Tool, "tools/call"));
            log.add(format!(
                "{:?} {} {} {:?}",
                error.message(),
                error.is_invalid_arguments(),
                error.cause().is_some(),
                error.protocol_error().map(|error| error.code)
            ));
            outcome
        }
    };
    let failing = |name: &str, error: fn() -> ToolError| {
        ToolDef::builder(name).handler(move |_: ToolCall| async move { Err::<(), _>(error()) })
    };
    let server = serve(
        mcp_runtime::server!()
            .tool::<square>()
            .add(failing("public", || ToolError::new("no")))
            .add(failing("private", || ToolError::private("disk")))
            .add(failing("protocol", || ProtocolError::new(-31000, "no").into()))
            .add(ToolDef::builder("panics").handler(|_: ToolCall| async {
                if true {
                    panic!("a bug");
                }
                ""
            }))
            .layer(layer),
    );
    for name in ["square", "public", "private", "protocol", "panics"] {
        // what it answers is what the layer has seen
        let _ = server.call(name, json!({ "n": "many" })).await;
    }
    let records = log.take();
    assert!(records[0].starts_with("Some(\"") && records[0].ends_with("true false None"), "{records:?}");
    assert_eq!(records[1], "Some(\"no\") false false None");
    assert_eq!(records[2], "None false true None");
    assert_eq!(records[3], "None false false Some(-31000)");
    assert_eq!(records[4], "None false true None");
}

/// Replaces digits in texts.
async fn redact(call: LayeredCall, next: Next) -> Outcome {
    let mut outcome = next.run(&call).await?;
    if let CallOutput::Tool(result) = &mut outcome {
        for block in &mut result.content {
            if let Content::Text(block) = block {
                block.text = block.text.replace(char::is_numeric, "*").into();
            }
        }
    }
    Ok(outcome)
}

#[tokio::test]
async fn the_result_of_a_task_passes_the_layers() {
    let log = Log::default();
    let tool = |name: &str, mode| {
        ToolDef::builder(name).task(mode).handler(|_: ToolCall| async {
            tokio::task::yield_now().await;
            "account 4711"
        })
    };
    let server = serve(
        mcp_runtime::server!()
            .add(tool("task", TaskMode::Capable))
            .add(ToolDef::builder("manual").task(TaskMode::Manual).handler(|call: ToolCall| async move {
                assert!(call.context.start_task().await);
                "account 4712"
            }))
            .layer(log.layer("outer"))
            .layer(redact),
    );
    for name in ["task", "manual"] {
        server.call_task(name, json!({})).await.expect_text("account ****");
        assert_eq!(log.take(), ["outer in", "outer out"]);
    }
}

#[tokio::test]
async fn a_layer_may_ask_the_client_before_the_function_runs() {
    async fn confirm(call: LayeredCall, next: Next) -> Outcome {
        if call.context().elicit::<bool>("confirm", "Really?").await? {
            return next.run(&call).await;
        }
        Err(ToolError::new("the user said no"))
    }
    let answers = |sure: bool| {
        move |_: &str, params: &Value| {
            let sure = sure || params["message"] != "Really?";
            Ok(json!({ "action": "accept", "content": { "value": sure } }))
        }
    };
    let builder = || {
        mcp_runtime::server!()
            .tool::<flaky>()
            .state(Arc::new(AtomicUsize::new(1)))
            .layer(confirm)
            .layer(retry)
    };
    for (sure, legacy) in [(true, true), (true, false), (false, true), (false, false)] {
        let server = serve(builder()).answering(json!({ "elicitation": {} }), answers(sure));
        let server = if legacy { server.legacy(Revision::LATEST_LEGACY) } else { server };
        let reply = server.call("flaky", json!({})).await;
        if sure {
            reply.expect_text("saved")
        } else {
            reply.expect_failure("the user said no")
        };
    }
}

#[tokio::test]
async fn a_result_of_another_kind_is_a_private_failure() {
    async fn confused(_: LayeredCall, _: Next) -> Outcome {
        Ok(CallOutput::Tool(ToolResult::text("not a prompt")))
    }
    let server = serve(mcp_runtime::server!().prompt::<poem>().state(Log::default()).layer(confused));
    let reply = server.prompt("poem", json!({})).await;
    let error = reply.error().expect("an error");
    assert_eq!((error.code, &*error.message), (-32603, "prompt 'poem' failed"));
}

#[tokio::test]
async fn the_result_of_a_layer_is_held_against_the_output_schema() {
    async fn wrong(_: LayeredCall, _: Next) -> Outcome {
        Ok(CallOutput::Tool(ToolResult::text("no number").structured(&json!("none"))?))
    }
    /// Counts
    #[mcp_tool(unregistered)]
    fn count() -> Json<u32> {
        Json(1)
    }
    let server = serve(mcp_runtime::server!().tool::<count>().layer(wrong));
    server.call("count", json!({})).await.expect_failure("tool 'count' failed");
}

#[tokio::test]
async fn a_cancelled_call_drops_its_layers_and_its_function() {
    let (of_layers, of_functions) = (Gate::default(), Gate::default());
    let (layers, functions) = (of_layers.clone(), of_functions.clone());
    let guard = move |call: LayeredCall, next: Next| {
        let inside = layers.enter();
        async move {
            let outcome = next.run(&call).await;
            inside.finish();
            outcome
        }
    };
    let wait = ToolDef::builder("wait").handler(move |call: ToolCall| {
        let functions = functions.clone();
        async move {
            let _inside = functions.enter();
            call.context.cancelled().await;
            std::future::pending::<&str>().await
        }
    });
    let server = serve(mcp_runtime::server!().add(wait).layer(guard));
    let call = server.call("wait", json!({}));
    assert!(tokio::time::timeout(Duration::from_millis(30), call).await.is_err(), "it never ends");
    assert_eq!((of_functions.entered(), of_functions.dropped(), of_layers.dropped()), (1, 1, 1));
}

#[tokio::test]
async fn layers_see_each_call_of_a_batch() {
    let log = Log::default();
    let builder = mcp_runtime::server!().tool::<square>().layer(log.layer("layer")).build().unwrap();
    let mut connection = LineConnection::serve(&builder, 1 << 16);
    connection.shake_hands("2025-03-26").await;
    let calls: Vec<_> = (1..4).map(|n| legacy_call(n, "square", &json!({ "n": n }))).collect();
    let replies = connection.reply_to(&Value::from(calls)).await;
    let texts: Vec<_> = replies
        .as_array()
        .expect("an array")
        .iter()
        .map(|reply| reply["result"]["content"][0]["text"].as_str().expect("text"))
        .collect();
    assert_eq!(texts, ["1", "4", "9"]);
    assert_eq!(log.take().len(), 6);
}
