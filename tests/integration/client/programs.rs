//! Programs of their own, which tests run as processes: this test binary again, with one test that does what the
//! environment says.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use mcp_runtime::client::{Client, OAuth, end_children_on_signal};
use serde_json::json;

use super::until;

const ROLE: &str = "MCP_TESTS_PROGRAM";

/// This program in that role.
pub(crate) fn program(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command
        .args([
            "--exact",
            "client::programs::what_the_environment_asks_for_is_done",
            "--ignored",
            "--nocapture",
        ])
        .env(ROLE, role)
        .stdin(Stdio::null());
    command
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("`{name}` is not set"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a program that other tests start"]
async fn what_the_environment_asks_for_is_done() {
    match std::env::var(ROLE).as_deref() {
        // lives until a signal ends it
        Ok("signal") => {
            end_children_on_signal();
            let line =
                format!("/bin/sh -c 'sleep 1000 & echo $! >&2; exec \"{}\"'", env!("CARGO_BIN_EXE_fixture"));
            let client = Client::connect(line).await.unwrap();
            until(|| client.stderr().contains('\n')).await;
            let sleeper = client.stderr();
            eprintln!("children {} {}.", client.process_id().unwrap(), sleeper.lines().next().unwrap());
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        // with the proxy of its environment
        Ok("proxy") => {
            let client = Client::connect(variable("MCP_TESTS_URL")).await.unwrap();
            let result = client.call("echo", json!({})).await.unwrap();
            eprintln!("called {}.", result.text());
        }
        // with a user who would log in
        Ok("login") => {
            let oauth = OAuth::authorization_code("http://localhost:1/callback", |_| async {
                panic!("the user is asked")
            });
            let refused = Client::builder().oauth(oauth).connect(variable("MCP_TESTS_URL")).await;
            eprintln!("refused: {}", refused.unwrap_err());
        }
        // with a user whose browser is opened
        Ok("browser") => {
            let oauth = OAuth::loopback(0, |url| eprintln!("visit {url}")).unwrap().open_browser();
            let client = Client::builder().oauth(oauth).connect(variable("MCP_TESTS_URL")).await.unwrap();
            client.call("t", json!({})).await.unwrap();
            eprintln!("called.");
        }
        _ => {}
    }
}
