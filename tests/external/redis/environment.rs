//! The URL in `MCP_SHARED`, which `ServerBuilder::run` reads.

use std::{
    io::ErrorKind,
    net::TcpListener,
    process::{Command, Output, Stdio},
};

/// A program that leaves it to `ServerBuilder::run` what is shared.
fn replica(arguments: &[&str], shared: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_replica"));
    command.args(arguments).env_remove("MCP_SHARED").env_remove("MCP_SERVER_KEYS").stdin(Stdio::null());
    command.envs(shared.map(|url| ("MCP_SHARED", url))).output().unwrap()
}

#[test]
fn commands_that_serve_nothing_do_not_connect_to_the_store_of_the_environment() {
    let redis = TcpListener::bind("127.0.0.1:0").unwrap();
    redis.set_nonblocking(true).unwrap();
    let url = format!("redis://{}", redis.local_addr().unwrap());
    for arguments in [&["--help"][..], &["--version"], &["list"], &["list", "--json"], &["schema"]] {
        let (with, without) = (replica(arguments, Some(&url)), replica(arguments, None));
        assert!(with.status.success() && with.stderr.is_empty(), "{arguments:?}: {with:?}");
        assert_eq!(with.stdout, without.stdout, "{arguments:?}");
        assert_eq!(redis.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "{arguments:?}");
    }
}

#[test]
fn a_url_in_the_environment_that_names_no_store_is_an_error_that_does_not_repeat_it() {
    for (url, part) in [
        ("sesame", "the URL of Redis has no scheme"),
        ("http://:sesame@127.0.0.1", "the URL of Redis is invalid"),
        ("redis+cluster://:sesame@127.0.0.1", "clusters of Redis are not supported"),
        ("", "the URL of Redis has no scheme"),
    ] {
        let output = replica(&["list"], Some(url));
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{url}: {message}");
        assert!(message.contains(part) && !message.contains("sesame"), "{url}: {message}");
    }
}
