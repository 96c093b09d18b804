//! Checks what a server with events sends: the shapes of `events/list`, `events/poll`, `events/stream`, and of refusals. It
//! checks the example `events`, or any server over HTTP:
//!
//! ```sh
//! MCP_EVENTS_URL=https://mcp.example.com/mcp cargo test -p mcp-tests --test events
//! ```
//!
//! `MCP_EVENTS_TOKEN` is a bearer token. `MCP_EVENTS_ARGUMENTS` is JSON with the arguments of events that need some, by name.
//! `MCP_EVENTS_CALL` is JSON with the `params` of a `tools/call` after which an event has happened: without it, only what
//! happens by itself is checked.

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../examples/events.rs"]
mod example;

use std::{collections::BTreeSet, env, sync::Arc};

use mcp_runtime_schema::Validator;
use mcp_tests::support::{EventStream, HttpConnection, HttpRequest, HttpServer, SUBSCRIPTION, within};
use rustls_platform_verifier::BuilderVerifierExt as _;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, crypto::ring, pki_types::ServerName},
};
use url::Url;

/// Codes of the proposal, and of texts before it.
const NOT_FOUND: [i64; 2] = [-32023, -32011];

/// The server that is checked.
struct Target {
    url: Url,
    token: Option<String>,
    arguments: Value,
    call: Option<Value>,
    _own: Option<HttpServer>,
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn json_variable(name: &str) -> Option<Value> {
    let text = variable(name)?;
    Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("`{name}` is not JSON: {error}")))
}

impl Target {
    async fn find() -> Self {
        if let Some(url) = variable("MCP_EVENTS_URL") {
            return Self {
                url: url.parse().unwrap_or_else(|error| panic!("`MCP_EVENTS_URL` is not a URL: {error}")),
                token: variable("MCP_EVENTS_TOKEN"),
                arguments: json_variable("MCP_EVENTS_ARGUMENTS").unwrap_or_else(|| json!({})),
                call: json_variable("MCP_EVENTS_CALL"),
                _own: None,
            };
        }
        let key = "a-key-of-this-test";
        let own = HttpServer::start(example::server(Some(key.to_owned()))).await;
        let call = json!({ "name": "open", "arguments": { "title": "the door is open", "severity": 1 } });
        Self {
            url: format!("http://{}/mcp", own.address).parse().expect("a URL"),
            token: Some(key.to_owned()),
            arguments: json!({}),
            call: Some(call),
            _own: Some(own),
        }
    }

    /// Sends a request on a connection of its own.
    async fn send(&self, id: &str, method: &str, params: Value) -> HttpConnection {
        let host = self.url.host_str().expect("a URL with a host");
        let port = self.url.port_or_known_default().expect("a URL with a port");
        let tcp =
            within(TcpStream::connect((host.trim_matches(['[', ']']), port))).await.expect("it listens");
        let mut connection = if self.url.scheme() == "https" {
            let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
            let config = config.with_safe_default_protocol_versions().expect("versions of TLS");
            let config = config.with_platform_verifier().expect("authorities").with_no_client_auth();
            let name = ServerName::try_from(host.to_owned()).expect("a name");
            let tls = TlsConnector::from(Arc::new(config)).connect(name, tcp);
            HttpConnection::over(within(tls).await.expect("TLS"))
        } else {
            HttpConnection::over(tcp)
        };
        let authority = match self.url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let path = self
            .url
            .query()
            .map_or(self.url.path().to_owned(), |query| format!("{}?{query}", self.url.path()));
        let mut request = HttpRequest::modern(id, method, params).path(&path).with("Host", &authority);
        if let Some(token) = &self.token {
            request = request.header("Authorization", &format!("Bearer {token}"));
        }
        connection.send(&request).await;
        connection
    }

    /// The response to a request, its `result` or its `error`.
    async fn request(&self, method: &str, params: Value) -> Result<Value, Value> {
        let mut connection = self.send("1", method, params).await;
        let response = within(connection.response()).await;
        let is_stream =
            response.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let mut message = match is_stream {
            true => response.messages().pop().expect("a response"),
            false => response.json(),
        };
        assert_eq!(
            (&message["jsonrpc"], &message["id"]),
            (&json!("2.0"), &json!("1")),
            "{method}: {message}"
        );
        if message["error"].is_object() { Err(message["error"].take()) } else { Ok(message["result"].take()) }
    }

    async fn result(&self, method: &str, params: Value) -> Value {
        let result = self.request(method, params.clone()).await;
        result.unwrap_or_else(|error| panic!("{method} {params}: {error}"))
    }

