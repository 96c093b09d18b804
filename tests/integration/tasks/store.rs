//! A custom store, which two servers share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use mcp_runtime::store::{Stored, TaskRecord, TaskStore};
use mcp_tests::support::error_code;
use serde_json::json;

use super::{Probe, builder, call, connect};

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<HashMap<String, TaskRecord>>>);

impl TaskStore for Shared {
    fn put(&self, task: TaskRecord) -> Stored<'_, ()> {
        Box::pin(async move {
            // yields, as a remote store would
            tokio::task::yield_now().await;
            self.0.lock().unwrap().insert(task.id().to_owned(), task);
            Ok(())
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> Stored<'a, Option<TaskRecord>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            Ok(self.0.lock().unwrap().get(id).cloned())
        })
    }

    fn remove<'a>(&'a self, id: &'a str) -> Stored<'a, ()> {
        Box::pin(async move {
            self.0.lock().unwrap().remove(id);
            Ok(())
        })
    }
}

#[tokio::test]
async fn replicas_with_a_shared_store_serve_each_others_tasks() {
    let (probe, shared) = (Probe::new(), Shared::default());
    let mut here = connect(builder(&probe).stores(|stores| stores.tasks(shared.clone()))).await;
    let mut there = connect(builder(&probe).stores(|stores| stores.tasks(shared.clone()))).await;
    let id = here.start_task("report", json!({})).await;
    // a task that runs on one replica is visible on the other
    there.until_task(&id, |task| task["statusMessage"] == "1 of 4").await;
    let record = shared.0.lock().unwrap()[&id].clone();
    assert!(record.is_running() && record.owner().is_none());
    assert!(!format!("{record:?}").contains(&id), "an id is a secret");
    // but only the replica that runs it can cancel it
    for (method, params) in [
        ("tasks/cancel", json!({ "taskId": id })),
        ("tasks/update", json!({ "taskId": id, "inputResponses": {} })),
    ] {
        assert_eq!(error_code(&there.reply(method, params).await), -32603);
    }
    probe.open(4);
    let task = there.until_status(&id, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], "reported");
    there.cancel_task(&id).await;
    drop(here);
    assert_eq!(there.task(&id).await, task);
    // a store deserializes its records
    let record = shared.0.lock().unwrap()[&id].clone();
    let again = TaskRecord::new(record.id(), None, record.json(), record.is_running(), record.expires())
        .with_share(record.share().expect("a share"));
    assert_eq!(again, record);
}

struct Broken;

impl TaskStore for Broken {
    fn put(&self, _: TaskRecord) -> Stored<'_, ()> {
        Box::pin(async { Err("secret of the store".into()) })
    }

    fn get<'a>(&'a self, _: &'a str) -> Stored<'a, Option<TaskRecord>> {
        Box::pin(async { Err("secret of the store".into()) })
    }

    fn remove<'a>(&'a self, _: &'a str) -> Stored<'a, ()> {
        Box::pin(async { Err("secret of the store".into()) })
    }
}

#[tokio::test]
async fn errors_of_a_store_are_private() {
    let probe = Probe::new();
    let mut client = connect(builder(&probe).stores(|stores| stores.tasks(Broken))).await;
    let refused = call(&mut client, "wait", json!({})).await;
    assert_eq!(error_code(&refused), -32603);
    assert!(!refused.to_string().contains("secret"), "{refused}");
    assert_eq!(probe.entered(), 0);
    let unknown = client.reply("tasks/get", json!({ "taskId": "x" })).await;
    assert_eq!(error_code(&unknown), -32603);
    assert!(!unknown.to_string().contains("secret"), "{unknown}");
}
