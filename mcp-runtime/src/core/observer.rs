//! The observers of a server, which are notified of requests that begin, end or are refused, of tasks and sessions, and of
//! questions to authorization servers. The audit log and the metrics each implement [`Observer`]; the span of a request is
//! made where it is answered, in `core/dispatch/observation.rs`. A server without observers, whose program wants no spans,
//! pays one comparison for each request.

use std::{any::Any, net::IpAddr, sync::Arc, time::Duration};

use super::{
    connection::{ClientConnection, Principal},
    dispatch::{ObservedItem, Request},
    reason::Reason,
};

/// In place of a method or an error that is not known in advance.
pub(crate) const OTHER: &str = "_OTHER";

/// The observers of a server, of which there may be none.
pub(crate) type Observers = Arc<[Arc<dyn Observer>]>;

/// The details of a request as the observer that needs them keeps them.
pub(crate) type AnyDetails = Box<dyn Any + Send + Sync>;

/// Is notified of what happens in a server; a method with a body here is for those that need it.
pub(crate) trait Observer: Any + Send + Sync {
    /// A request has begun.
    fn request_began(&self) {}

    /// What the observer needs of a request that has begun to tell of its end, besides what [`EndedRequest`] has; `trace` finds
    /// the trace that the request is part of.
    fn details(
        &self,
        _request: &Request<'_>,
        _item: &ObservedItem,
        _trace: &dyn Fn() -> Option<String>,
    ) -> Option<AnyDetails> {
        None
    }

    /// A request that has begun has ended.
    fn request_ended(&self, request: &EndedRequest<'_>);

    /// A request was refused before its method was examined.
    fn refused(&self, refused: &RefusedRequest, caller: Option<&Principal>, address: Option<IpAddr>);

    /// The route of an addition at this path has answered a request: its method in HTTP, and the status.
    fn route_answered(
        &self,
        _path: &str,
        _answer: (&str, u16),
        _caller: Option<&Principal>,
        _address: Option<IpAddr>,
        _duration: Duration,
    ) {
    }

    /// A call continues as a task.
    fn task_began(&self) {}

    /// A task that has begun has ended.
    fn task_ended(&self, task: &EndedTask<'_>);

    /// A session or a connection has ended.
    fn session_ended(&self, _transport: Option<&'static str>, _revision: &'static str, _lasted: Duration) {}

    /// The store that replicas share, as the observer watches it.
    #[cfg(feature = "shared")]
    fn watch_store(&self, store: Arc<dyn super::store::Shared>) -> Arc<dyn super::store::Shared> {
        store
    }

    /// An authorization server was asked. `question`: `keys` or `introspection`; `outcome`: `ok`, `active`, `inactive` or
    /// `error`.
    fn issuer_asked(
        &self,
        _issuer: &str,
        _question: &'static str,
        _outcome: &'static str,
        _duration: Duration,
    ) {
    }
}

/// How a request reached the server.
#[derive(Clone, Copy, Default)]
pub(crate) struct Network {
    /// `tcp` or `pipe`, if it is known.
    pub(crate) transport: Option<&'static str>,
    /// That of HTTP.
    pub(crate) version: Option<&'static str>,
}

impl Network {
    pub(crate) fn of(connection: Option<&dyn ClientConnection>) -> Self {
        Self {
            transport: connection.and_then(|connection| connection.transport()),
            version: connection.and_then(|connection| connection.http_head()).map(|head| head.version),
        }
    }

    /// The name of the application's protocol.
    pub(crate) fn protocol(self) -> Option<&'static str> {
        self.version.map(|_| "http")
    }
}

/// How a request or a task has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndOutcome {
    Ok,
    ToolError,
    Error,
    InputRequired,
    /// The request has started one.
    Task,
    Refused,
    Cancelled,
    /// Of tasks, as those below.
    Completed,
    Failed,
    /// No client asked for it in time.
    Expired,
    /// Another process has it.
    Lost,
}

impl EndOutcome {
    /// As logs, spans and metrics name it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::Error => "error",
            Self::InputRequired => "input_required",
            Self::Task => "task",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Lost => "lost",
        }
    }
}

/// How a request has ended.
#[derive(Clone, Copy)]
pub(crate) struct EndedRequest<'a> {
    /// One that the protocol defines, or [`OTHER`].
    pub(crate) method: &'static str,
    pub(crate) item: &'a ObservedItem,
    pub(crate) outcome: EndOutcome,
    /// The wire's error code, `tool_error` or the reason.
    pub(crate) error: Option<&'a str>,
    pub(crate) reason: Option<Reason>,
    /// The wire's error code.
    pub(crate) code: Option<&'a str>,
    /// The task that the call continues as.
    pub(crate) task: Option<&'a str>,
    pub(crate) revision: &'static str,
    pub(crate) network: Network,
    pub(crate) duration: Duration,
    /// Those of the observer that needs some.
    pub(crate) details: Option<&'a (dyn Any + Send + Sync)>,
}

/// How a task has ended.
#[derive(Clone, Copy)]
pub(crate) struct EndedTask<'a> {
    pub(crate) tool: &'a str,
    /// As much of it as logs may have.
    pub(crate) id: &'a str,
    pub(crate) outcome: EndOutcome,
    /// The wire's error code, `tool_error` or the reason.
    pub(crate) error: Option<&'a str>,
    pub(crate) reason: Option<Reason>,
    /// The wire's error code.
    pub(crate) code: Option<&'a str>,
    pub(crate) duration: Duration,
    pub(crate) caller: Option<&'a Principal>,
    pub(crate) address: Option<IpAddr>,
    pub(crate) trace: Option<&'a str>,
}

/// A request that was refused before its method was examined.
#[derive(Debug, Clone)]
pub(crate) struct RefusedRequest {
    pub(crate) reason: Reason,
    /// The HTTP status.
    pub(crate) status: Option<u16>,
    /// The scopes that the caller lacks.
    pub(crate) scopes: Box<str>,
    /// The caller, if only the refusal knows it.
    pub(crate) caller: Option<Arc<Principal>>,
}

impl RefusedRequest {
    pub(crate) fn new(reason: Reason) -> Self {
        Self { reason, status: None, scopes: Box::default(), caller: None }
    }
}
