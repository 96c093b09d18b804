//! The program is built with no more features than its own by `cargo test -p mcp-feature-http`.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command},
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::json;

#[cfg(unix)]
#[path = "../linked.rs"]
mod linked;

/// Kills the server also if the test fails.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _already_ended = self.0.kill();
        let _status = self.0.wait();
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let start = Instant::now();
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => return stream,
            Err(error) => assert!(start.elapsed() < Duration::from_secs(20), "{error}"),
        }
        sleep(Duration::from_millis(20));
    }
}

/// What is linked only if a program names something of it, by module.
#[cfg(unix)]
const ON_USE: &[&str] = &["transport::http::server_card"];

#[cfg(unix)]
#[test]
fn a_program_over_http_contains_nothing_that_it_does_not_use() {
    linked::assert_not_linked(env!("CARGO_BIN_EXE_mcp-feature-http"), ON_USE, "transport::http::guard");
}

#[test]
fn a_server_with_http_and_without_axum_replies() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = free.local_addr().expect("its address");
    drop(free);
    let server = Command::new(env!("CARGO_BIN_EXE_mcp-feature-http")).arg(address.to_string()).spawn();
    let _server = Server(server.expect("the server"));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "add", "arguments": { "a": 1, "b": 2 }, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let mut stream = connect(address);
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: tools/call\r\nmcp-name: add\r\ncontent-length: {}\r\n\r\n{body}",
        body.len(),
    )
    .expect("to send the request");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("the response");
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    assert!(response.contains(r#""text":"3""#), "{response}");
}
