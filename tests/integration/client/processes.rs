//! Servers as child processes: nothing of them is left, and what they wrote before they died is in the error.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use mcp_runtime::client::{Client, Error};
#[cfg(unix)]
use mcp_tests::{
    programs::child::send,
    support::{PrintedText, subscribe},
};
use serde_json::json;

use super::{until, within};

fn fixture() -> Command {
    Command::new(env!("CARGO_BIN_EXE_fixture"))
}

/// Whether a process exists, and is not a zombie.
#[cfg(target_os = "linux")]
fn is_alive(id: u32) -> bool {
    let status = std::fs::read_to_string(Path::new("/proc").join(id.to_string()).join("stat"));
    status.is_ok_and(|status| status.rsplit(") ").next().is_some_and(|rest| !rest.starts_with('Z')))
}

#[tokio::test]
async fn a_command_line_is_split_by_the_rules_of_shells() {
    let line = format!("env GREETING='a b' \"{}\"", env!("CARGO_BIN_EXE_fixture"));
    let client = within(Client::connect(line)).await.unwrap();
    assert_eq!(client.call("echo", json!({ "message": "m" })).await.unwrap().text(), "m");
    within(client.close()).await;
    for bad in ["", "  ", "server 'unclosed"] {
        assert!(matches!(Client::connect(bad).await, Err(Error::Invalid { .. })), "{bad:?}");
    }
    let missing = Client::connect("no-such-program-anywhere --flag").await.unwrap_err();
    assert!(missing.to_string().contains("`no-such-program-anywhere`"), "{missing}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn closing_and_dropping_end_the_process() {
    let client = within(Client::connect(fixture())).await.unwrap();
    let id = client.process_id().unwrap();
    assert!(is_alive(id));
    within(client.close()).await;
    assert!(!is_alive(id), "`close` waits for its end");
    assert!(matches!(client.tools().await, Err(Error::NotConnected { .. })));

    let client = within(Client::connect(fixture())).await.unwrap();
    let id = client.process_id().unwrap();
    let (clone, call) = (client.clone(), client.call("hang", json!({})).into_future());
    drop(client);
    assert!(clone.ping().await.is_ok(), "a clone keeps it");
    let call = tokio::spawn(call);
    drop(clone);
    until(|| !is_alive(id)).await;
    assert!(within(call).await.unwrap().is_err());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_a_server_started_ends_with_it() {
    let line = format!("/bin/sh -c 'sleep 1000 & echo $! >&2; exec \"{}\"'", env!("CARGO_BIN_EXE_fixture"));
    for closes in [true, false] {
        let client = within(Client::connect(line.clone())).await.unwrap();
        until(|| client.stderr().contains('\n')).await;
        let sleeper: u32 = client.stderr().lines().next().unwrap().parse().unwrap();
        assert!(is_alive(sleeper));
        if closes {
            within(client.close()).await;
        }
        drop(client);
        until(|| !is_alive(sleeper)).await;
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_runtime_that_ends_kills_what_it_runs_also_by_a_panic() {
    let line =
        format!("/bin/sh -c 'trap \"\" TERM; sleep 1000 & exec \"{}\"'", env!("CARGO_BIN_EXE_fixture"));
    let (sender, ids) = std::sync::mpsc::channel();
    let panicked = std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let client = within(Client::connect(line)).await.unwrap();
            sender.send(client.process_id().unwrap()).unwrap();
            panic!("as programs do");
        });
    });
    assert!(panicked.join().is_err());
    let id = ids.recv().unwrap();
    let start = Instant::now();
    while is_alive(id) {
        assert!(start.elapsed() < super::PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_that_ignores_the_end_of_its_input_gets_a_signal() {
    for (name, ignores) in [("TERM", ""), ("KILL", "trap '' TERM; ")] {
        // the loop goes on when its input has ended, and the server inside of it is long gone
        let script =
            format!("{ignores}\"{}\"; while true; do sleep 0.05; done", env!("CARGO_BIN_EXE_fixture"));
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &script]);
        let client = within(Client::connect(command)).await.unwrap();
        let id = client.process_id().unwrap();
        within(client.close()).await;
        assert!(!is_alive(id), "after SIG{name}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_that_is_killed_fails_its_calls_with_status_and_stderr() {
    let line = format!("/bin/sh -c 'echo about to start >&2; exec \"{}\"'", env!("CARGO_BIN_EXE_fixture"));
    let client = within(Client::connect(line)).await.unwrap();
    let id = client.process_id().unwrap();
    let call = tokio::spawn(client.call("hang", json!({})).into_future());
    client.ping().await.unwrap();
    send(id, "KILL");
    let error = within(call).await.unwrap().unwrap_err();
    let Error::Closed { status, stderr } = &error else { panic!("{error:?}") };
    assert!(status.is_some_and(|status| !status.success()) && stderr.contains("about to start"), "{error:?}");
    assert!(error.to_string().contains("about to start"), "{error}");
    let later = client.ping().await.unwrap_err();
    assert!(matches!(later, Error::Closed { .. }), "{later:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_dead_server_is_started_again_if_that_is_wanted() {
    let client = within(Client::builder().respawn().connect(fixture())).await.unwrap();
    let id = client.process_id().unwrap();
    send(id, "KILL");
    until(|| !is_alive(id)).await;
    within(async {
        // the first attempts may still find the connection that is about to close
        while client.ping().await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_ne!(client.process_id(), Some(id));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_that_ends_at_a_request_it_does_not_know_is_started_again_for_a_handshake() {
    let script = r#"read -r line; case "$line" in *server/discover*) exit 3;; esac
        echo '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"strict","version":"1"}}}'
        cat >/dev/null"#;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    let client = within(Client::connect(command)).await.unwrap();
    assert_eq!(client.server_info().0, "strict");
    within(client.close()).await;
}

#[cfg(unix)]
#[tokio::test]
async fn what_a_program_writes_to_stdout_before_it_ends_is_in_the_error() {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "echo 'npx: server not found'; echo 'see the log' >&2; exit 3"]);
    let error = within(Client::connect(command)).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Closed { .. }), "{error:?}");
    for part in ["exit status: 3", "stdout: npx: server not found", "see the log"] {
        assert!(text.contains(part), "{text}");
    }
}

/// A process that hangs because it lacks variables, such as those of a proxy: its clock is the test's.
#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn the_log_says_why_a_process_may_be_silent() {
    for (builder, is_told) in [(Client::builder(), true), (Client::builder().inherit_environment(), false)] {
        let lines = PrintedText::default();
        let written = lines.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || written.clone()).finish();
        let subscribed = subscribe(subscriber);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "cat > /dev/null"]);
        let connected = builder.connect(command).await;
        drop(subscribed);
        assert!(matches!(connected, Err(Error::Timeout { .. })), "{connected:?}");
        let log = lines.text();
        assert_eq!(log.contains("inherit_environment"), is_told, "{log}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_servers_environment_is_an_allow_list() {
    let environment = |client: Client| async move {
        let id = client.process_id().unwrap();
        let text = std::fs::read(Path::new("/proc").join(id.to_string()).join("environ")).unwrap();
        within(client.close()).await;
        String::from_utf8_lossy(&text).split('\0').map(str::to_owned).collect::<Vec<_>>()
    };
    // cargo sets this for tests
    let ours = "CARGO_MANIFEST_DIR=";
    let mut command = fixture();
    command.env("MINE", "1");
    let given = environment(within(Client::builder().env("ALSO", "2").connect(command)).await.unwrap()).await;
    assert!(
        given.iter().any(|v| v.starts_with("PATH=")) && !given.iter().any(|v| v.starts_with(ours)),
        "{given:?}"
    );
    assert!(given.contains(&"MINE=1".to_owned()) && given.contains(&"ALSO=2".to_owned()), "{given:?}");
    let all =
        environment(within(Client::builder().inherit_environment().connect(fixture())).await.unwrap()).await;
    assert!(all.iter().any(|v| v.starts_with(ours)), "{all:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_message_above_the_limit_fails_the_call_and_not_the_connection() {
    let client = within(Client::builder().max_message(20_000).connect(fixture())).await.unwrap();
    let error = within(client.call("large", json!({ "n": 1_000_000 })).into_future()).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 20_000, .. }), "{error:?}");
    assert_eq!(client.call("large", json!({ "n": 3 })).await.unwrap().text(), "xxx");
}

