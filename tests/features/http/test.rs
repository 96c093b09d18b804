//! The program is built with no more features than its own by `cargo test -p mcp-feature-http`.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::json;

/// Kills the server also if the test fails.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _already_ended = self.0.kill();
        let _status = self.0.wait();
    }
}

#[test]
fn a_server_with_http_and_without_axum_replies() {
    let server = Command::new(env!("CARGO_BIN_EXE_mcp-feature-http")).stdout(Stdio::piped()).spawn();
    let mut server = Server(server.expect("the server"));
    let mut address = String::new();
    let printed = server.0.stdout.take().expect("its output");
    BufReader::new(printed).read_line(&mut address).expect("its address");
    let address = address.trim_end();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "add", "arguments": { "a": 1, "b": 2 }, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time limit");
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
