//! A client of a server in the same process, over the same edge as every other client: each message is real JSON. The
//! test kit and the command line use it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde_json::{Value, json};

use crate::{
    connection::{ClientConnection, PendingResponse, RequestContext, SessionState},
    dispatch::{
        ConnectionState, ListenStream, MethodReply, OpenRequests, Request, RequestRevision, StartedRequest,
        THE_CLIENT, encode, resolve_revision,
    },
    events::ListChanges,
    jsonrpc::{ProtocolError, parse, write_error_response},
    protocol::Revision,
    server::Server,
    sync::Mutex,
};

/// What the client answers to a request of the server: the wire's `method` and `params` in, the result out, or an
/// error's message.
pub(crate) type Answers = Arc<dyn Fn(&str, &Value) -> Result<Value, String> + Send + Sync>;

/// A connection in memory.
pub(crate) struct MemoryConnection {
    pub(crate) server: Server,
    state: Arc<ConnectionState>,
    handshake: Option<Revision>,
    context: RequestContext,
    answers: Option<Answers>,
    next_id: AtomicU64,
}

/// The client of one request: it keeps what is sent to it, and answers the requests in that.
struct RequestClient {
    messages: Mutex<Vec<Value>>,
    answers: Option<Answers>,
    state: Arc<ConnectionState>,
}

impl ClientConnection for RequestClient {
    fn notify(&self, message: Vec<u8>) {
        let message = read(&message);
        if let (Some(id), Some(answers)) = (message.get("id").map(Value::to_string), &self.answers) {
            let answer = answers(message["method"].as_str().unwrap_or_default(), &message["params"]);
            let response = match answer {
                Ok(result) => Ok(result.to_string().into()),
                Err(text) => Err(json!({ "code": -1, "message": text }).to_string().into()),
            };
            self.state.deliver(&id, response);
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

    fn session(&self) -> Option<&dyn SessionState> {
        Some(&*self.state)
    }
}

/// A message as a value; one that is not JSON is shown as text.
pub(crate) fn read(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap_or_else(|error| {
        Value::String(format!("not JSON ({error}): {}", String::from_utf8_lossy(text)))
    })
}

impl MemoryConnection {
    pub(crate) fn new(server: Server, answers: Option<Answers>) -> Self {
        Self {
            server,
            state: Arc::default(),
            handshake: None,
            context: RequestContext::default(),
            answers,
            next_id: AtomicU64::new(1),
        }
    }

    fn open_requests(&self) -> OpenRequests<'_> {
        OpenRequests { client: THE_CLIENT, in_flight: &self.state.in_flight, pending: &self.state.pending }
    }

    fn text(&self, method: &str, params: &Value) -> String {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    }

    fn encode(&self, reply: &MethodReply, id: &str, revision: Revision) -> Value {
        let mut out = Vec::new();
        encode(&mut out, reply, id, revision, self.server.identity());
        read(&out)
    }

    /// Shakes hands; the reply, and the revision that was agreed.
    pub(crate) fn initialize(&mut self, params: &Value) -> (Value, Option<Revision>) {
        let text = self.text("initialize", params);
        let message = match parse(text.as_bytes()) {
            Ok(message) => message,
            Err(malformed) => return (refused(&malformed.error), None),
        };
        let (reply, handshake) = self.server.initialize(message.params(), true);
        if let Some(handshake) = handshake {
            self.handshake = Some(handshake.revision);
            self.context.client = handshake.client;
            // it keeps what is subscribed to; what there is to notify goes to those who follow
            self.state.set_filter(self.server.hub().filter(ListChanges::default()));
        }
        let id = message.id().unwrap_or_default();
        (self.encode(&reply, id, Revision::LATEST_LEGACY), self.handshake)
    }

    /// Sends one request and waits for its reply; with it, what the client was sent before. Dropping the future cancels
    /// the request.
    pub(crate) async fn request(&self, method: &str, params: &Value) -> (Value, Vec<Value>) {
        let client = Arc::new(RequestClient {
            messages: Mutex::default(),
            answers: self.answers.clone(),
            state: self.state.clone(),
        });
        let context = RequestContext { connection: Some(client.clone()), ..self.context.clone() };
        let text = self.text(method, params);
        let begun = match self.begin(&text, &context) {
            Begun::Reply(reply) => return (reply, client.taken()),
            Begun::Running(running, revision) => (running, revision),
        };
        let (running, revision) = begun;
        let id = running.id.clone();
        let reply = match running.await {
            Some(reply) => self.encode(&reply, &id, revision),
            None => Value::Null,
        };
        (reply, client.taken())
    }

    fn begin(&self, text: &str, context: &RequestContext) -> Begun {
        let message = match parse(text.as_bytes()) {
            Ok(message) => message,
            Err(malformed) => return Begun::Reply(refused(&malformed.error)),
        };
        let revision = match resolve_revision(&message, self.handshake) {
            RequestRevision::Known(revision) => revision,
            RequestRevision::Unsupported(error) => return Begun::Reply(refused(&error)),
            RequestRevision::Initialize => {
                let (reply, _) = self.server.initialize(message.params(), true);
                let id = message.id().unwrap_or_default();
                return Begun::Reply(self.encode(&reply, id, Revision::LATEST_LEGACY));
            }
        };
        let Some(request) = Request::from_message(&message, revision, context) else {
            return Begun::Reply(Value::Null);
        };
        if request.is_listen() {
            // only `listen` keeps a subscription
            return Begun::Reply(match self.server.start_listen(request, Some(self.open_requests())) {
                Ok((subscription, _)) => read(&subscription.result()),
                Err(reply) => self.encode(&reply, request.id, revision),
            });
        }
        match self.server.start_request(request, Some(self.open_requests()), &mut Vec::new()) {
            StartedRequest::Reply(reply) => Begun::Reply(self.encode(&reply, request.id, revision)),
            StartedRequest::Running(running) => Begun::Running(running, revision),
        }
    }

    /// Opens a stream of `subscriptions/listen`.
    ///
    /// # Errors
    /// The reply that refuses it.
    pub(crate) fn listen(&self, params: &Value) -> Result<ListenStream, Value> {
        let text = self.text("subscriptions/listen", params);
        let message = parse(text.as_bytes()).map_err(|malformed| refused(&malformed.error))?;
        let Some(request) = Request::from_message(&message, Revision::LATEST, &self.context) else {
            return Err(Value::Null);
        };
        match self.server.start_listen(request, Some(self.open_requests())) {
            Ok((subscription, _)) => Ok(subscription),
            Err(reply) => Err(self.encode(&reply, request.id, Revision::LATEST)),
        }
    }
}

/// How a request in memory has begun.
enum Begun {
    Reply(Value),
    Running(crate::dispatch::RunningRequest, Revision),
}

impl RequestClient {
    fn taken(&self) -> Vec<Value> {
        std::mem::take(&mut *self.messages.lock())
    }
}

/// The reply to a message that cannot be read.
fn refused(error: &ProtocolError) -> Value {
    let mut out = Vec::new();
    write_error_response(&mut out, None, error);
    read(&out)
}
