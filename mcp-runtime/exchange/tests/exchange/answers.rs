//! What an authorization server can answer, and what the model and the log see of it.

use std::time::Duration;

use mcp_runtime::{
    serde_json::{Value, json},
    testing::TestServer,
};

use crate::support::{Errors, Log, Provider, SECRET, builder_with, call, issued};

const LOG_IN: &str = "the login of the caller is not accepted for another API any more: log in again";
const LATER: &str = "the authorization server is not available: try again later";
const PRIVATE: &str = "tool 'token' failed";

/// An answer, with the caller's token repeated in it.
fn refusal(code: &str) -> Value {
    json!({ "error": code, "error_description": format!("callers-token {SECRET} is wrong"), "claims": "callers-token" })
}

#[tokio::test]
async fn each_error_of_an_authorization_server_has_its_message_and_no_token_is_shown() {
    let entra = json!({
        "error": "interaction_required", "error_codes": [50076], "suberror": "basic_action",
        "error_description": "AADSTS50076: callers-token", "trace_id": "callers-token", "claims": "{}",
    });
    let mut dpop = issued(7);
    dpop["token_type"] = "DPoP".into();
    let mut long = issued(7);
    long["access_token"] = "x".repeat((16 << 10) + 1).into();
    let mut line = issued(7);
    line["access_token"] = "callers-token\r\nx: y".into();
    let rows = [
        (400, refusal("invalid_grant").to_string(), LOG_IN, "answered 400 invalid_grant"),
        (400, refusal("invalid_request").to_string(), LOG_IN, "answered 400 invalid_request"),
        (400, refusal("login_required").to_string(), LOG_IN, "answered 400 login_required"),
        (400, refusal("consent_required").to_string(), LOG_IN, "answered 400 consent_required"),
        (400, entra.to_string(), LOG_IN, "answered 400 interaction_required, numbers [50076]"),
        (401, refusal("invalid_client").to_string(), PRIVATE, "answered 401 invalid_client"),
        (400, refusal("unauthorized_client").to_string(), PRIVATE, "answered 400 unauthorized_client"),
        (400, refusal("unsupported_grant_type").to_string(), PRIVATE, "answered 400 unsupported_grant_type"),
        (400, refusal("invalid_scope").to_string(), PRIVATE, "answered 400 invalid_scope"),
        (400, refusal("invalid_target").to_string(), PRIVATE, "answered 400 invalid_target"),
        // a code with a token in it
        (400, refusal("callers-token").to_string(), PRIVATE, "answered 400 another error"),
        (404, "<html>callers-token</html>".to_owned(), PRIVATE, "answered 404"),
        (307, String::from(" "), PRIVATE, "answered 307"),
        (400, refusal("temporarily_unavailable").to_string(), LATER, "answered 400 temporarily_unavailable"),
        (429, refusal("slow_down").to_string(), LATER, "answered 429 slow_down"),
        (500, refusal("server_error").to_string(), LATER, "answered 500 server_error"),
        (503, "callers-token".to_owned(), LATER, "answered 503"),
        (200, "callers-token".to_owned(), PRIVATE, "has no bearer token"),
        (
            200,
            json!({ "access_token": 7, "token_type": "Bearer" }).to_string(),
            PRIVATE,
            "has no bearer token",
        ),
        (
            200,
            json!({ "access_token": "", "token_type": "Bearer" }).to_string(),
            PRIVATE,
            "has no bearer token",
        ),
        (200, json!({ "token_type": "Bearer" }).to_string(), PRIVATE, "has no bearer token"),
        (200, dpop.to_string(), PRIVATE, "has no bearer token"),
        (200, long.to_string(), PRIVATE, "has no bearer token"),
        (200, line.to_string(), PRIVATE, "has no bearer token"),
        (200, "x".repeat(2 << 20), LATER, "larger than"),
    ];
    let provider = Provider::start().await;
    let exchange = provider.exchange();
    let errors = Errors::default();
    let server = TestServer::new(builder_with(exchange.clone(), errors.clone())).unwrap();
    let server = server.caller(provider.caller()).header("authorization", "Bearer callers-token");
    let all = Log::start();
    for (status, body, message, logged) in rows {
        provider.answer(status, &body);
        let reply = server.call("token", json!({})).await;
        reply.expect_failure(message);
        let (log, reply, error) = (all.text(), reply.value().to_string(), errors.take());
        assert!(error.contains(logged), "{status} {body:.80}: {error}");
        for text in [log, reply, error] {
            assert!(
                !text.contains("callers-token") && !text.contains(SECRET) && !text.contains("issued-"),
                "{text}"
            );
        }
    }
    // nothing of it is remembered
    provider.answer(200, &"");
    assert!(!call(&provider, &exchange, "callers-token").await.is_error());
}

#[tokio::test]
async fn an_authorization_server_that_cannot_be_reached_is_not_available() {
    let provider = Provider::start().await;
    let exchange = mcp_runtime_exchange::TokenExchange::at("http://127.0.0.1:1/token", "notes", SECRET);
    call(&provider, &exchange.callers_of(provider.url()), "t").await.expect_failure(LATER);
}

#[tokio::test]
async fn an_authorization_server_that_does_not_answer_is_not_available_and_nothing_of_it_is_kept() {
    let provider = Provider::start().await;
    let exchange = provider.exchange();
    provider.pause(Duration::from_secs(60));
    call(&provider, &exchange, "t").await.expect_failure(LATER);
    provider.pause(Duration::ZERO);
    call(&provider, &exchange, "t").await.expect_text("issued-2");
}

#[tokio::test]
async fn a_successful_call_logs_no_token() {
    let provider = Provider::start().await;
    let exchange = provider.exchange().audience("drive");
    let log = Log::start();
    call(&provider, &exchange, "callers-token").await.expect_text("issued-1");
    let texts = [log.text(), format!("{exchange:?}"), format!("{exchange:#?}")];
    for secret in ["callers-token", SECRET, "issued-1"] {
        assert!(texts.iter().all(|text| !text.contains(secret)), "{texts:?}");
    }
    assert!(texts[0].contains("token"), "the log is not empty: {}", texts[0]);
}
