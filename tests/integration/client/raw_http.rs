//! A server that writes its replies over HTTP itself: of any bytes, cut off, or without an end.

use std::{io, time::Duration};

use mcp_tests::support::response;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::sleep,
};

/// A reply to one request.
pub(crate) enum Raw {
    /// A body of this type.
    Whole(&'static str, Vec<u8>),
    /// An event stream of these bytes, which stays open until the client closes it.
    Open(Vec<u8>),
    /// The beginning of a reply of this type.
    Cut(&'static str),
    /// An event stream of this text over and over.
    Endless(String, Duration),
}

impl Raw {
    /// The response with this result.
    pub(crate) fn of(message: &Value, result: &Value) -> Self {
        Self::Whole("application/json", response(message, result.clone()).to_string().into_bytes())
    }
}

/// Serves a function of each message; the URL.
pub(crate) async fn raw_http(answer: impl Fn(&Value) -> Raw + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, answer.clone()));
        }
    });
    url
}

async fn serve(mut stream: TcpStream, answer: impl Fn(&Value) -> Raw) -> io::Result<()> {
    let mut request = Vec::new();
    let message: Value = loop {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&request);
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        if let Ok(message) = serde_json::from_str(body) {
            break message;
        }
    };
    let head = |kind: &str, length: Option<usize>| {
        let length = length.map(|length| format!("content-length: {length}\r\n")).unwrap_or_default();
        format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{length}connection: close\r\n\r\n")
    };
    match answer(&message) {
        Raw::Whole(kind, body) => {
            stream.write_all(head(kind, Some(body.len())).as_bytes()).await?;
            stream.write_all(&body).await
        }
        Raw::Cut(kind) => stream.write_all(format!("{}data: {{", head(kind, Some(1000))).as_bytes()).await,
        Raw::Open(body) => {
            stream.write_all(head("text/event-stream", None).as_bytes()).await?;
            stream.write_all(&body).await?;
            while stream.read_buf(&mut request).await? > 0 {}
            Ok(())
        }
        Raw::Endless(chunk, pause) => {
            stream.write_all(head("text/event-stream", None).as_bytes()).await?;
            loop {
                stream.write_all(chunk.as_bytes()).await?;
                sleep(pause).await;
            }
        }
    }
}
