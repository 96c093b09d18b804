//! The answer to a request: a value until it reaches the transport, where [`encode`] writes it once, for the client's
//! revision.

use std::{
    any::Any,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context as TaskContext, Poll},
    time::Duration,
};

use serde_json::{Map, Value};

use super::observation::Observation;
use crate::{
    core::{
        admission::RateReached,
        arguments::BoxFuture,
        blocking::{CallPermit, Permits, WithPermits},
        context::{Context, PendingRequest},
        invoke::report_lost_reply,
        jsonrpc::{Object, ProtocolError, write_error_response},
        maybe_ready::MaybeReady,
        protocol::{META_SERVER_INFO, METHOD_NOT_FOUND, Revision, is_bad_request},
        reason::Reason,
        server::{EncodedPage, Identity, Server},
        tool::{ToolResult, write_tool_result},
        unix_time::millis,
    },
    schema::sort_by,
};

/// How a request is answered: at once, or with a future.
pub(crate) type Response = MaybeReady<Reply, PendingReply>;

/// The HTTP status of the reply to a request of 2026-07-28; other revisions and transports ignore it, except where it
/// says so.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// 200
    Ok,
    /// 400
    BadRequest,
    /// 403, also for legacy revisions
    Forbidden,
    /// 404
    NotFound,
    /// 503, also for legacy revisions
    Unavailable,
}

#[cfg(feature = "http")]
impl Status {
    /// Whether legacy revisions have it as well.
    pub(crate) fn is_of_all_revisions(self) -> bool {
        matches!(self, Self::Forbidden | Self::Unavailable)
    }
}

/// The reply of a method to one request.
pub(crate) struct Reply {
    pub(crate) outcome: Result<ResultBody, ProtocolError>,
    pub(crate) status: Status,
    /// Why it is a failure, for operators, as far as that is known.
    pub(crate) reason: Option<Reason>,
    /// HTTP headers to send with it.
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// The result of a request, by kind.
pub(crate) enum ResultBody {
    /// Only the members that every result has.
    Empty,
    Tool {
        result: ToolResult,
        /// Whether legacy clients get the structured value under `result`.
        wrap: bool,
    },
    List {
        key: &'static str,
        page: Arc<EncodedPage>,
        cursor: Option<String>,
        cache: CacheHints,
    },
    /// The result of `initialize` or `server/discover`: encoded members, `_meta` included.
    Lifecycle(Vec<u8>),
    InputRequired {
        requests: Vec<PendingRequest>,
        state: String,
    },
    /// The result of a capability.
    Other(Box<dyn WriteResult>),
}

/// A result that only the capability knows whose method it is of.
pub(crate) trait WriteResult: Send + Sync {
    /// `resultType` on the wire.
    fn result_type(&self) -> &'static str {
        "complete"
    }

    /// Writes its own members.
    fn write_members(&self, object: &mut Object<'_>, revision: Revision);

    /// The `_meta` that a function has given it.
    fn meta(&self) -> Option<&Map<String, Value>> {
        None
    }

    /// The reply with this result.
    fn into_reply(self) -> Reply
    where
        Self: Sized + 'static,
    {
        ResultBody::Other(Box::new(self)).into()
    }

    /// The id of the task that the call has become, as logs have it.
    fn started_task(&self) -> Option<&str> {
        None
    }
}

/// The members of a cacheable result.
#[derive(Clone, Copy)]
pub(crate) struct CacheHints {
    pub(crate) ttl: Duration,
    pub(crate) public: bool,
}

impl CacheHints {
    /// The result must not be cached.
    pub(crate) const NONE: Self = Self { ttl: Duration::ZERO, public: false };

