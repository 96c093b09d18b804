//! `subscriptions/listen` with `taskIds`: which clients are notified of a task, and what notifications contain.

use super::{Probe, TASKS, builder, connect, connect_to, names};
use crate::prelude::*;

/// The task without the members that depend on where it was read.
fn comparable(mut task: Value) -> Value {
    if let Some(task) = task.as_object_mut() {
        for key in ["_meta", "resultType", "ttlMs"] {
            task.remove(key);
        }
    }
    task
}

#[tokio::test]
async fn task_notifications_have_everything_that_tasks_get_returns() {
    let probe = Probe::default();
    let mut client = connect(builder(&probe)).await;
    let ended = client.start_task("crunch", json!({})).await;
    client.until_status(&ended, "completed").await;
    let reported = client.start_task("report", json!({})).await;
    client.until_task(&reported, |task| task["statusMessage"] == "1 of 4").await;
    let asking = client.start_task("ask", json!({})).await;
    client.until_status(&asking, "input_required").await;

    let mut changes = client.memory().listen(json!({ "taskIds": ["x", ended, reported, asking] })).await;
    // a task that has ended sends nothing more, and an unknown id stays unknown
    assert_eq!(changes.acknowledged(), &json!({ "taskIds": [reported, asking] }));
    assert_eq!(changes.try_next(), None);

    probe.open(1);
    let told = changes.next().await;
    assert_eq!(told["method"], "notifications/tasks");
    assert!(told["params"]["_meta"].get("io.modelcontextprotocol/subscriptionId").is_some(), "{told}");
    assert_eq!(told["params"]["statusMessage"], "half of it");
    assert_eq!(comparable(told["params"].clone()), comparable(client.task(&reported).await));

    client.update_task(&asking, names(&[("first", json!("Ada"))])).await;
    let told = changes.next().await;
    assert_eq!(told["params"]["taskId"], asking);
    assert_eq!(told["params"]["status"], "input_required");
    assert_eq!(told["params"]["inputRequests"].as_object().map(|asked| asked.len()), Some(1), "{told}");
    client.update_task(&asking, names(&[("second", json!("Lovelace"))])).await;
    let mut told = changes.next().await;
    while told["params"]["status"] == "working" {
        told = changes.next().await;
    }
    assert_eq!(told["params"]["result"]["content"][0]["text"], "Ada Lovelace");
    assert_eq!(comparable(told["params"].clone()), comparable(client.task(&asking).await));

    client.cancel_task(&reported).await;
    let told = changes.next().await;
    let told = (&told["params"]["taskId"], &told["params"]["status"]);
    assert_eq!(told, (&json!(reported), &json!("cancelled")));
}

#[tokio::test(start_paused = true)]
async fn listening_keeps_a_task_from_expiring_that_works_and_none_that_waits_for_its_client() {
    let probe = Probe::default();
    let mut client = connect(builder(&probe).tasks(|tasks| tasks.ttl(Duration::from_secs(60)))).await;
    let working = client.start_task("wait", json!({})).await;
    let waiting = client.start_task("ask", json!({})).await;
    client.until_status(&waiting, "input_required").await;
    let changes = client.memory().listen(json!({ "taskIds": [working, waiting] })).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(error_code(&client.reply("tasks/get", json!({ "taskId": waiting })).await), -32602);
    assert_eq!(client.task(&working).await["status"], "working");
    drop(changes);
    tokio::time::sleep(Duration::from_secs(121)).await;
    assert_eq!(error_code(&client.reply("tasks/get", json!({ "taskId": working })).await), -32602);
    probe.until_running(0).await;
}

#[tokio::test]
async fn subscribing_to_tasks_needs_the_extension() {
    let server = builder(&Probe::default()).build().unwrap();
    let id = connect_to(&server).await.start_task("wait", json!({})).await;
    let filter = json!({ "notifications": { "taskIds": [id] } });
    let unaware = TestServer::of(&server);
    let refused = unaware.request("subscriptions/listen", filter).await.error().expect("an error");
    assert_eq!(refused.code, -32021);
    let required = json!({ "requiredCapabilities": { "extensions": { TASKS: {} } } });
    assert_eq!(refused.data, Some(required));
}
