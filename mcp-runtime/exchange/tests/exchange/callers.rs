//! Whose tokens are exchanged, and what is sent.

use std::time::Duration;

use mcp_runtime::{Principal, ToolError, config::Secret};
use mcp_runtime_exchange::TokenExchange;

use crate::support::{Provider, SECRET, call, call_as};

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

#[tokio::test]
async fn the_token_of_the_request_is_exchanged_for_one_of_the_api() {
    let provider = Provider::start().await;
    let exchange = provider.exchange().audience("drive").resource("https://drive.example.com/");
    let exchange = exchange.scopes(["files:read", "files:write"]);
    call(&provider, &exchange, "callers-token").await.expect_text("issued-1");

    let asked = provider.asked().remove(0);
    let pairs = [
        ("grant_type", EXCHANGE),
        ("subject_token", "callers-token"),
        ("subject_token_type", ACCESS_TOKEN),
        ("audience", "drive"),
        ("resource", "https://drive.example.com/"),
        ("scope", "files:read files:write"),
    ];
    assert_eq!(asked.fields(), pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
    // `notes+app:a+s%26cret-of-the-program`
    let header = "Basic bm90ZXMrYXBwOmErcyUyNmNyZXQtb2YtdGhlLXByb2dyYW0=";
    assert_eq!(asked.authorization.as_deref(), Some(header));
}

#[tokio::test]
async fn the_secret_is_sent_as_a_field_where_the_program_or_the_metadata_says_so() {
    let provider = Provider::start().await;
    call(&provider, &provider.exchange().secret_by_post(), "t").await.expect_text("issued-1");
    let discovered = || TokenExchange::issuer(provider.url(), "notes app", SECRET);
    let methods = ["private_key_jwt", "client_secret_post"];
    provider.set_metadata("token_endpoint_auth_methods_supported", methods.as_slice().into());
    call(&provider, &discovered(), "t").await.expect_text("issued-2");
    for asked in provider.asked() {
        assert_eq!(asked.authorization, None);
        assert_eq!(
            (asked.all("client_id"), asked.all("client_secret")),
            (vec!["notes app".to_owned()], vec![SECRET.to_owned()])
        );
    }
    let methods = ["client_secret_post", "client_secret_basic"];
    provider.set_metadata("token_endpoint_auth_methods_supported", methods.as_slice().into());
    call(&provider, &discovered(), "t").await.expect_text("issued-3");
    assert!(
        provider.asked()[2].authorization.is_some() && provider.asked()[2].all("client_secret").is_empty()
    );
}

#[tokio::test]
async fn entra_is_asked_on_behalf_of_the_caller() {
    let provider = Provider::start().await;
    let graph = provider.exchange().on_behalf_of().audience("https://graph.example.com");
    call(&provider, &graph, "callers-token").await.expect_text("issued-1");
    call(&provider, &graph.scopes(["User.Read", "Mail.Read"]), "callers-token").await.expect_text("issued-2");
    for (asked, scope) in
        provider.asked().iter().zip(["https://graph.example.com/.default", "User.Read Mail.Read"])
    {
        let pairs = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            ("requested_token_use", "on_behalf_of"),
            ("assertion", "callers-token"),
            ("scope", scope),
        ];
        assert_eq!(asked.fields(), pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}

#[tokio::test]
async fn only_bearer_tokens_of_the_issuer_leave_the_server() {
    let provider = Provider::start().await;
    let exchange = provider.exchange();
    let issuer = provider.url();
    let ada = || Principal::new(&issuer, "ada");
    let refused = "the caller has no token that can be exchanged for one of another API";
    for (caller, header, message) in [
        (None, "Bearer t", refused),
        (Some(Principal::new("https://id.example.com", "ada")), "Bearer t", refused),
        (Some(Principal::new(format!("{issuer}/"), "ada")), "Bearer t", refused),
        // a stored caller, whose request is gone
        (Some(ada()), "", refused),
        (Some(ada()), "Basic t", refused),
        (Some(ada()), "Bearer", refused),
        (Some(ada()), "Bearer ", refused),
        (Some(ada()), "DPoP t", refused),
        (
            Some(ada().with_confirmation_key("thumbprint")),
            "Bearer t",
            "the caller's token is bound to its client and cannot be exchanged",
        ),
    ] {
        call_as(&exchange, caller, header).await.expect_failure(message);
    }
    assert!(provider.asked().is_empty());
    call_as(&exchange, Some(ada()), "bearer t").await.expect_text("issued-1");
}

#[tokio::test]
async fn without_callers_nothing_is_exchanged() {
    let provider = Provider::start().await;
    let exchange = TokenExchange::at(format!("{}/token", provider.url()), "notes", SECRET);
    call(&provider, &exchange, "t").await.expect_failure("tool 'token' failed");
    assert!(provider.asked().is_empty());
}

#[tokio::test]
async fn a_token_that_the_program_keeps_is_exchanged_instead() {
    let provider = Provider::start().await;
    let exchange = provider.exchange().subject(|context| async move {
        match context.caller().map(Principal::subject) {
            Some("ada") => Ok(Secret::new("kept-for-ada".to_owned())),
            _ => Err(ToolError::new("log in at the drive first")),
        }
    });
    call(&provider, &exchange, "callers-token").await.expect_text("issued-1");
    assert_eq!(provider.asked()[0].all("subject_token"), ["kept-for-ada"]);
    let bob = Principal::new(provider.url(), "bob");
    call_as(&exchange, Some(bob), "Bearer t").await.expect_failure("log in at the drive first");
    assert_eq!(provider.asked().len(), 1);
}

#[tokio::test]
async fn an_issuer_is_discovered_once_and_must_be_the_one_that_was_named() {
    let provider = Provider::start().await;
    let exchange = TokenExchange::issuer(provider.url(), "notes", SECRET);
    call(&provider, &exchange, "a").await.expect_text("issued-1");
    call(&provider, &exchange, "b").await.expect_text("issued-2");
    assert_eq!(provider.discoveries(), 1);
    provider.set_metadata("issuer", "https://another.example.com".into());
    let exchange = TokenExchange::issuer(provider.url(), "notes", SECRET);
    call(&provider, &exchange, "a").await.expect_failure("the authorization server is not available");
    // a token endpoint that secrets must not be sent to
    provider.set_metadata("issuer", provider.url().into());
    provider.set_metadata("token_endpoint", "http://login.example.com/token".into());
    let exchange = TokenExchange::issuer(provider.url(), "notes", SECRET);
    call(&provider, &exchange, "a").await.expect_failure("tool 'token' failed");
    assert_eq!(provider.asked().len(), 2);
}

#[tokio::test]
async fn secrets_are_sent_by_https_or_on_this_machine() {
    let provider = Provider::start().await;
    for url in
        ["http://login.example.com/token", "ftp://127.0.0.1/token", "login", "https://a:b@example.com/"]
    {
        let exchange = TokenExchange::at(url, "notes", SECRET).callers_of(provider.url());
        call(&provider, &exchange, "t").await.expect_failure("tool 'token' failed");
    }
    let away = provider.url().replace("127.0.0.1", "localhost");
    let exchange = TokenExchange::at(format!("{away}/token"), "notes", SECRET).callers_of(provider.url());
    provider.pause(Duration::ZERO);
    call(&provider, &exchange, "t").await.expect_text("issued-1");
}
