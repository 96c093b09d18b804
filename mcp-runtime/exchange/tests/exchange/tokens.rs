//! How long tokens are kept, and who waits for whom.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use mcp_runtime::{
    Principal,
    serde_json::{Value, json},
    testing::TestServer,
};
use tokio::task::JoinSet;

use crate::support::{Provider, builder, call, call_as, issued};

#[tokio::test]
async fn a_token_is_kept_for_its_caller_and_its_target_alone() {
    let provider = Provider::start().await;
    let exchange = provider.exchange().audience("drive");
    call(&provider, &exchange, "first").await.expect_text("issued-1");
    call(&provider, &exchange, "first").await.expect_text("issued-1");
    // a replaced token of the same caller
    call(&provider, &exchange, "second").await.expect_text("issued-2");
    call(&provider, &exchange.clone().scopes(["files:read"]), "first").await.expect_text("issued-3");
    call(&provider, &exchange.clone().audience("mail"), "first").await.expect_text("issued-4");
    call(&provider, &exchange.clone().resource("mail"), "first").await.expect_text("issued-5");
    call(&provider, &exchange, "first").await.expect_text("issued-1");
    assert_eq!(provider.asked().len(), 5);
}

#[tokio::test]
async fn a_token_is_not_used_in_its_last_minute_nor_in_that_of_the_callers() {
    let provider = Provider::start().await;
    for (lifetime, is_kept) in [
        (json!(600), true),
        (json!(62.5), true),
        (json!(60), false),
        (json!(0), false),
        (json!(-5), false),
        (json!(1e300), false),
        (Value::Null, false),
    ] {
        let mut answer = issued(1);
        answer["expires_in"] = lifetime.clone();
        if lifetime.is_null() {
            answer.as_object_mut().unwrap().remove("expires_in");
        }
        provider.answer(200, &answer);
        let (exchange, before) = (provider.exchange(), provider.asked().len());
        call(&provider, &exchange, "t").await.expect_text("issued-1");
        call(&provider, &exchange, "t").await.expect_text("issued-1");
        assert_eq!(provider.asked().len() - before, if is_kept { 1 } else { 2 }, "{lifetime}");
    }
    provider.answer(200, &"");
    let (exchange, before) = (provider.exchange(), provider.asked().len());
    let soon = Principal::new(provider.url(), "ada").with_expiry(SystemTime::now() + Duration::from_secs(59));
    for _ in 0..2 {
        assert!(!call_as(&exchange, Some(soon.clone()), "Bearer t").await.is_error());
    }
    assert_eq!(provider.asked().len() - before, 2);
}

#[tokio::test]
async fn a_hundred_concurrent_calls_of_a_caller_are_one_request() {
    let provider = Provider::start().await;
    provider.pause(Duration::from_millis(300));
    for (status, answer) in [(200, String::new()), (400, json!({ "error": "invalid_grant" }).to_string())] {
        provider.answer(status, &answer);
        let before = provider.asked().len();
        let server = TestServer::new(builder(provider.exchange())).unwrap().caller(provider.caller());
        let server = Arc::new(server.header("authorization", "Bearer t"));
        let mut calls = JoinSet::new();
        for _ in 0..100 {
            let server = server.clone();
            calls.spawn(async move { server.call("token", json!({})).await.value().to_string() });
        }
        let replies: std::collections::HashSet<String> = calls.join_all().await.into_iter().collect();
        assert_eq!(replies.len(), 1, "{replies:?}");
        assert_eq!(provider.asked().len() - before, 1);
    }
}

#[tokio::test]
async fn a_call_that_goes_away_does_not_end_the_request_of_others() {
    let provider = Provider::start().await;
    provider.pause(Duration::from_millis(200));
    let exchange = provider.exchange();
    let (first_provider, first_exchange) = (provider.clone(), exchange.clone());
    let first =
        tokio::spawn(async move { call(&first_provider, &first_exchange, "t").await.value().to_string() });
    while provider.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    let second = call(&provider, &exchange, "t");
    let (second, ()) = tokio::join!(second, async { first.abort() });
    assert!(second.value().to_string().contains("issued-"), "{}", second.value());
}

#[tokio::test]
async fn thousands_of_tokens_are_bounded() {
    let provider = Provider::start().await;
    let exchange = provider.exchange();
    let server = |token: usize| {
        let server = TestServer::new(builder(exchange.clone())).unwrap().caller(provider.caller());
        server.header("authorization", format!("Bearer t{token}"))
    };
    for token in 0..1_100 {
        server(token).call("token", json!({})).await.expect_text(&format!("issued-{}", token + 1));
    }
    // the newest are kept, and the oldest were dropped
    server(1_099).call("token", json!({})).await.expect_text("issued-1100");
    server(0).call("token", json!({})).await.expect_text("issued-1101");
}
