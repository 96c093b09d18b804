//! A request to the server behind this program, on a connection of its own.

use std::{fmt, future::poll_fn, io, pin::Pin, time::Duration};

use hyper::{
    HeaderMap, Request, Response, Uri,
    body::{Body as _, Bytes, Incoming},
    client,
    header::{self, HeaderName, HeaderValue},
    http::request::Parts,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::timeout};
use url::Url;

use super::{super::page::body::Body, SESSION_NAME};

/// How long the server's host may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(30);
/// Headers of a connection, and encodings, which could not be read on the way.
pub(super) const NOT_PASSED: [HeaderName; 9] = [
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// Why a response is missing.
pub(super) enum Failed {
    /// The server has got nothing of the request.
    Unreached(String),
    /// It may have got it.
    Broken(String),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Unreached(text) | Self::Broken(text)) = self;
        f.write_str(text)
    }
}

/// Sends a request to the server.
///
/// # Errors
/// It cannot be reached, or does not answer.
pub(super) async fn send(server: &Url, head: &Parts, bytes: Bytes) -> Result<Response<Incoming>, Failed> {
    let host = server.host_str().unwrap_or_default();
    let port = server.port_or_known_default().unwrap_or(80);
    let address = (host.trim_start_matches('[').trim_end_matches(']'), port);
    let connecting = timeout(CONNECT, TcpStream::connect(address)).await;
    let connection = connecting
        .map_err(|_| Failed::Unreached("it takes too long".to_owned()))?
        .map_err(|error: io::Error| Failed::Unreached(error.to_string()))?;
    let broken = |error: hyper::Error| Failed::Broken(error.to_string());
    let (mut sender, driver) =
        client::conn::http1::handshake(TokioIo::new(connection)).await.map_err(broken)?;
    tokio::spawn(driver);
    let target = match (head.uri.path(), head.uri.query(), server.query()) {
        // what the author has given belongs to it
        (path, None, Some(query)) if path == server.path() => format!("{path}?{query}"),
        _ => head.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned(),
    };
    let unsendable = |text: &str| Failed::Broken(text.to_owned());
    let mut request = Request::new(Body::whole(bytes));
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = Uri::try_from(target.as_str()).map_err(|_| unsendable("its path cannot be sent"))?;
    for (name, value) in &head.headers {
        if !NOT_PASSED.contains(name) && name != SESSION_NAME {
            request.headers_mut().append(name, value.clone());
        }
    }
    let own = match server.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let own = own.parse().map_err(|_| unsendable("its host cannot be sent"))?;
    request.headers_mut().insert(header::HOST, own);
    sender.send_request(request).await.map_err(broken)
}

/// The next bytes of a body; `None` at its end.
pub(super) async fn next_part(incoming: &mut Incoming) -> Result<Option<Bytes>, hyper::Error> {
    while let Some(frame) = poll_fn(|context| Pin::new(&mut *incoming).poll_frame(context)).await {
        if let Ok(part) = frame?.into_data() {
            return Ok(Some(part));
        }
    }
    Ok(None)
}

pub(super) fn is_of_kind(headers: &HeaderMap, kind: &str) -> bool {
    let own = headers.get(header::CONTENT_TYPE).and_then(|own| own.to_str().ok()).unwrap_or_default();
    own.to_ascii_lowercase().starts_with(kind)
}

/// Sets a header, or removes it.
pub(super) fn set(headers: &mut HeaderMap, name: HeaderName, value: Option<HeaderValue>) {
    match value {
        Some(value) => drop(headers.insert(name, value)),
        None => drop(headers.remove(name)),
    }
}
