//! One connection of a client in the server's process. Its messages are encoded as JSON and take the same path as those of
//! every other transport.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde_json::{Value, json};

use crate::core::sync::Mutex;
use crate::core::{
    changes::ListChanges,
    connection::{ClientConnection, ClientData, PendingResponse, Principal, RequestContext, SessionState},
    dispatch::{
        ConnectionState, OpenRequests, Reply, Request, RequestRevision, RunningRequest, StartedRequest,
        THE_CLIENT, encode, resolve_revision,
    },
    jsonrpc::{ProtocolError, parse, write_error_response},
    maybe_ready::MaybeReady,
    protocol::Revision,
    server::Server,
};

/// Answers a request of the server, given its `method` and `params`, with a result or an error message.
pub(crate) type AnswerClientRequest = Arc<dyn Fn(&str, &Value) -> Result<Value, String> + Send + Sync>;

/// Names and values.
pub(crate) type Headers = Arc<Vec<(String, String)>>;

/// The placeholder reply to a message that gets no reply.
const NO_REPLY: &[u8] = b"null";

/// A connection in memory.
pub(crate) struct MemoryConnection {
    pub(crate) server: Server,
    state: Arc<ConnectionState>,
    handshake: Option<Revision>,
    /// The context of every request of this client, except for its connection.
    pub(crate) context: RequestContext,
    /// HTTP headers that every request of this client has.
    pub(crate) headers: Headers,
    answers: Option<AnswerClientRequest>,
    next_id: AtomicU64,
}

/// The client of one request: collects the messages that are sent to it, and answers those that are requests.
struct MemoryRequestClient {
    messages: Mutex<Vec<Value>>,
    answers: Option<AnswerClientRequest>,
    headers: Headers,
    state: Arc<ConnectionState>,
}

impl ClientConnection for MemoryRequestClient {
    fn notify(&self, message: Vec<u8>) {
        let message = parse_message(&message);
        if let (Some(id), Some(answers)) = (message.get("id").map(Value::to_string), &self.answers) {
            let answer = answers(message["method"].as_str().unwrap_or_default(), &message["params"]);
            let response = match answer {
                Ok(result) => Ok(result.to_string().into()),
                Err(text) => Err(json!({ "code": -1, "message": text }).to_string().into()),
            };
            self.state.pending.deliver(&THE_CLIENT, &id, response);
        }
        self.messages.lock().push(message);
    }

    fn deliver(&self, message: Vec<u8>) -> Result<(), &'static str> {
        self.notify(message);
        Ok(())
    }

    fn expect_response(&self) -> Result<PendingResponse, &'static str> {
        self.state.pending.expect_response(THE_CLIENT)
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(header, _)| header.eq_ignore_ascii_case(name));
        let (_, value) = values.next()?;
        values.next().is_none().then_some(value)
    }

    fn session(&self) -> Option<&dyn SessionState> {
        Some(&*self.state)
    }
}

/// A message as a value; invalid JSON becomes a string that says so.
pub(crate) fn parse_message(text: &[u8]) -> Value {
    let parsed = std::str::from_utf8(text).map_err(|error| error.to_string());
    let parsed = parsed.and_then(|text| serde_json::from_str(text).map_err(|error| error.to_string()));
    parsed.unwrap_or_else(|error| {
        Value::String(format!("not JSON ({error}): {}", String::from_utf8_lossy(text)))
    })
}

impl MemoryConnection {
    pub(crate) fn new(server: Server, answers: Option<AnswerClientRequest>) -> Self {
        Self {
            context: server.host_context(),
            server,
            state: Arc::default(),
            handshake: None,
            headers: Headers::default(),
            answers,
            next_id: AtomicU64::new(1),
        }
    }

    /// Makes the requests from now on those of a caller, or of an anonymous one.
    pub(crate) fn set_caller(&mut self, caller: Option<Arc<Principal>>) {
        self.context.caller = caller;
        self.context.access_rules = Some(self.server.access_rules().clone());
    }

    /// Whose requests these are.
    #[cfg(feature = "cli")]
    pub(crate) fn caller(&self) -> Option<&Principal> {
        self.context.caller.as_deref()
    }

    /// Leaves the instances of templates out of the lists from now on: they are data, and may need a database.
    #[cfg(feature = "cli")]
    pub(crate) fn leave_out_instances(&mut self) {
        Arc::make_mut(&mut self.context.extensions).insert(crate::core::connection::WithoutInstances);
    }

    /// A new connection of the same caller, with the same headers.
    pub(crate) fn reconnect(self, answers: Option<AnswerClientRequest>) -> Self {
        let context = RequestContext { client: ClientData::default(), ..self.context };
        Self { context, headers: self.headers, ..Self::new(self.server, answers) }
    }

