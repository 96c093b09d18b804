//! The `convert` example, with settings of the test.

use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/convert.rs"]
mod example;

fn settings() -> example::Settings {
    let settings =
        json!({ "rates_key": "sk-test", "timeout": "1s", "base": "EUR", "limits": { "max_amount": 100 } });
    serde_json::from_value(settings).unwrap()
}

#[tokio::test]
async fn a_test_passes_settings_as_state() {
    let server = TestServer::new(example::server().state(settings())).unwrap();
    server.call("convert", json!({ "amount": 5, "to": "USD" })).await.expect_text("5 Eur = 5.80 Usd");
    let reply = server.call("convert", json!({ "amount": 101, "to": "USD" })).await;
    reply.expect_failure("at most 100 can be converted at once");
}
