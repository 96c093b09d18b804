//! The client with servers, authorization servers and receivers of other people.

mod servers;
mod webhooks;

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use mcp_runtime::client::{Client, FileTokens, OAuth, TokenStore as _};
use mcp_tests::{
    programs::child,
    support::{PATIENCE, TestFolder, within},
};
use serde_json::json;
use tokio::task::spawn_blocking;

use crate::interop::authorization::{
    CALLBACK, Registration, oauth,
    server::{Kind, Protected, Provider},
};

/// This test binary again, as a program whose client uses the tokens of a file that others use.
fn program() -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command
        .args(["--exact", "client::calls_with_the_tokens_of_a_file_succeed", "--ignored", "--nocapture"])
        .stdin(Stdio::null());
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a program that other tests start"]
async fn calls_with_the_tokens_of_a_file_succeed() {
    let Ok(url) = std::env::var("MCP_TESTS_URL") else { return };
    let tokens = FileTokens::new(std::env::var("MCP_TESTS_TOKENS").expect("a file"));
    let oauth = OAuth::headless(CALLBACK).store(tokens);
    let client = Client::builder().oauth(oauth).connect(url).await.unwrap();
    for _ in 0..8 {
        let calls: Vec<_> =
            (0..50).map(|_| tokio::spawn(client.call("whoami", json!({})).into_future())).collect();
        for call in calls {
            call.await.unwrap().unwrap();
        }
        // so that tokens come to their end
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    eprintln!("all calls succeeded.");
}

/// A refresh token that is used twice ends the grant, and nothing that these processes can do begins another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_of_oidc_provider_are_renewed_by_two_processes() {
    let provider = spawn_blocking(|| Provider::start(Kind::OidcJwt, 2)).await.unwrap();
    let Some(provider) = provider else { return };
    let protected = Protected::start(&provider).await;
    let folder = TestFolder::default();
    let file = folder.join("tokens.json");
    let oauth = oauth(&provider, Registration::Dynamic).store(FileTokens::new(&file));
    let client = within(Client::builder().oauth(oauth).connect(protected.url())).await.unwrap();
    assert_eq!(client.call("whoami", json!({})).await.unwrap().text(), "ada notes:read");
    let kept = || FileTokens::new(&file).load(protected.url()).unwrap().unwrap();
    let first = kept();
    assert!(first["refresh_token"].is_string(), "it is to be renewed");
    drop(client);

    let programs: Vec<_> = (0..2)
        .map(|_| {
            let mut command = program();
            command.env("MCP_TESTS_URL", protected.url()).env("MCP_TESTS_TOKENS", &file);
            spawn_blocking(move || child::run(&mut command, "", PATIENCE).unwrap())
        })
        .collect();
    for program in programs {
        let finished = program.await.unwrap();
        assert!(finished.success, "{}\n{}", finished.stdout, finished.stderr);
        assert!(finished.stderr.contains("all calls succeeded."), "{}", finished.stderr);
    }
    assert_ne!(first["refresh_token"], kept()["refresh_token"], "it rotates");
}
