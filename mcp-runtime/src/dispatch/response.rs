//! What a request is answered with: a value until it reaches its edge, where [`encode`] writes it once, in the words of
//! the client's revision.

use std::{
    any::Any,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context as TaskContext, Poll},
    time::Duration,
};

use serde_json::{Map, Value};

use super::subscriptions::Subscription;
use crate::{
    arguments::BoxFuture,
    blocking::{Holding, Permit},
    content::ResourceDefaults,
    context::{Context, Question, input_request},
    invoke::lost,
    jsonrpc::{Object, ProtocolError, array, error_reply, string},
    prompt::{PromptResult, prompt_result},
    protocol::{META_SERVER_INFO, METHOD_NOT_FOUND, Revision},
    resource::{ResourceEntry, ResourceResult, resource_result},
    server::{Identity, Page},
    store::TaskRecord,
    task::Live,
    tool::{ToolResult, tool_result},
};

/// How a request is answered.
pub(crate) enum Response {
    /// The reply is there.
    Ready(Reply),
    /// The reply takes its time.
    Pending(Pending),
}

/// How `subscriptions/listen` is answered.
pub(crate) enum Listening {
    /// The stream begins with its acknowledgement.
    Stream(Subscription),
    Refused(Reply),
}

/// The HTTP status of a reply to a request of 2026-07-28; other clients and transports do not see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// 200
    Ok,
    /// 400
    BadRequest,
    /// 404
    NotFound,
    /// 503
    Unavailable,
}

/// The answer to one request.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) outcome: Result<ResultBody, ProtocolError>,
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has them"))]
    pub(crate) status: Status,
    /// HTTP headers that belong to it.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has them"))]
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// A result, by what it is the result of.
#[derive(Debug)]
pub(crate) enum ResultBody {
    /// Nothing but what every result has.
    Empty,
    Tool {
        result: ToolResult,
        /// Whether clients of handshake revisions get the structured value under `result`.
        wrap: bool,
    },
    Resource {
        result: ResourceResult,
        uri: Box<str>,
        /// What the contents are where they do not say so themselves.
        entry: ReadEntry,
        cache: CacheHints,
    },
    Prompt {
        result: PromptResult,
        description: Option<&'static str>,
    },
    List {
        key: &'static str,
        page: Arc<Page>,
        cursor: Option<String>,
        cache: CacheHints,
    },
    Completion {
        /// At most what one reply may hold.
        values: Vec<String>,
        total: usize,
    },
    /// What the server says of itself, `_meta` included: members that were written when the reply was made.
    AboutServer(Vec<u8>),
    /// Members that were written when the reply was made.
    Written(Vec<u8>),
    InputRequired {
        requests: Vec<Question>,
        state: String,
    },
    /// The call goes on as this task.
    TaskCreated(Arc<Live>),
    Task(Arc<Live>),
    /// A task that runs elsewhere, or has ended.
    StoredTask(TaskRecord),
}

/// What is behind a resource that was read.
#[derive(Debug)]
pub(crate) enum ReadEntry {
    Resource(Arc<ResourceEntry>),
    SkillFile,
}

/// The members of a cacheable result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheHints {
    pub(crate) ttl: Duration,
    pub(crate) public: bool,
}

impl CacheHints {
    /// Not to be kept at all.
    pub(crate) const NONE: Self = Self { ttl: Duration::ZERO, public: false };

    pub(crate) fn write(self, object: &mut Object<'_>) {
        if self.ttl.is_zero() && !self.public {
            // nearly always
            return object.members(br#""ttlMs":0,"cacheScope":"private""#);
        }
        object
            .value("ttlMs", &u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX))
            .raw("cacheScope", if self.public { "\"public\"" } else { "\"private\"" });
    }
}

impl From<ResultBody> for Reply {
    fn from(body: ResultBody) -> Self {
        Self { outcome: Ok(body), status: Status::Ok, headers: Vec::new() }
    }
}

impl From<ProtocolError> for Reply {
    fn from(error: ProtocolError) -> Self {
        Self { outcome: Err(error), status: Status::Ok, headers: Vec::new() }
    }
}

impl From<Reply> for Response {
    fn from(reply: Reply) -> Self {
        Self::Ready(reply)
    }
}

impl Reply {
    pub(super) fn unknown_method(method: &str) -> Self {
        let error = ProtocolError::new(METHOD_NOT_FOUND, format!("unknown method `{method}`"));
        Self { status: Status::NotFound, ..error.into() }
    }

    /// Too many of something are open.
    pub(crate) fn unavailable(text: &'static str) -> Self {
        let headers = vec![("retry-after", "1".to_owned())];
        Self { status: Status::Unavailable, headers, ..ProtocolError::internal(text).into() }
    }

    pub(super) fn bad_request(error: ProtocolError) -> Self {
        Self { status: Status::BadRequest, ..error.into() }
    }
}

