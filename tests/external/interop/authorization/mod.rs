//! Authorization from end to end, without a person: authorization servers of others, our server, and clients of our own and of
//! others. Each client discovers, registers, gets a token, calls, asks for another scope when a call needs it, and renews
//! a token that has expired.

pub(crate) mod server;

use std::time::Duration;

use mcp_runtime::{
    auth::Oauth,
    client::{Client, Error, OAuth},
};
use mcp_tests::support::HttpRequest;
use serde_json::json;

use server::{ForeignClient, Kind, Protected, Provider};

/// Where the browser is sent at the end; nothing listens there.
pub(crate) const CALLBACK: &str = "http://127.0.0.1:9/callback";

/// How a client comes to be known.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Registration {
    Dynamic,
    Known,
    Document,
}

/// A client of our own, whose user has this provider's browser.
pub(crate) fn oauth(provider: &Provider, registration: Registration) -> OAuth {
    let address = provider.address();
    let visit = move |url: String| async move {
        let path = format!("/browse?url={}", percent_encode(&url));
        let response = HttpRequest::new("GET").path(&path).send(address).await;
        let location = response.header("location").map(str::to_owned);
        location.ok_or_else(|| format!("the browser is not sent back: {}", response.text()))
    };
    let oauth = OAuth::authorization_code(CALLBACK, visit).name("interop");
    match registration {
        Registration::Dynamic => oauth,
        Registration::Known => oauth.registered(provider.url(), "known", Some("known-secret")),
        Registration::Document => oauth.client_metadata("https://client.example.com/metadata.json"),
    }
}

