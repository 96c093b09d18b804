//! Client requests of tasks: until the task starts they belong to the call, afterwards to the task.

use super::{Probe, TASKS, assert_failure, builder, call, connect, connect_as, names};
use crate::prelude::*;

fn keys(task: &Value) -> Vec<&str> {
    task["inputRequests"]
        .as_object()
        .map_or_else(Vec::new, |asked| asked.keys().map(String::as_str).collect())
}

/// Calls a tool that asks its client first, responds to that, and returns the params and the task.
async fn answered(client: &mut Client, tool: &str, content: Value) -> (Value, Value) {
    let asked = call(client, tool, json!({})).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let answer = json!({ "user": { "action": "accept", "content": content } });
    let params = json!({
        "name": tool, "arguments": {}, "requestState": asked["requestState"], "inputResponses": answer,
    });
    let task = client.reply("tools/call", params.clone()).await;
    assert_eq!(task["resultType"], "task", "{task}");
    (params, task)
}

/// Asks and becomes a task at the same time
#[mcp_tool(task = manual)]
async fn both(ctx: &Context) -> Result<String, ToolError> {
    let (name, is_task) = tokio::join!(ctx.elicit::<String>("user", "Who?"), ctx.start_task());
    Ok(format!("{}, {is_task}", name?))
}

#[tokio::test]
async fn a_function_that_asks_and_becomes_a_task_at_once_is_asked_for_in_its_request() {
    let mut client = connect(mcp_runtime::server!().tool::<both>()).await;
    let (_, reply) = answered(&mut client, "both", json!({ "value": "Ada" })).await;
    let id = reply["taskId"].as_str().expect("an id").to_owned();
    let ended = client.until_status(&id, "completed").await;
    assert_eq!(ended["result"]["content"][0]["text"], "Ada, true", "{ended}");
}

#[tokio::test]
async fn input_requests_of_a_task_are_answered_one_by_one() {
    let mut client = connect(builder(&Probe::default())).await;
    let created = call(&mut client, "ask", json!({})).await;
    assert!(created.get("inputRequests").is_none(), "{created}");
    let id = created["taskId"].as_str().unwrap();
    let task = client.until_status(id, "input_required").await;
    assert_eq!(keys(&task), ["first", "second"]);
    assert_eq!(task["inputRequests"]["first"]["method"], "elicitation/create");
    assert_eq!(task["inputRequests"]["first"]["params"]["message"], "First name?");
    assert!(task.get("requestState").is_none() && task.get("result").is_none(), "{task}");
    // polling again changes nothing
    assert_eq!(keys(&client.task(id).await), ["first", "second"]);

    // responses to unknown keys are ignored without an error
    client.update_task(id, names(&[("third", json!("Eve"))])).await;
    assert_eq!(keys(&client.task(id).await), ["first", "second"]);

    client.update_task(id, names(&[("second", json!("Lovelace")), ("third", json!("Eve"))])).await;
    let task = client.task(id).await;
    assert_eq!((&task["status"], keys(&task)), (&json!("input_required"), vec!["first"]));
    // the response is used
    client.update_task(id, names(&[("second", json!("Byron"))])).await;
    client.update_task(id, names(&[("first", json!("Ada"))])).await;
    let task = client.until_status(id, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], "Ada Lovelace");
    assert!(task.get("inputRequests").is_none());
    client.update_task(id, names(&[("first", json!("Eve"))])).await;
}

#[tokio::test]
async fn a_key_cannot_be_reused() {
    let mut client = connect(builder(&Probe::default())).await;
    let id = client.start_task("ask", json!({})).await;
    client.until_status(&id, "input_required").await;
    client.update_task(&id, names(&[("second", json!("Lovelace")), ("first", json!(1815))])).await;
    let task = client.until_task(&id, |task| !keys(task).is_empty()).await;
    assert_eq!(keys(&task), ["first-2"], "the answer did not fit");
    client.update_task(&id, names(&[("first", json!("Eve"))])).await;
    assert_eq!(keys(&client.task(&id).await), ["first-2"], "the old key is over");
    client.update_task(&id, names(&[("first-2", json!("Ada"))])).await;
    let task = client.until_status(&id, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], "Ada Lovelace");

    let id = client.start_task("ask", json!({})).await;
    client.until_status(&id, "input_required").await;
    client.update_task(&id, names(&[("second", json!("Lovelace"))])).await;
    for key in ["first", "first-2", "first-3", "first-4"] {
        client.until_task(&id, |task| keys(task) == [key]).await;
        client.update_task(&id, names(&[(key, json!([]))])).await;
    }
    let task = client.until_status(&id, "completed").await;
    assert_eq!(task["result"]["isError"], true, "three times at most: {task}");
}

#[tokio::test]
async fn input_that_is_needed_before_the_task_is_requested_by_the_call() {
    let probe = Probe::default();
    let mut client = connect(builder(&probe)).await;
    let (params, second) = answered(&mut client, "injected", json!({ "name": "Ada" })).await;
    let id = second["taskId"].as_str().unwrap();
    let done = client.until_status(id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Ada");
    assert_eq!(probe.entered(), 1);
    // its responses are used up
    assert_failure(&client.reply("tools/call", params).await, "used before");
}

#[tokio::test]
async fn a_function_can_start_its_task_after_client_requests() {
    let probe = Probe::default();
    let mut client = connect(builder(&probe)).await;
    let (params, second) = answered(&mut client, "manual", json!({ "name": "Ada" })).await;
    let id = second["taskId"].as_str().unwrap();
    let task = client.until_status(id, "input_required").await;
    assert_eq!(keys(&task), ["more"]);
    client.update_task(id, names(&[("more", json!("Charles"))])).await;
    let done = client.until_status(id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Ada Charles true");

    // used request state is not valid for a task either
    let replayed = client.reply("tools/call", params).await;
    let id = replayed["taskId"].as_str().unwrap();
    let task = client.until_status(id, "completed").await;
    assert_eq!(task["result"]["isError"], true, "{task}");
    assert_eq!(probe.entered(), 1);
}

#[tokio::test]
async fn clients_without_tasks_get_input_requests_in_the_call() {
    let accept = |params: &Value| {
        let name = params["message"].as_str().unwrap_or_default().replace(['?', ' '], "");
        Ok(json!({ "action": "accept", "content": { "name": name } }))
    };
    let server = TestServer::new(builder(&Probe::default())).unwrap();
    let server = server.answering(json!({ "elicitation": {} }), move |_, params| accept(params));
    server.call("manual", json!({})).await.expect_text("Whoareyou Whoelse false");
    server.call("ask", json!({})).await.expect_text("Firstname Secondname");
    server.call_task("ask", json!({})).await.expect_text("Firstname Secondname");
    server.call_task("manual", json!({})).await.expect_text("Whoareyou Whoelse true");
    server.call_task("injected", json!({})).await.expect_text("Whoareyou");
    server.call_task("plain", json!({})).await.expect_text("false");
}

#[tokio::test]
async fn a_task_fails_with_the_missing_client_capability() {
    let server = builder(&Probe::default()).build().expect("a server");
    let knows_tasks = json!({ "extensions": { TASKS: {} } });
    let mut client = connect_as(&server, knows_tasks).await;
    let id = client.start_task("ask", json!({})).await;
    let task = client.until_status(&id, "failed").await;
    assert_eq!(task["error"]["code"], -32021, "{task}");
    assert!(task["error"]["data"]["requiredCapabilities"]["elicitation"].is_object(), "{task}");
    assert!(task.get("result").is_none(), "{task}");
}
