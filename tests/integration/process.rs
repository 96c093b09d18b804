//! The fixture server as a child process.

use std::process::Command;

use tokio::time::{Duration, Instant, sleep};

use crate::prelude::*;

/// The command that starts the fixture server.
pub(crate) fn fixture() -> Command {
    Command::new(env!("CARGO_BIN_EXE_fixture"))
}

/// A running fixture server.
pub(crate) fn start() -> LineConnection {
    LineConnection::spawn(&mut fixture())
}

/// A fixture server that has completed the handshake of that revision.
pub(crate) async fn legacy(revision: &str) -> LineConnection {
    let mut server = start();
    server.shake_hands(revision).await;
    server
}

/// A process that writes to a pipe or to a socket, as hosts give it, which the test reads when it wants to.
#[cfg(unix)]
pub(crate) fn unread(mut command: Command, socket: bool) -> LineConnection {
    if socket {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("a socket");
        command.stdout(std::os::fd::OwnedFd::from(theirs));
        LineConnection::spawn_with(&mut command, tokio::net::UnixStream::from_std(ours).expect("a socket"))
    } else {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        command.stdout(std::os::fd::OwnedFd::from(writer));
        let reader = tokio::net::unix::pipe::Receiver::from_owned_fd(reader.into()).expect("a pipe");
        LineConnection::spawn_with(&mut command, reader)
    }
}

/// Calls `count` until its text contains `what`.
pub(crate) async fn until_counted(server: &mut LineConnection, what: &str) {
    let start = Instant::now();
    loop {
        let reply = server.reply_to(&call("counted", "count", &json!({}))).await;
        if text_of(&reply).contains(what) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "expected {what:?}, got {reply}");
        sleep(Duration::from_millis(5)).await;
    }
}