    pub(crate) fn write(self, object: &mut Object<'_>) {
        if self.ttl.is_zero() && !self.public {
            // by far the most common case
            return object.raw_members(br#""ttlMs":0,"cacheScope":"private""#);
        }
        object
            .value("ttlMs", &millis(self.ttl))
            .raw("cacheScope", if self.public { "\"public\"" } else { "\"private\"" });
    }
}

impl From<ResultBody> for Reply {
    fn from(body: ResultBody) -> Self {
        Self { outcome: Ok(body), status: Status::Ok, reason: None, headers: Vec::new() }
    }
}

impl From<ProtocolError> for Reply {
    fn from(error: ProtocolError) -> Self {
        let status = if is_bad_request(error.code) { Status::BadRequest } else { Status::Ok };
        Self { outcome: Err(error), status, reason: None, headers: Vec::new() }
    }
}

impl Reply {
    pub(crate) fn unknown_method(method: &str) -> Self {
        let error = ProtocolError::new(METHOD_NOT_FOUND, format!("unknown method `{method}`"));
        Self { status: Status::NotFound, ..error.into() }
    }

    /// `-32602`; `nearest` is the item with the most similar name.
    pub(crate) fn unknown_item(kind: &str, name: &str, nearest: Option<&str>) -> Self {
        let error = ProtocolError::invalid_params(match nearest {
            Some(nearest) => format!("unknown {kind} `{name}`; did you mean `{nearest}`?"),
            None => format!("unknown {kind} `{name}`"),
        });
        Self::from(error).because(Reason::Unknown)
    }

    /// The same reply, which is a failure for that reason.
    pub(crate) fn because(self, reason: impl Into<Option<Reason>>) -> Self {
        Self { reason: reason.into(), ..self }
    }

    /// `503`: a limit of the server has been reached.
    pub(crate) fn unavailable(text: impl Into<String>) -> Self {
        let headers = vec![("retry-after", "1".to_owned())];
        let reason = Some(Reason::Busy);
        Self { status: Status::Unavailable, reason, headers, ..ProtocolError::internal(text).into() }
    }

    /// The server was dropped while a function of it was running.
    pub(crate) fn server_dropped() -> Self {
        ProtocolError::internal("the server has been dropped").into()
    }

    /// The caller has used up the rate of the server.
    pub(super) fn limited(reached: &RateReached) -> Self {
        Self::from(ProtocolError::internal(reached.of_requests())).because(Reason::RateLimited)
    }

    pub(crate) fn bad_request(error: ProtocolError) -> Self {
        Self { status: Status::BadRequest, ..error.into() }
    }
}

impl Server {
    /// `403`: the item needs these scopes, and the caller lacks some of them, which it can acquire. Transports other than
    /// HTTP, and batches, have the names of the scopes in the message.
    #[cold]
    pub(crate) fn insufficient_scope(&self, scopes: &[String]) -> Reply {
        let mut names: Vec<&str> = scopes.iter().map(String::as_str).collect();
        sort_by(&mut names, Ord::cmp);
        names.dedup();
        let names = names.join(" ");
        let error =
            ProtocolError::internal(format!("this needs the scopes `{names}`\nask for them and try again"));
        let headers = self.options().scope_challenge(&names);
        Reply {
            status: Status::Forbidden,
            reason: Some(Reason::Scopes),
            headers: headers.map(|challenge| ("www-authenticate", challenge)).into_iter().collect(),
            ..error.into()
        }
    }
}

/// The reply of a call that is running; dropping it cancels the call. Its permits are released when the call has ended,
/// and no earlier than the blocking threads of that call.
pub(crate) struct PendingReply {
    reply: WithPermits<BoxFuture<Reply>>,
    /// The context of the call, if it runs a user's function; unset once it has completed.
    context: Option<Context>,
    /// Observes the request until it has its reply.
    observation: Option<Box<Observation>>,
}

impl PendingReply {
    /// Lets a request be watched.
    pub(super) fn observe(&mut self, observation: Box<Observation>) {
        self.observation = Some(observation);
    }

    /// The reply of the call with that context.
    pub(crate) fn new(context: Context, reply: BoxFuture<Reply>) -> Self {
        let reply = WithPermits { future: reply, permits: Permits::default() };
        Self { reply, context: Some(context), observation: None }
    }

    /// A reply that takes no call of a user's function.
    pub(crate) fn without_call(reply: impl Future<Output = Reply> + Send + 'static) -> Self {
        let reply = WithPermits { future: Box::pin(reply) as BoxFuture<Reply>, permits: Permits::default() };
        Self { reply, context: None, observation: None }
    }

    /// Sets the permits that it holds until the call and its blocking threads have ended.
    pub(super) fn set_permits(&mut self, permits: Permits) {
        self.reply.permits = permits;
    }