    fn open_requests(&self) -> OpenRequests<'_> {
        OpenRequests { client: THE_CLIENT, in_flight: &self.state.in_flight, pending: &self.state.pending }
    }

    fn encode_request(&self, method: &str, params: &str) -> String {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let method = Value::from(method);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#)
    }

    fn encode_reply(&self, reply: &Reply, id: &str, revision: Revision) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&mut out, reply, id, revision, self.server.identity());
        out
    }

    /// Sends `initialize`; the reply, and the negotiated revision.
    pub(crate) fn initialize(&mut self, params: &Value) -> (Vec<u8>, Option<Revision>) {
        let text = self.encode_request("initialize", &params.to_string());
        let message = match parse(text.as_bytes()) {
            Ok(message) => message,
            Err(malformed) => return (error_reply(&malformed.error), None),
        };
        let (reply, handshake) = self.server.initialize(message.params(), true, None, None);
        if let Some(handshake) = handshake {
            self.handshake = Some(handshake.revision);
            self.context.client = handshake.client;
            // stores resource subscriptions; notifications go to `listen` and to the hub's subscribers
            self.state.set_filter(self.server.hub().filter(ListChanges::default(), &self.context.owner()));
        }
        let id = message.id().unwrap_or_default();
        (self.encode_reply(&reply, id, Revision::LATEST_LEGACY), self.handshake)
    }

    /// Sends one request, whose params are raw JSON; its reply, and the messages that the client was sent before. Dropping
    /// the future cancels the request.
    pub(crate) async fn request(&self, method: &str, params: &str) -> (Vec<u8>, Vec<Value>) {
        let client = Arc::new(MemoryRequestClient {
            messages: Mutex::default(),
            answers: self.answers.clone(),
            headers: self.headers.clone(),
            state: self.state.clone(),
        });
        let context = RequestContext { connection: Some(client.clone()), ..self.context.clone() };
        let text = self.encode_request(method, params);
        let (running, revision) = match self.start(&text, &context) {
            MaybeReady::Ready(reply) => return (reply, client.take_messages()),
            MaybeReady::Pending(running) => running,
        };
        let id = running.id.clone();
        let reply = match running.await {
            Some(reply) => self.encode_reply(&reply, &id, revision),
            None => NO_REPLY.to_vec(),
        };
        (reply, client.take_messages())
    }

    /// Starts a request: its reply, or the call that is running.
    fn start(&self, text: &str, context: &RequestContext) -> MaybeReady<Vec<u8>, (RunningRequest, Revision)> {
        let message = match parse(text.as_bytes()) {
            Ok(message) => message,
            Err(malformed) => return error_reply(&malformed.error).into(),
        };
        let revision = match resolve_revision(&message, self.handshake) {
            RequestRevision::Known(revision) => revision,
            RequestRevision::Unsupported(error) => return error_reply(&error).into(),
            RequestRevision::Initialize => {
                let (reply, _) = self.server.initialize(message.params(), true, None, None);
                let id = message.id().unwrap_or_default();
                return self.encode_reply(&reply, id, Revision::LATEST_LEGACY).into();
            }
        };
        let Some(request) = Request::from_message(&message, revision, context) else {
            return NO_REPLY.to_vec().into();
        };
        if request.opens_stream() {
            // only `listen` returns a subscription
            return match self.server.start_stream(request, Some(self.open_requests())) {
                Ok((subscription, _)) => subscription.result().into(),
                Err(reply) => self.encode_reply(&reply, request.id, revision).into(),
            };
        }
        match self.server.start_request(request, Some(self.open_requests()), &mut Vec::new()) {
            StartedRequest::Ready(reply) => self.encode_reply(&reply, request.id, revision).into(),
            StartedRequest::Pending(running) => MaybeReady::Pending((running, revision)),
        }
    }

    /// Opens a stream, with `subscriptions/listen` or another method.
    ///
    /// # Errors
    /// The error reply.
    #[cfg(any(feature = "cli", feature = "testing", test))]
    pub(crate) fn listen(
        &self,
        method: &str,
        params: &str,
    ) -> Result<crate::core::dispatch::NotificationStream, Vec<u8>> {
        let text = self.encode_request(method, params);
        let message = parse(text.as_bytes()).map_err(|malformed| error_reply(&malformed.error))?;
        let Some(request) = Request::from_message(&message, Revision::LATEST, &self.context) else {
            return Err(NO_REPLY.to_vec());
        };
        match self.server.start_stream(request, Some(self.open_requests())) {
            Ok((subscription, _)) => Ok(subscription),
            Err(reply) => Err(self.encode_reply(&reply, request.id, Revision::LATEST)),
        }
    }
}

impl MemoryRequestClient {
    fn take_messages(&self) -> Vec<Value> {
        std::mem::take(&mut *self.messages.lock())
    }
}

/// The error reply to a message that cannot be read.
fn error_reply(error: &ProtocolError) -> Vec<u8> {
    let mut out = Vec::new();
    write_error_response(&mut out, None, error);
    out
}
