//! The client, a server of this crate and an authorization server of other people (`oidc-provider`): discovery,
//! registration, the user's consent, tokens for the resource, and their renewal by two processes at once.

use std::{collections::BTreeMap, process::Stdio};

use mcp_external_tests::{package, skip};
use mcp_runtime::{
    Principal,
    auth::Oauth,
    client::{Client, FileTokens, OAuth, TokenStore},
    prelude::*,
};
use mcp_tests::{
    programs::{cache_dir, child},
    support::{HttpRequest, PATIENCE, within},
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpListener,
};

use super::program;

const NPM: &str = r#"{ "private": true, "type": "module", "dependencies": { "oidc-provider": "9.13.3" } }"#;
const SCOPE: &str = "notes:read";
/// Of access tokens, in seconds; a client renews them after half of it.
const LIFETIME: &str = "2";

/// Reads notes
#[mcp_tool(scopes("notes:read"))]
fn t(caller: &Principal) -> String {
    caller.subject().to_owned()
}

/// What a browser does: it follows redirects, with cookies, up to the one to the client.
async fn browse(mut url: String) -> Result<String, String> {
    let mut cookies = BTreeMap::new();
    for _ in 0..10 {
        let rest = url.strip_prefix("http://").ok_or("another scheme")?;
        let (host, path) = rest.split_at(rest.find('/').ok_or("no path")?);
        let cookie: Vec<_> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request =
            HttpRequest::new("GET").path(path).with("Host", host).header("Cookie", &cookie.join("; "));
        let response = request.send(host.parse().map_err(|_| "another host")?).await;
        for (_, cookie) in response.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"))
        {
            let pair = cookie.split(';').next().and_then(|pair| pair.split_once('='));
            let (name, value) = pair.ok_or("a cookie without a value")?;
            cookies.insert(name.to_owned(), value.to_owned());
        }
        let location =
            response.header("location").ok_or_else(|| format!("{} {}", response.status, response.text()))?;
        if location.starts_with("http://localhost:1/") {
            return Ok(location.to_owned());
        }
        url =
            if location.starts_with('/') { format!("http://{host}{location}") } else { location.to_owned() };
    }
    Err("too many redirects".to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_of_oidc_provider_are_renewed_by_two_processes() {
    let installed = tokio::task::spawn_blocking(|| Ok((package::npm(NPM)?, package::node(20)?)));
    let (packages, node) = match installed.await.unwrap() {
        Ok(installed) => installed,
        Err(missing) => return skip("the client with `oidc-provider`", &missing),
    };
    let script = packages.join("provider.mjs");
    package::write(&script, include_str!("scripts/oidc_provider.mjs"));
    let mut provider = tokio::process::Command::new(node);
    provider.arg(script).args([SCOPE, LIFETIME]).stdin(Stdio::null()).stderr(Stdio::null());
    let mut provider = provider.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut said = BufReader::new(provider.stdout.take().unwrap()).lines();
    let issuer = within(said.next_line()).await.unwrap().expect("its issuer");

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let auth = Oauth::issuer(&issuer).resource(&url).scopes([SCOPE]).required_scopes([SCOPE]);
    let server = mcp_runtime::server!().tool::<t>().auth(auth).build().unwrap();
    tokio::spawn(server.serve_http_until(listener, std::future::pending()));

    let folder = cache_dir("client").join(format!("oidc-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("tokens.json");
    let oauth =
        OAuth::authorization_code("http://localhost:1/callback", browse).store(FileTokens::new(&file));
    let client = within(Client::builder().oauth(oauth).connect(&url)).await.unwrap();
    assert_eq!(client.call("t", json!({})).await.unwrap().text(), "ada");
    let first = FileTokens::new(&file).load(&url).unwrap().unwrap();
    assert!(
        first["refresh_token"].is_string() && first["scopes"].as_array().unwrap().contains(&SCOPE.into())
    );
    drop(client);

    let programs: Vec<_> = (0..2)
        .map(|_| {
            let mut command = program();
            command.env("MCP_TESTS_URL", &url).env("MCP_TESTS_TOKENS", &file);
            tokio::task::spawn_blocking(move || child::run(&mut command, "", PATIENCE).unwrap())
        })
        .collect();
    for program in programs {
        let finished = program.await.unwrap();
        assert!(finished.success, "{}\n{}", finished.stdout, finished.stderr);
        assert!(finished.stderr.contains("all calls succeeded."), "{}", finished.stderr);
    }
    provider.kill().await.unwrap();
    let mut refreshed = 0;
    while let Some(line) = within(said.next_line()).await.unwrap() {
        // its advice for production
        if line.starts_with("oidc-provider ") {
            continue;
        }
        assert_eq!(line, "refreshed", "the authorization server complains");
        refreshed += 1;
    }
    eprintln!("{refreshed} renewals for 800 calls");
    assert!(refreshed >= 2, "{refreshed}");
    let last = FileTokens::new(&file).load(&url).unwrap().unwrap();
    assert_ne!(first["refresh_token"], last["refresh_token"], "it rotates");
    std::fs::remove_dir_all(&folder).unwrap();
}