    /// Holds further permits until the call and its blocking threads have ended.
    pub(crate) fn hold(&mut self, permits: Vec<CallPermit>) {
        self.reply.permits.hold(permits);
    }

    /// Holds this permit in place of those that it holds.
    #[cfg(feature = "http")]
    pub(crate) fn hold_instead(&mut self, permit: crate::core::admission::Permit) {
        self.reply.permits.replace(CallPermit::Share(permit));
    }
}

impl Future for PendingReply {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Reply> {
        let this = &mut *self;
        let entered = this.observation.as_ref().map(|observation| observation.span().enter());
        // users' functions are contained already; only dropping a value of theirs can panic here
        let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(&mut this.reply).poll(cx)))
            .unwrap_or_else(|panic: Box<dyn Any + Send>| Poll::Ready(report_lost_reply(panic).into()));
        drop(entered);
        if let Poll::Ready(reply) = &polled {
            self.context = None;
            if let Some(observation) = self.observation.take() {
                observation.end(reply);
            }
        }
        polled
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        if let Some(context) = &self.context {
            context.inner().cancel.cancel();
        }
    }
}

/// Appends a reply as a JSON-RPC message; `id` is raw JSON of the request's id.
pub(crate) fn encode(out: &mut Vec<u8>, reply: &Reply, id: &str, revision: Revision, identity: &Identity) {
    match &reply.outcome {
        Ok(body) => {
            out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            out.extend_from_slice(id.as_bytes());
            out.extend_from_slice(br#","result":"#);
            encode_result(out, body, revision, identity);
            out.push(b'}');
        }
        Err(error) => write_error_response(out, Some(id), error),
    }
}

/// Appends a result without its JSON-RPC envelope: its own members, and those that every result of the revision has.
pub(crate) fn encode_result(out: &mut Vec<u8>, body: &ResultBody, revision: Revision, identity: &Identity) {
    let mut object = Object::new(out);
    let modern = revision.is_modern();
    if modern {
        body.write_result_type(&mut object);
    }
    body.write_members(&mut object, revision);
    match body.meta() {
        _ if matches!(body, ResultBody::Lifecycle(_)) => {}
        None if modern => {
            object.raw("_meta", &identity.meta);
        }
        None => {}
        Some(meta) => {
            object.object("_meta", |m| {
                if modern {
                    m.raw(META_SERVER_INFO, &identity.brief);
                }
                for (key, value) in meta.iter().filter(|(key, _)| *key != META_SERVER_INFO) {
                    m.escaped_value(key, value);
                }
            });
        }
    }
    object.end();
}

impl ResultBody {
    fn write_result_type(&self, object: &mut Object<'_>) {
        match self {
            Self::InputRequired { .. } => object.raw_members(br#""resultType":"input_required""#),
            Self::Other(result) if result.result_type() != "complete" => {
                object.str("resultType", result.result_type());
            }
            _ => object.raw_members(br#""resultType":"complete""#),
        }
    }

    /// Whether it is the result of a tool that says that the tool has failed.
    pub(crate) fn is_tool_error(&self) -> bool {
        matches!(self, Self::Tool { result, .. } if result.is_error)
    }

    /// The `_meta` that the function has given the result.
    fn meta(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Tool { result, .. } => result.meta.as_deref(),
            Self::Other(result) => result.meta(),
            _ => None,
        }
    }

    fn write_members(&self, object: &mut Object<'_>, revision: Revision) {
        match self {
            Self::Empty => {}
            Self::Tool { result, wrap } => write_tool_result(object, result, revision, *wrap),
            Self::List { key, page, cursor, cache } => {
                object.key(key).extend_from_slice(&page.entries);
                object.opt_str("nextCursor", cursor.as_deref());
                if revision.is_modern() {
                    cache.write(object);
                }
            }
            Self::Lifecycle(members) => object.raw_members(members),
            Self::InputRequired { requests, state } => {
                object.object("inputRequests", |all| {
                    requests.iter().for_each(|request| request.write_to(all));
                });
                object.str("requestState", state);
            }
            Self::Other(result) => result.write_members(object, revision),
        }
    }
}
