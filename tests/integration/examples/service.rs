//! The `service` example.

use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/service.rs"]
mod example;

#[tokio::test]
async fn instances_have_separate_names_and_data_and_a_mount_keeps_its_state() {
    let server = TestServer::new(example::server()).unwrap();
    let tools = server.list_tools().await;
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["stock", "lyon_stock", "prices_add_tax"]);
    server.call("stock", json!({ "article": "tea" })).await.expect_text("40");
    server.call("lyon_stock", json!({ "article": "tea" })).await.expect_text("3");
    server.call("lyon_stock", json!({ "article": "rope" })).await.expect_failure("Lyon has no `rope`");
    server.call("prices_add_tax", json!({ "price": 50 })).await.expect_text("60");
    server.read("stock://all").await.expect_json(&json!({ "rope": 7, "tea": 40 }));
    server.read("stock://lyon/all").await.expect_json(&json!({ "tea": 3 }));
    let order = server.prompt("lyon_reorder", json!({ "article": "tea", "pieces": 20 })).await;
    order.expect_text("Write a short order of 20 pieces of tea, to be delivered to Lyon.");
}
