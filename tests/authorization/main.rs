//! A protected server between real authorization servers and real clients: discovery, registration, PKCE, a call, a second
//! scope, expiry and renewal, all without a browser.
//!
//! The normal run has each client once. All pairs:
//!
//! ```sh
//! cargo test -p mcp-tests --test authorization -- --ignored --nocapture
//! ```

// the table of all pairs is what its test is run for
#![allow(clippy::print_stdout)]

mod clients;

use std::time::Duration;

use clients::AuthorizedClient;
use mcp_runtime::{Principal, ServerBuilder, auth::Oauth, prelude::*};
use mcp_tests::{
    external::{
        Missing,
        authorization_server::{AuthorizationServer, Software},
        skip,
    },
    support::HttpServer,
};
use serde_json::json;
use tokio::net::TcpListener;

/// How long access tokens live.
const LIFETIME: Duration = Duration::from_secs(4);

/// Reads a note
#[mcp_tool(read_only, scopes("notes:read"))]
fn read_note(caller: &Principal) -> String {
    format!("a note of {}", caller.subject())
}

/// Writes a note
#[mcp_tool(scopes("notes:write"))]
fn write_note(caller: &Principal) -> String {
    format!("written by {}", caller.subject())
}

/// A server whose users sign in at this issuer.
fn protected(issuer: &str, resource: &str) -> ServerBuilder {
    let oauth = Oauth::issuer(issuer)
        .resource(resource)
        .scopes(["notes:read", "notes:write"])
        .required_scopes(["notes:read"])
        .clock_skew(Duration::ZERO);
    mcp_runtime::server!().tool::<read_note>().tool::<write_note>().auth(oauth)
}

/// A running server, and the authorization server that it trusts.
struct Protected {
    url: String,
    _server: HttpServer,
    _issuer: AuthorizationServer,
}

impl Protected {
    async fn start(software: Software) -> Result<Self, Missing> {
        let start = move || AuthorizationServer::start(software, LIFETIME);
        let issuer = tokio::task::spawn_blocking(start).await.expect("it starts")?;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let built = protected(&issuer.issuer, &url).build().expect("a server");
        let server = HttpServer::on(listener, &built).await;
        Ok(Self { url, _server: server, _issuer: issuer })
    }
}

/// Runs one client against a server that trusts one authorization server.
async fn authorize(client: AuthorizedClient, software: Software) -> Result<(), Missing> {
    let protected = Protected::start(software).await?;
    let report = client.run(&protected.url, LIFETIME + Duration::from_secs(1)).await?;
    // the second visit is for the second scope; a token that expires is renewed without one
    let expected = json!({
        "tools": ["read_note", "write_note"],
        "read": "a note of ada",
        "written": "written by ada",
        "again": "a note of ada",
        "visits": 2,
    });
    for (key, seen) in report.as_object().expect("a report") {
        assert_eq!(*seen, expected[key], "{client:?}, {software:?}: {key}");
    }
    assert!(report["tools"].is_array(), "{report}");
    Ok(())
}

async fn authorize_or_skip(test: &str, client: AuthorizedClient, software: Software) {
    if let Err(missing) = authorize(client, software).await {
        skip(test, &missing);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn this_client_signs_in_at_authlib() {
    authorize_or_skip("this_client_signs_in_at_authlib", AuthorizedClient::Own, Software::Authlib).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_signs_in_at_oidc_provider() {
    let (client, software) = (AuthorizedClient::Python, Software::OidcProvider);
    authorize_or_skip("the_python_sdk_signs_in_at_oidc_provider", client, software).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_sdk_signs_in_at_authlib() {
    let (client, software) = (AuthorizedClient::TypeScript, Software::Authlib);
    authorize_or_skip("the_typescript_sdk_signs_in_at_authlib", client, software).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute: every client with every authorization server"]
async fn every_client_signs_in_at_every_authorization_server() {
    for client in AuthorizedClient::ALL {
        for software in Software::ALL {
            let outcome = authorize(client, software).await;
            println!("{client:?} at {software:?}: {outcome:?}");
        }
    }
}
