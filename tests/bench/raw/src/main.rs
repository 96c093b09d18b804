//! The floor of the benchmarks: `echo` and `add` without a framework, with the checks that a server cannot leave out.
//! `stdio` is a loop that blocks, `http PORT` is axum.

use std::{
    borrow::Cow,
    io::{self, BufRead, Write},
};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
    serve::ListenerExt,
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Params<'a>,
}

#[derive(Deserialize, Default)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    revision: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Echo<'a> {
    #[serde(borrow)]
    message: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

impl Request<'_> {
    fn is_modern(&self) -> bool {
        let revision = self.params.meta.as_ref().and_then(|meta| meta.revision.as_deref());
        revision == Some("2026-07-28")
    }

    /// The reply; `None` for a notification.
    fn reply(&self) -> Option<Vec<u8>> {
        let id = self.id?.get();
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        out.extend_from_slice(id.as_bytes());
        match self.result() {
            Ok(result) => {
                out.extend_from_slice(b",\"result\":");
                out.extend_from_slice(&result);
            }
            Err((code, message)) => {
                out.extend_from_slice(b",\"error\":");
                out.extend_from_slice(json!({ "code": code, "message": message }).to_string().as_bytes());
            }
        }
        out.push(b'}');
        Some(out)
    }

    fn result(&self) -> Result<Vec<u8>, (i32, &'static str)> {
        match &*self.method {
            "initialize" => Ok(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "raw", "version": "1.0.0" },
            })
            .to_string()
            .into_bytes()),
            "tools/call" => self.call(),
            _ => Err((-32601, "method not found")),
        }
    }

    fn call(&self) -> Result<Vec<u8>, (i32, &'static str)> {
        let arguments = self.params.arguments.map_or("{}", RawValue::get);
        let invalid = |_| (-32602, "invalid arguments");
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(b"{\"content\":[{\"type\":\"text\",\"text\":");
        match self.params.name.as_deref() {
            Some("echo") => {
                let Echo { message } = serde_json::from_str(arguments).map_err(invalid)?;
                serde_json::to_writer(&mut out, &*message).map_err(invalid)?;
                out.extend_from_slice(b"}]");
            }
            Some("add") => {
                let Add { a, b } = serde_json::from_str(arguments).map_err(invalid)?;
                let sum = a + b;
                let _ = write!(out, r#""{{\"sum\":{sum}}}"}}],"structuredContent":{{"sum":{sum}}}"#);
            }
            _ => return Err((-32602, "unknown tool")),
        }
        if self.is_modern() {
            out.extend_from_slice(b",\"resultType\":\"complete\"");
        }
        out.push(b'}');
        Ok(out)
    }
}

fn serve_stdio() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let request: Request<'_> = serde_json::from_slice(&line)?;
        if let Some(mut reply) = request.reply() {
            reply.push(b'\n');
            output.write_all(&reply)?;
            output.flush()?;
        }
    }
}

async fn answer(headers: HeaderMap, body: Bytes) -> Response {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = header("host").unwrap_or_default().rsplit_once(':').map_or("", |(host, _)| host);
    if !matches!(host, "localhost" | "127.0.0.1") || headers.contains_key(header::ORIGIN) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let Ok(request) = serde_json::from_slice::<Request<'_>>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let mirrored = header("mcp-method") == Some(&*request.method)
        && header("mcp-name") == request.params.name.as_deref();
    if !request.is_modern() || !mirrored || header("mcp-protocol-version") != Some("2026-07-28") {
        return StatusCode::BAD_REQUEST.into_response();
    }
    match request.reply() {
        Some(reply) => ([(header::CONTENT_TYPE, "application/json")], reply).into_response(),
        None => StatusCode::ACCEPTED.into_response(),
    }
}

fn serve_http(port: u16) -> io::Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
        axum::serve(listener, Router::new().route("/mcp", post(answer))).await
    })
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["stdio"] => serve_stdio(),
        ["http", port] => serve_http(port.parse().map_err(io::Error::other)?),
        _ => Err(io::Error::other("usage: stdio | http PORT")),
    }
}
