//! The `axum` example, over HTTP.

use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::program;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/axum.rs"]
mod example;

/// Sends one request and gives the status and the body.
async fn request(address: SocketAddr, head: &str, body: &str) -> (u16, String) {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let length = body.len();
        let request = format!(
            "{head}\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    };
    timeout(Duration::from_secs(30), exchange).await.expect("an answer in time")
}

/// Calls a tool with a token.
async fn call(address: SocketAddr, token: &str, tool: &str) -> (u16, String) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": tool, "arguments": {}, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nAuthorization: Bearer {token}\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: {tool}"
    );
    request(address, &head, &body).await
}

fn text((status, body): &(u16, String)) -> String {
    assert_eq!(*status, 200, "{body}");
    let reply: Value = serde_json::from_str(body).unwrap();
    reply["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // ends with the test's runtime
    tokio::spawn(::axum::serve(listener, example::app().unwrap()).into_future());
    address
}

#[tokio::test]
async fn the_principal_is_who_the_middleware_found() {
    let address = start().await;
    assert_eq!(text(&call(address, "ada-secret", "whoami").await), "ada");
    assert_eq!(text(&call(address, "bob-secret", "whoami").await), "bob");
    assert_eq!(text(&call(address, "ada-secret", "clear_cache").await), "done");
    assert_eq!(text(&call(address, "bob-secret", "clear_cache").await), "only administrators may do this");
}

#[tokio::test]
async fn the_middleware_guards_the_endpoint_only() {
    let address = start().await;
    assert_eq!(call(address, "wrong", "whoami").await.0, 401);
    assert_eq!(request(address, "GET /health HTTP/1.1", "").await, (200, "ok".to_owned()));
}

/// The example's program, ended when dropped.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // it may have ended already
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[tokio::test]
async fn its_program_answers() {
    let mut command = Command::new(program::path("axum"));
    let mut program = Program(command.arg("127.0.0.1:0").stderr(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(program.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit_once("http://").unwrap().1.parse().unwrap();
    assert_eq!(text(&call(address, "ada-secret", "whoami").await), "ada");
}