    /// All entries of `events/list`.
    async fn events(&self) -> Vec<Value> {
        let (mut events, mut params) = (Vec::new(), json!({}));
        loop {
            let page = self.result("events/list", params).await;
            assert!(page["ttlMs"].is_u64() && page["cacheScope"].is_string(), "{page}");
            events.extend(
                page["events"].as_array().unwrap_or_else(|| panic!("no `events`: {page}")).iter().cloned(),
            );
            match page.get("nextCursor") {
                Some(cursor) => params = json!({ "cursor": cursor.as_str().expect("a text") }),
                None => return events,
            }
        }
    }

    /// The events that are delivered in that way, with the `params` of a subscription to each.
    async fn delivered_by(&self, mode: &str) -> Vec<(Value, Value)> {
        let events = self.events().await.into_iter();
        let events =
            events.filter(|event| event["delivery"].as_array().is_some_and(|all| all.contains(&json!(mode))));
        let with_params = events.map(|event| {
            let name = event["name"].as_str().expect("a name");
            let needed = event["inputSchema"]["required"].as_array().is_some_and(|all| !all.is_empty());
            let given = self.arguments.get(name);
            assert!(
                given.is_some() || !needed,
                "`{name}` needs arguments: give them in `MCP_EVENTS_ARGUMENTS`"
            );
            let params = json!({ "name": name, "arguments": given.cloned().unwrap_or_else(|| json!({})) });
            (event, params)
        });
        with_params.collect()
    }

    /// Makes an event happen, if it is known how.
    async fn make_happen(&self) -> bool {
        let Some(call) = &self.call else { return false };
        let called = self.result("tools/call", call.clone()).await;
        assert_ne!(called["isError"], true, "{called}");
        true
    }
}

#[track_caller]
fn assert_event(event: &Value, listed: &Value) {
    assert!(event["eventId"].as_str().is_some_and(|id| !id.is_empty()), "{event}");
    assert_eq!(event["name"], listed["name"], "{event}");
    let timestamp = event["timestamp"].as_str().unwrap_or_else(|| panic!("no `timestamp`: {event}"));
    assert!(chrono::DateTime::parse_from_rfc3339(timestamp).is_ok(), "{event}");
    if let Some(schema) = listed.get("payloadSchema") {
        let validator = Validator::compile(schema).expect("a schema");
        let problems = validator.validate(&event["data"]);
        assert!(problems.is_empty(), "{problems:?} in {event}");
    }
}

#[track_caller]
fn assert_poll(polled: &Value, listed: &Value) {
    assert!(polled["cursor"].is_string() || polled["cursor"].is_null(), "{polled}");
    assert!(polled["truncated"].is_boolean() && polled["hasMore"].is_boolean(), "{polled}");
    assert!(polled["nextPollMs"].as_u64().is_some_and(|pause| pause > 0), "{polled}");
    for event in polled["events"].as_array().unwrap_or_else(|| panic!("no `events`: {polled}")) {
        assert_event(event, listed);
    }
}

#[tokio::test]
async fn a_server_declares_events_and_lists_them() {
    let target = Target::find().await;
    let declared = target.result("server/discover", json!({})).await;
    assert!(
        declared["capabilities"]["extensions"]["io.modelcontextprotocol/events"].is_object(),
        "{declared}"
    );
    let events = target.events().await;
    assert!(!events.is_empty(), "the server has no events for this caller");
    let mut names = BTreeSet::new();
    for event in &events {
        let name = event["name"].as_str().unwrap_or_else(|| panic!("no name: {event}"));
        assert!(!name.is_empty() && names.insert(name.to_owned()), "`{name}` is there twice");
        let delivery = event["delivery"].as_array().unwrap_or_else(|| panic!("no `delivery`: {event}"));
        assert!(!delivery.is_empty(), "{event}");
        for mode in delivery {
            assert!(["poll", "push", "webhook"].map(|known| json!(known)).contains(mode), "{event}");
        }
        assert!(event.get("description").is_none_or(Value::is_string), "{event}");
        assert_eq!(event["inputSchema"]["type"], "object", "{event}");
        for schema in ["inputSchema", "payloadSchema"].into_iter().filter_map(|key| event.get(key)) {
            assert!(Validator::compile(schema).is_ok(), "{event}");
        }
    }
}

