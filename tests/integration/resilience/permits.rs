//! Permits of blocking functions: a permit belongs to the thread until it returns, whatever happens to the call.

use mcp_runtime::Completion;

use super::{TestGate, here, modern, settle};
use crate::prelude::*;

/// Blocks its thread
#[mcp_tool(blocking, max_concurrency = 1)]
fn hold(gate: &Gate) -> &'static str {
    gate.block();
    "held"
}

/// Blocks its thread, as often as it is called
#[mcp_tool(blocking)]
fn occupy(gate: &Gate) -> &'static str {
    gate.block();
    "occupied"
}

/// Returns soon
#[mcp_tool(blocking)]
fn think() -> &'static str {
    "thought"
}

/// Blocks its thread for longer than its time limit
#[mcp_tool(blocking, max_concurrency = 1, timeout = "500ms")]
fn overstay(gate: &Gate) -> &'static str {
    gate.block();
    "stayed"
}

/// Blocks its thread, as a task
#[mcp_tool(task, blocking, max_concurrency = 1)]
fn crunch(gate: &Gate) -> &'static str {
    gate.block();
    "crunched"
}

fn held_list(gate: &Gate) -> Vec<&'static str> {
    gate.block();
    vec!["held://listed"]
}

fn held_ids(_: &Completion, gate: &Gate) -> Vec<&'static str> {
    gate.block();
    vec!["completed"]
}

/// Blocks its thread, and so do the functions that it names
#[mcp_resource(uri = "held://{id}", blocking, list = held_list)]
fn held_instance(#[mcp(complete = held_ids)] id: String, gate: &Gate) -> String {
    gate.block();
    id
}

/// Is async, and names functions that block their thread
#[mcp_resource(uri = "hold://{id}", list = blocking(held_list))]
async fn hold_instance(#[mcp(complete = blocking(held_ids))] id: String) -> String {
    id
}

/// Blocks its thread
#[mcp_resource(uri = "held://one", blocking)]
fn held(gate: &Gate) -> &'static str {
    gate.block();
    "held"
}

/// Blocks its thread
#[mcp_prompt(blocking)]
fn hold_on(gate: &Gate) -> &'static str {
    gate.block();
    "hold on"
}

