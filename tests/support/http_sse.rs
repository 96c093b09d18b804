//! HTTP+SSE, the transport of 2024-11-05: one event stream for the server's messages, a POST for each of the client's.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{EventStream, HttpConnection, HttpRequest, initialize, notification};

/// A connection of an HTTP+SSE client.
pub struct HttpSse {
    address: SocketAddr,
    headers: Vec<(String, String)>,
    events: EventStream,
    /// Where the client's messages are posted.
    pub endpoint: String,
}

impl HttpSse {
    /// Opens the stream at `path`, with these headers on it and on every POST.
    pub async fn open(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Self {
        let headers: Vec<_> = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let get = HttpRequest::new("GET").path(path).header("Accept", "text/event-stream");
        let get = headers.iter().fold(get, |get, (name, value)| get.header(name, value));
        let mut connection = HttpConnection::open(address).await;
        connection.send(&get).await;
        let head = connection.head().await;
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        let mut events = EventStream::of(connection);
        let first = events.next_event().await.expect("an endpoint");
        assert_eq!(first.event.as_deref(), Some("endpoint"));
        let endpoint = first.data.expect("a path");
        assert!(endpoint.starts_with(&format!("{path}?")), "`{endpoint}` is not below `{path}`");
        Self { address, headers, events, endpoint }
    }

    /// The next message; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Value> {
        let event = self.events.next_event().await?;
        Some(event.message().expect("a message"))
    }

    /// The next message.
    pub async fn message(&mut self) -> Value {
        self.next().await.expect("the stream has ended")
    }

    /// Posts a body to the endpoint, and returns the status.
    pub async fn post(&self, text: String) -> u16 {
        let post = HttpRequest::post(text).path(&self.endpoint);
        let post = self.headers.iter().fold(post, |post, (name, value)| post.header(name, value));
        post.send(self.address).await.status
    }

    /// Posts a message that must be accepted.
    pub async fn send(&self, message: &Value) {
        // over several lines, as some clients write it
        assert_eq!(self.post(format!("{message:#}")).await, 202);
    }

    /// Performs the handshake, and returns the response.
    pub async fn initialize(&mut self, capabilities: &Value) -> Value {
        self.initialize_as("2024-11-05", capabilities).await
    }

    /// The same with another revision, which some clients of this transport have.
    pub async fn initialize_as(&mut self, revision: &str, capabilities: &Value) -> Value {
        self.send(&initialize(0, revision, capabilities)).await;
        self.send(&notification("notifications/initialized", json!({}))).await;
        self.message().await
    }
}