/// A call that is still running; dropping it cancels the call. Its permits stay with a thread that works for it.
pub(crate) struct Pending {
    reply: Holding<BoxFuture<Reply>>,
    /// Of the call, if a user's function is behind it; absent once it is over.
    context: Option<Context>,
}

impl Pending {
    /// The reply of the call with that context.
    pub(super) fn new(context: &Context, reply: Holding<BoxFuture<Reply>>) -> Self {
        Self { reply, context: Some(context.clone()) }
    }

    /// A reply that no function of the user's is behind.
    pub(super) fn of_server(reply: impl Future<Output = Reply> + Send + 'static) -> Self {
        let reply: BoxFuture<Reply> = Box::pin(reply);
        Self { reply: Holding::new(reply, Vec::new()), context: None }
    }

    /// Holds a permit as long as the call runs, on a thread or not.
    pub(crate) fn hold(&mut self, permit: Permit) {
        self.reply.hold(permit);
    }

    /// Holds that permit instead of those of budgets.
    #[cfg(feature = "http")]
    pub(crate) fn hold_instead(&mut self, permit: Permit) {
        self.reply.hold_instead(permit);
    }
}

impl Future for Pending {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Reply> {
        let this = &mut *self;
        // what is left to panic here is the drop of something of the user's
        let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(&mut this.reply).poll(cx)))
            .unwrap_or_else(|panic: Box<dyn Any + Send>| Poll::Ready(lost(panic).into()));
        if polled.is_ready() {
            self.context = None;
        }
        polled
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(context) = &self.context {
            context.inner().cancel.fire();
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pending")
    }
}

/// Appends a reply; `id` is raw JSON of the request's id.
pub(crate) fn encode(out: &mut Vec<u8>, reply: &Reply, id: &str, revision: Revision, identity: &Identity) {
    match &reply.outcome {
        Ok(body) => {
            out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            out.extend_from_slice(id.as_bytes());
            out.extend_from_slice(br#","result":"#);
            encode_result(out, body, revision, identity);
            out.push(b'}');
        }
        Err(error) => error_reply(out, Some(id), error),
    }
}

/// Appends a result by itself: what every result of the revision has, around its own members.
pub(super) fn encode_result(out: &mut Vec<u8>, body: &ResultBody, revision: Revision, identity: &Identity) {
    let mut object = Object::new(out);
    let modern = revision.is_modern();
    if modern {
        object.members(body.kind());
    }
    body.write_members(&mut object, revision);
    match body.meta() {
        _ if matches!(body, ResultBody::AboutServer(_)) => {}
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
                    m.any_value(key, value);
                }
            });
        }
    }
    object.end();
}

impl ResultBody {
    /// The member `resultType`.
    fn kind(&self) -> &'static [u8] {
        match self {
            Self::InputRequired { .. } => br#""resultType":"input_required""#,
            Self::TaskCreated(_) => br#""resultType":"task""#,
            _ => br#""resultType":"complete""#,
        }
    }

    /// What a function put into the result's `_meta`.
    fn meta(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Tool { result, .. } => result.meta.as_deref(),
            Self::Resource { result, .. } => result.meta.as_deref(),
            Self::Prompt { result, .. } => result.meta.as_deref(),
            _ => None,
        }
    }

    fn write_members(&self, object: &mut Object<'_>, revision: Revision) {
        match self {
            Self::Empty => {}
            Self::Tool { result, wrap } => tool_result(object, result, revision, *wrap),
            Self::Resource { result, uri, entry, cache } => {
                let own = match entry {
                    ReadEntry::Resource(entry) => {
                        ResourceDefaults { uri, mime: entry.def.mime_type(), ui: entry.def.ui }
                    }
                    ReadEntry::SkillFile => ResourceDefaults { uri, ..ResourceDefaults::default() },
                };
                resource_result(object, result, revision, own);
                if revision.is_modern() {
                    cache.write(object);
                }
            }
            Self::Prompt { result, description } => prompt_result(object, result, revision, *description),
            Self::List { key, page, cursor, cache } => {
                object.key(key).extend_from_slice(&page.entries);
                object.opt_str("nextCursor", cursor.as_deref());
                if revision.is_modern() {
                    cache.write(object);
                }
            }
            Self::Completion { values, total } => {
                object.object("completion", |c| {
                    array(c.key("values"), values, |out, value| string(out, value));
                    c.value("total", total).value("hasMore", &(*total > values.len()));
                });
            }
            Self::AboutServer(members) | Self::Written(members) => object.members(members),
            Self::InputRequired { requests, state } => {
                object.object("inputRequests", |all| {
                    for Question { key, method, params, .. } in requests {
                        input_request(all, key, method, params);
                    }
                });
                object.str("requestState", state);
            }
            Self::TaskCreated(live) => live.write_seed(object),
            Self::Task(live) => live.write_whole(object),
            Self::StoredTask(record) => object.members(members_of(record.json())),
        }
    }
}

/// The members of an object that is raw JSON.
fn members_of(object: &str) -> &[u8] {
    let inner = object.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inner.map(str::trim).unwrap_or_default().as_bytes()
}
