//! A program that starts another one, and how to see that both have ended.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::Command,
};

use crate::support::{TestFolder, within};

/// A FIFO, and a script of `sh` that starts another program. Both hold open the FIFO that is the first argument of the script,
/// to which it has written a line.
///
/// # Panics
///
/// If there can be no FIFO.
#[must_use]
pub fn lingering(folder: &TestFolder) -> (PathBuf, &'static str) {
    let fifo = folder.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("`mkfifo`").success());
    (fifo, r#"exec 3>"$1"; (echo ready >&3; sleep 1000) & wait"#)
}

/// Completes when a line was written to the FIFO; the inner future when every process that had it open has ended.
///
/// # Panics
///
/// If it takes too long.
pub async fn opened(fifo: &Path) -> impl Future<Output = ()> + use<> {
    let fifo = fifo.to_owned();
    let (line, is_there) = tokio::sync::oneshot::channel();
    let ended = tokio::task::spawn_blocking(move || {
        let mut file = BufReader::new(File::open(fifo).expect("the FIFO"));
        let mut text = String::new();
        file.read_line(&mut text).expect("a line");
        line.send(text).expect("the test waits");
        file.read_to_string(&mut String::new()).expect("the end");
    });
    assert_eq!(within(is_there).await.expect("a line"), "ready\n");
    async move { within(ended).await.expect("the end") }
}