#[tokio::test]
async fn a_disconnect_releases_the_permit_only_when_the_thread_returns() {
    let gate = TestGate::default();
    let served = HttpServer::start(mcp_runtime::server!().tool::<hold>().state(gate.0.clone())).await;
    for call in 0..50 {
        let mut connection = HttpConnection::open(served.address).await;
        connection.send(&modern("hold")).await;
        if call == 0 {
            gate.until_entered(1).await;
        } else {
            // for as long as waiting for a permit would take
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    settle().await;
    assert_eq!(gate.entered(), 1, "threads of a function that may have one");
    gate.open_for_all();
    // it queues behind all earlier calls
    let last = within(modern("hold").send(served.address)).await;
    assert_eq!(text_of(&last.json()), "held");
    assert_eq!(gate.entered(), 2, "calls whose clients have gone are not run");
}

#[tokio::test]
async fn a_caller_whose_blocking_functions_never_return_leaves_threads_to_another() {
    let gate = TestGate::default();
    let builder = mcp_runtime::server!().tool::<occupy>().tool::<think>().state(gate.0.clone());
    let server = builder.build().expect("a server");
    let [ada, bob] = ["ada", "bob"].map(|name| TestServer::of(&server).caller(Principal::new("test", name)));
    // more than the pool has threads
    let mut calls: Vec<_> = (0..600).map(|_| Box::pin(ada.call("occupy", json!({})))).collect();
    for call in &mut calls {
        tokio::select! {
            biased;
            reply = call => panic!("it has returned: {reply:?}"),
            () = std::future::ready(()) => {}
        }
    }
    bob.call("think", json!({})).await.expect_text("thought");
    drop(calls);
    gate.open_for_all();
    until(|| gate.finished() == gate.entered()).await;
    ada.call("think", json!({})).await.expect_text("thought");
}

#[tokio::test]
async fn a_time_limit_releases_the_permit_only_when_the_thread_returns() {
    let gate = TestGate::default();
    let server = serve(mcp_runtime::server!().tool::<overstay>().state(gate.0.clone()));
    let limit = "tool 'overstay' took longer than its limit of 500ms";
    assert_eq!(failure(&server.call("overstay", json!({})).await), limit);
    // the second call waits for the permit until its own time limit
    assert_eq!(failure(&server.call("overstay", json!({})).await), limit);
    assert_eq!(gate.entered(), 1);
    gate.open_for_all();
    until(|| gate.finished() == 1).await;
    server.call("overstay", json!({})).await.expect_text("stayed");
    assert_eq!(gate.entered(), 2);
}

#[tokio::test]
async fn a_cancelled_task_releases_its_permit_only_when_its_thread_returns() {
    let gate = TestGate::default();
    let server = mcp_runtime::server!().tool::<crunch>().state(gate.0.clone()).build().expect("a server");
    let knows_tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let mut client =
        Client::connect(&server, Transport::Memory, Revision::LATEST, knows_tasks, no_requests).await;
    for task in 0..20 {
        let id = within(client.start_task("crunch", json!({}))).await;
        if task == 0 {
            gate.until_entered(1).await;
        } else {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        client.cancel_task(&id).await;
    }
    settle().await;
    assert_eq!(gate.entered(), 1, "threads of a function that may have one");
    gate.open_for_all();
    let last = client.start_task("crunch", json!({})).await;
    client.until_status(&last, "completed").await;
    assert_eq!(gate.entered(), 2, "tasks that were cancelled are not run");
}

#[tokio::test]
async fn a_request_holds_its_permit_until_its_thread_returns() {
    for request in [
        modern("hold"),
        HttpRequest::modern(1, "resources/read", json!({ "uri": "held://one" })),
        HttpRequest::modern(1, "resources/read", json!({ "uri": "held://two" })),
        HttpRequest::modern(1, "prompts/get", json!({ "name": "hold_on" })),
        HttpRequest::modern(1, "resources/list", json!({})),
        completion("held://{id}"),
        completion("hold://{id}"),
    ] {
        let gate = TestGate::default();
        let builder = mcp_runtime::server!().tool::<hold>().resource::<held>().prompt::<hold_on>();
        let builder = builder.resource::<held_instance>().resource::<hold_instance>();
        let builder = builder.tool::<here>().http(|http| http.max_requests(1));
        let served = HttpServer::start(builder.state(gate.0.clone())).await;
        let mut connection = HttpConnection::open(served.address).await;
        connection.send(&request).await;
        gate.until_entered(1).await;
        drop(connection);
        for _ in 0..20 {
            let refused = modern("here").send(served.address).await;
            assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
            assert_eq!((refused.code(), &refused.json()["id"]), (-32603, &json!(1)));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        gate.open_for_all();
        within(async {
            while modern("here").send(served.address).await.status != 200 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}

/// A modern completion of `id`, over HTTP.
fn completion(template: &str) -> HttpRequest {
    let reference = json!({ "type": "ref/resource", "uri": template });
    let params = json!({ "ref": reference, "argument": { "name": "id", "value": "" } });
    HttpRequest::modern(1, "completion/complete", params)
}

/// On one thread, a function that runs in place would hold up the call that lets it go.
#[tokio::test]
async fn blocking_resources_prompts_and_named_functions_leave_the_runtime_to_other_calls() {
    let gate = TestGate::default();
    let builder = mcp_runtime::server!().resource::<held>().prompt::<hold_on>().tool::<here>();
    let builder = builder.resource::<held_instance>().resource::<hold_instance>();
    let server = serve(builder.state(gate.0.clone()));
    let others = async {
        gate.until_entered(5).await;
        server.call("here", json!({})).await.expect_text("here");
        gate.open_for_all();
    };
    let (read, prompt, list, one, other, ()) = tokio::join!(
        server.read("held://one"),
        server.prompt("hold_on", json!({})),
        server.list_resources(),
        server.complete("held://{id}", "id", ""),
        server.complete("hold://{id}", "id", ""),
        others
    );
    read.expect_text("held");
    assert_eq!(prompt.value()["messages"][0]["content"]["text"], "hold on");
    let uris: Vec<_> = list.iter().map(|entry| entry["uri"].clone()).collect();
    assert_eq!(uris, ["held://one", "held://listed", "held://listed"]);
    for reply in [one, other] {
        assert_eq!(reply.value()["completion"]["values"], json!(["completed"]));
    }
}

/// Elicits while it holds the only permit
#[mcp_tool(max_concurrency = 1, timeout = "300ms")]
async fn ask(ctx: &Context, runs: &AtomicUsize) -> Result<String, ToolError> {
    runs.fetch_add(1, Ordering::SeqCst);
    let Name { name } = ctx.elicit("name", "What is your name?").await?;
    Ok(name)
}

#[tokio::test]
async fn the_time_limit_of_a_call_includes_its_wait_for_a_permit() {
    let runs = Arc::new(AtomicUsize::new(0));
    let server = mcp_runtime::server!().tool::<ask>().state(runs.clone()).build().expect("a server");
    let mut client = LineConnection::serve(&server, 1 << 16);
    client.reply_to(&initialize(0, "2025-11-25", &json!({ "elicitation": {} }))).await;
    client.send(&notification("notifications/initialized", json!({}))).await;
    client.send(&legacy_call(1, "ask", &json!({}))).await;
    let asked = client.message().await;
    assert_eq!(asked["method"], "elicitation/create");
    // the clock of the first call is paused while its client responds, and it keeps its permit
    client.send(&legacy_call(2, "ask", &json!({}))).await;
    let failed = within(client.message()).await;
    assert_eq!((&failed["id"], &failed["result"]["isError"]), (&json!(2), &json!(true)), "{failed}");
    assert_eq!(text_of(&failed), "tool 'ask' took longer than its limit of 300ms");
    assert_eq!(runs.load(Ordering::SeqCst), 1, "it was never run");
    let result = json!({ "action": "accept", "content": { "name": "Ada" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })).await;
    assert_eq!(text_of(&client.message().await), "Ada");
}
