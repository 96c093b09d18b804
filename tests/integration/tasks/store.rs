//! Tasks in a store that replicas share, as clients in memory see them; `tests/shared` has what happens between replicas.

use super::{Probe, builder, call, connect, names};
use crate::prelude::*;

#[tokio::test]
async fn errors_of_a_store_are_private() {
    let (probe, store) = (Probe::default(), BreakableStore::default());
    let broken = builder(&probe).stores(|stores| stores.keys([server_key(1)])).shared(store.clone());
    let mut client = connect(broken).await;
    store.set_broken(true);
    let refused = call(&mut client, "wait", json!({})).await;
    assert_eq!(error_code(&refused), -32603);
    assert!(!refused.to_string().contains("out of order"), "{refused}");
    assert_eq!(probe.entered(), 0);
    let unknown = client.reply("tasks/get", json!({ "taskId": "x" })).await;
    assert_eq!(error_code(&unknown), -32603);
    assert!(!unknown.to_string().contains("out of order"), "{unknown}");
    store.set_broken(false);
    let id = client.start_task("ask", json!({})).await;
    client.until_status(&id, "input_required").await;
    client.update_task(&id, names(&[("first", json!("Ada")), ("second", json!("Byron"))])).await;
    let task = client.until_status(&id, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], "Ada Byron");
}