fn percent_encode(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// Calls everything with a client of our own.
async fn drive_own_client(kind: Kind, registration: Registration) {
    let Some(provider) = Provider::start(kind, 3) else { return };
    let protected = Protected::start(&provider).await;
    let builder = Client::builder().oauth(oauth(&provider, registration));
    let client = builder.connect(protected.url()).await.expect("a connection");
    let call = async |tool: &str| {
        let result = client.call(tool, json!({})).await;
        result.unwrap_or_else(|error| panic!("{registration:?}: {error}")).ok().expect("a result").text()
    };
    assert_eq!(call("whoami").await, "ada notes:read", "{registration:?}");
    assert_eq!(call("read_notes").await, "notes");
    assert_eq!(call("delete_notes").await, "deleted", "after a second authorization");
    assert!(call("whoami").await.contains("notes:write"));
    // until the token has expired
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(call("read_notes").await, "notes", "with a token that was renewed");
    client.close().await;
}

async fn drive_foreign_client(kind: Kind, client: ForeignClient) {
    let Some(provider) = Provider::start(kind, 600) else { return };
    let protected = Protected::start(&provider).await;
    let report = client.drive(&protected, &provider).await;
    assert_eq!(report, json!(["ada notes:read", "notes", "deleted"]), "{client:?} {kind:?}");
}

#[tokio::test]
async fn our_client_gets_its_tokens_from_oidc_provider() {
    drive_own_client(Kind::OidcJwt, Registration::Dynamic).await;
}

#[tokio::test]
async fn our_client_gets_its_tokens_from_authlib() {
    drive_own_client(Kind::Authlib, Registration::Dynamic).await;
}

#[tokio::test]
async fn our_client_binds_its_tokens_to_a_key_where_the_server_requires_it() {
    let Some(provider) = Provider::start(Kind::OidcJwt, 3) else { return };
    // the second call comes with a nonce that is too old
    let required = |oauth: Oauth| oauth.require_dpop().dpop_nonces(Duration::from_secs(2));
    let protected = Protected::start_with(&provider, required).await;
    let builder = Client::builder().oauth(oauth(&provider, Registration::Dynamic));
    let client = builder.connect(protected.url()).await.expect("a connection");
    for seconds in [0, 4] {
        // until the token has expired
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let result = client.call("read_notes", json!({})).await.expect("a result");
        assert_eq!(result.ok().expect("a result").text(), "notes");
    }
    client.close().await;
}

#[tokio::test]
async fn our_client_uses_opaque_tokens_of_oidc_provider() {
    drive_own_client(Kind::OidcOpaque, Registration::Known).await;
}

/// What a client says of its caller that acts for itself, and is known to the authorization server.
async fn whoami_of_machine(provider: &Provider, protected: &Protected) -> String {
    let oauth = OAuth::client_credentials("machine", "machine-secret");
    let oauth = oauth.issuer(provider.url()).scopes(["notes:read"]);
    let client = Client::builder().oauth(oauth).connect(protected.url()).await.expect("a connection");
    client.call("whoami", json!({})).await.expect("a result").ok().expect("a success").text()
}

#[tokio::test]
async fn an_opaque_token_of_a_machine_is_its_client_id_at_oidc_provider() {
    let Some(provider) = Provider::start(Kind::OidcOpaque, 600) else { return };
    let protected = Protected::start(&provider).await;
    assert_eq!(whoami_of_machine(&provider, &protected).await, "machine notes:read");
}

#[tokio::test]
async fn opaque_tokens_of_django_oauth_toolkit_are_those_of_users_and_machines() {
    let Some(provider) = Provider::start(Kind::Django, 600) else { return };
    let by_audience = Protected::start_with(&provider, |oauth| oauth.subject_claim("username")).await;
    let by_endpoint = |oauth: Oauth| oauth.subject_claim("username").audience_by_endpoint();
    let by_endpoint = Protected::start_with(&provider, by_endpoint).await;
    let whoami = async |protected: &Protected, token: &str| -> Result<String, Error> {
        let client = Client::builder().bearer_token(token).connect(protected.url()).await?;
        Ok(client.call("whoami", json!({})).await?.ok()?.text())
    };
    let token = async |form: &str| {
        let request = HttpRequest::post(form.replace(':', "%3A").replace('/', "%2F")).path("/token/");
        let request = request.with("Content-Type", "application/x-www-form-urlencoded");
        let response = request.send(provider.address()).await;
        response.json()["access_token"].as_str().unwrap_or_else(|| panic!("{}", response.text())).to_owned()
    };

    // our client names the resource, so that the answers have an audience
    assert_eq!(whoami_of_machine(&provider, &by_audience).await, "client:machine notes:read");

    let login = "grant_type=password&client_id=site&client_secret=site-secret&scope=notes:read\
                 &username=ada&password=lovelace";
    let of_user = token(login).await;
    let refused = whoami(&by_audience, &of_user).await.expect_err("its answer has no audience");
    assert!(matches!(refused, Error::Unauthorized { .. }), "{refused:?}");
    assert_eq!(whoami(&by_endpoint, &of_user).await.expect("a user"), "ada notes:read");

    let elsewhere = "grant_type=client_credentials&client_id=machine&client_secret=machine-secret\
                     &scope=notes:read&resource=https://other.example.com/mcp";
    let refused = whoami(&by_endpoint, &token(elsewhere).await).await.expect_err("it is for another server");
    assert!(matches!(refused, Error::Unauthorized { .. }), "{refused:?}");
}

#[tokio::test]
async fn the_typescript_client_gets_its_tokens_from_oidc_provider() {
    drive_foreign_client(Kind::OidcJwt, ForeignClient::TypeScript).await;
}

#[tokio::test]
async fn the_python_client_gets_its_tokens_from_authlib() {
    drive_foreign_client(Kind::Authlib, ForeignClient::Python).await;
}

#[tokio::test]
#[ignore = "the whole table, which takes some minutes"]
async fn every_client_gets_its_tokens_from_every_authorization_server() {
    for kind in [Kind::OidcJwt, Kind::OidcOpaque] {
        for registration in [Registration::Dynamic, Registration::Known, Registration::Document] {
            drive_own_client(kind, registration).await;
        }
    }
    for kind in [Kind::OidcJwt, Kind::OidcOpaque, Kind::Authlib] {
        for client in [ForeignClient::TypeScript, ForeignClient::Python, ForeignClient::FastMcp] {
            drive_foreign_client(kind, client).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "installs a client"]
async fn mcp_remote_gets_its_tokens_from_every_authorization_server() {
    for kind in [Kind::OidcJwt, Kind::Authlib] {
        let Some(provider) = Provider::start(kind, 600) else { return };
        let protected = Protected::start(&provider).await;
        let (browser, runtime) = (provider.address(), tokio::runtime::Handle::current());
        let visit = move |url: &str| {
            runtime.block_on(async {
                let page = format!("/browse?url={}", percent_encode(url));
                let sent_to = HttpRequest::new("GET").path(&page).send(browser).await;
                let answer =
                    sent_to.header("location").expect("a redirect").replacen("localhost", "127.0.0.1", 1);
                let (host, path) = answer.trim_start_matches("http://").split_once('/').expect("a path");
                let page = HttpRequest::new("GET").path(&format!("/{path}")).header("Connection", "close");
                assert_eq!(page.send(host.parse().expect("an address")).await.status, 200);
            });
        };
        let list = tokio::task::block_in_place(|| server::list_with_mcp_remote(&protected, &visit));
        let Some(printed) = list else { return };
        assert!(printed.contains("read_notes") && printed.contains("delete_notes"), "{kind:?}: {printed}");
    }
}

#[tokio::test]
#[ignore = "installs a scanner"]
async fn mcp_authlab_finds_nothing_wrong_with_a_protected_server() {
    let Some(provider) = Provider::start(Kind::OidcJwt, 600) else { return };
    let (protected, other) = (Protected::start(&provider).await, Protected::start(&provider).await);
    let Some(report) = server::scan(&protected, &other, &provider).await else { return };
    assert_eq!(report["grade"], "A", "{report:#}");
    assert_eq!(report["counts"]["fail"], 0, "{report:#}");
    // the test's server is on this machine, without TLS
    assert_eq!(report["warnings"], json!(["TLS-01"]), "{report:#}");
}