#[tokio::test]
async fn dropped_calls_are_cancelled_there_and_leave_no_task_here() {
    const BATCHES: usize = 4;
    const AT_ONCE: usize = 50;
    let mut command = fixture();
    // the calls of a batch begin while those of the one before are still ending
    command.env("FIXTURE_IN_FLIGHT", "500");
    let client = within(Client::connect(command)).await.unwrap();
    client.ping().await.unwrap();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for _ in 0..BATCHES {
        let calls: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                tokio::spawn(client.call("hang", json!({})).timeout(Duration::from_secs(600)).into_future())
            })
            .collect();
        // the server has begun all of them: it answers in the order of the requests
        client.ping().await.unwrap();
        for call in calls {
            call.abort();
            assert!(call.await.unwrap_err().is_cancelled());
        }
    }
    let expected = format!("dropped {}", BATCHES * AT_ONCE);
    within(async {
        while !client.call("count", json!({})).await.unwrap().text().contains(&expected) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    until(|| tasks() <= before).await;
    assert_eq!(client.call("echo", json!({ "message": "on" })).await.unwrap().text(), "on");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_signal_ends_a_program_after_what_it_has_started() {
    use tokio::io::AsyncBufReadExt as _;
    let mut command = tokio::process::Command::from(super::programs::program("signal"));
    command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = tokio::io::BufReader::new(child.stderr.take().unwrap()).lines();
    let children: Vec<u32> = within(async {
        loop {
            let line = lines.next_line().await.unwrap().expect("the program says what it has started");
            if let Some(ids) = line.strip_prefix("children ") {
                return ids.trim_end_matches('.').split(' ').map(|id| id.parse().unwrap()).collect();
            }
        }
    })
    .await;
    assert!(children.len() == 2 && children.iter().all(|id| is_alive(*id)), "{children:?}");
    send(child.id().unwrap(), "TERM");
    let status = within(child.wait()).await.unwrap();
    assert_eq!(status.code(), Some(128 + 15));
    assert!(!is_alive(children[0]), "the program waits for the end of its child");
    // killed with its group, but the child of another process
    until(|| !is_alive(children[1])).await;
}