#[tokio::test]
async fn a_poll_begins_without_a_cursor_and_continues_with_it() {
    let target = Target::find().await;
    let mut begun = Vec::new();
    for (event, params) in target.delivered_by("poll").await {
        let polled = target.result("events/poll", params.clone()).await;
        assert_poll(&polled, &event);
        begun.push((event, params, polled));
    }
    let happened = target.make_happen().await;
    let mut events = 0;
    for (event, mut params, polled) in begun {
        let most = 3;
        (params["cursor"], params["maxEvents"]) = (polled["cursor"].clone(), most.into());
        let polled = target.result("events/poll", params.clone()).await;
        assert_poll(&polled, &event);
        let polled = polled["events"].as_array().expect("events").len();
        assert!(polled <= most, "{event}");
        events += polled;
        // a gap, and no error
        params["cursor"] = "not-a-cursor-of-any-server".into();
        let lost = target.result("events/poll", params).await;
        assert_poll(&lost, &event);
        assert_eq!(lost["truncated"], true, "{lost}");
    }
    assert!(!happened || events > 0, "an event has happened, and no poll has it");
}

#[tokio::test]
async fn a_stream_begins_with_active_and_has_the_events_with_cursors() {
    let target = Target::find().await;
    let mut streams = Vec::new();
    for (number, (event, params)) in target.delivered_by("push").await.into_iter().enumerate() {
        let id = format!("stream-{number}");
        let mut connection = target.send(&id, "events/stream", params).await;
        let head = within(connection.head()).await;
        let content_type = head.header("content-type").unwrap_or_default().to_owned();
        assert!(head.status == 200 && content_type.starts_with("text/event-stream"), "{event}: {head:?}");
        let mut stream = EventStream::of(connection);
        let active = stream.message().await;
        assert_eq!(active["method"], "notifications/events/active", "{active}");
        let params = &active["params"];
        assert!(params["cursor"].is_string() || params["cursor"].is_null(), "{active}");
        assert!(params["truncated"].is_boolean(), "{active}");
        assert_eq!(params["_meta"][SUBSCRIPTION], id, "{active}");
        streams.push((id, event, stream));
    }
    if streams.is_empty() || !target.make_happen().await {
        return;
    }
    // at least one of them has it
    let firsts = streams.into_iter().map(|(id, event, mut stream)| {
        Box::pin(async move {
            loop {
                let message = stream.message().await;
                assert_eq!(message["params"]["_meta"][SUBSCRIPTION], id, "{message}");
                if message["method"] == "notifications/events/event" {
                    return (message, event);
                }
                let others =
                    ["heartbeat", "active", "error"].map(|kind| format!("notifications/events/{kind}"));
                assert!(
                    message["method"].as_str().is_some_and(|method| others.iter().any(|o| o == method)),
                    "{message}"
                );
            }
        })
    });
    let ((message, event), ..) = within(futures_util::future::select_all(firsts)).await;
    assert_event(&message["params"], &event);
    assert!(message["params"]["cursor"].is_string() || message["params"]["cursor"].is_null(), "{message}");
}

#[tokio::test]
async fn what_is_refused_has_its_code_and_data() {
    let target = Target::find().await;
    for method in ["events/poll", "events/stream"] {
        let unknown = target.request(method, json!({ "name": "no.such.event", "arguments": {} })).await;
        let error = unknown.expect_err("an unknown event");
        assert!(error["code"].as_i64().is_some_and(|code| NOT_FOUND.contains(&code)), "{method}: {error}");
        assert_eq!(error["data"]["kind"], "event", "{method}: {error}");
        assert!(error["message"].is_string(), "{method}: {error}");
        let nameless = target.request(method, json!({ "arguments": {} })).await;
        assert_eq!(nameless.expect_err("a missing name")["code"], -32602, "{method}");
    }
    for (_, mut params) in target.delivered_by("poll").await {
        params["arguments"] = json!(["not", "an", "object"]);
        let error = target.request("events/poll", params.clone()).await.expect_err("not arguments");
        assert_eq!(error["code"], -32602, "{params}: {error}");
    }
    // nothing is sent to either of them
    let secret = format!("whsec_{}", "A".repeat(43) + "=");
    for (_, mut params) in target.delivered_by("webhook").await {
        for url in ["http://example.com/hook", "https://10.0.0.1/hook", "https://[::1]/hook"] {
            params["delivery"] = json!({ "mode": "webhook", "url": url, "secret": secret });
            let refused = target.request("events/subscribe", params.clone()).await;
            assert!(refused.expect_err("not an endpoint")["code"].is_i64(), "{url}");
        }
    }
}
