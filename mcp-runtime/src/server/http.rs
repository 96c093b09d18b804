//! The builder's methods for the HTTP transport.

use std::{
    any::{Any, TypeId},
    sync::Arc,
    time::Duration,
};

use http::{Extensions, request::Parts};

use super::{ServerBuilder, builder::RequestType};
use crate::{
    config::LONGEST,
    connection::Caller,
    store::{EventBounds, EventStore},
};

/// Options of the HTTP transport.
impl ServerBuilder {
    /// Serves requests for these hosts, instead of those for this machine's own names.
    ///
    /// An entry is a host (`mcp.example.com`, any port) or a host with a port. `X-Forwarded-Host` is not looked at.
    pub fn allowed_hosts<S: Into<String>>(mut self, hosts: impl IntoIterator<Item = S>) -> Self {
        self.options.http.allowed_hosts.extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Admits pages of these origins (`https://app.example.com`, or `null`), instead of those of this machine.
    ///
    /// Requests without `Origin`, which no browser sends, are always admitted.
    pub fn allowed_origins<S: Into<String>>(mut self, origins: impl IntoIterator<Item = S>) -> Self {
        self.options.http.allowed_origins.extend(origins.into_iter().map(Into::into));
        self
    }

    /// Serves requests for any host.
    ///
    /// For servers behind a proxy that checks hosts itself. Anywhere else it lets web pages reach the server through
    /// a name of their own. Origins are checked all the same.
    pub fn any_host(mut self) -> Self {
        self.options.http.any_host = true;
        self
    }

    /// Sets how many bytes the body of an HTTP request may have; 4 MiB by default. More is `413`.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.options.http.max_body = bytes;
        self
    }

    /// Sets how many HTTP connections may be open; 4096 by default. More wait to be accepted.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.options.http.max_connections = connections.max(1);
        self
    }

    /// Sets how many requests may be served at once over HTTP; 1024 by default. More are answered `503`.
    pub fn max_requests(mut self, requests: usize) -> Self {
        self.options.http.max_requests = requests.max(1);
        self
    }

    /// Sets how many bytes of request bodies may be incomplete at once, of all clients; 128 MiB by default. More are
    /// answered `503`.
    pub fn max_unfinished_bytes(mut self, bytes: usize) -> Self {
        self.options.http.max_unfinished_bytes = bytes;
        self
    }

    /// Sets how many bytes of notifications and requests may wait for HTTP clients to read them, of all clients; 64 MiB
    /// by default. Notifications beyond that are dropped.
    pub fn max_unread_bytes(mut self, bytes: usize) -> Self {
        self.options.http.max_unread_bytes = bytes;
        self
    }

    /// Sets how long a client may take for the head of a request, and stay silent between requests; 30 s by default.
    pub fn header_timeout(mut self, limit: Duration) -> Self {
        self.options.http.header_timeout = limit.min(LONGEST);
        self
    }

    /// Sets how long a client may take for the body of a request; 60 s by default.
    pub fn body_timeout(mut self, limit: Duration) -> Self {
        self.options.http.body_timeout = limit.min(LONGEST);
        self
    }

    /// Serves clients of revisions before 2026-07-28 without sessions: any request is served by itself, by any replica.
    ///
    /// Requests cannot be cancelled then, and clients cannot be asked.
    pub fn stateless(mut self) -> Self {
        self.options.http.stateless = true;
        self
    }

    /// Sets how long a session of the handshake era lasts, from `initialize` on; 24 hours by default, a year
    /// at most.
    pub fn session_lifetime(mut self, lifetime: Duration) -> Self {
        self.options.http.session_lifetime = lifetime.min(LONGEST);
        self
    }

    /// Sets of how many handshake-era sessions something may be remembered: log levels, subscriptions, open streams;
    /// 10 000 by default.
    ///
    /// A session costs no memory otherwise. Of one too many the session that has been idle for longest is forgotten:
    /// it goes on, without what it had set. Sessions with open streams are not forgotten.
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.options.http.max_sessions = sessions.max(1);
        self
    }

    /// Sets how many event streams may be open with `GET`; 4096 by default. More are answered `503`.
    ///
    /// Their sessions count among the [subscribers](Self::max_subscribers) as well.
    pub fn max_streams(mut self, streams: usize) -> Self {
        self.options.http.max_streams = streams;
        self
    }

    /// Sets whether clients of the handshake era can take up event streams whose connection broke; `true` by default.
    ///
    /// Without it events have no ids and are not kept, and [`Context::close_stream`](crate::Context::close_stream)
    /// does nothing.
    pub fn resumable(mut self, resumable: bool) -> Self {
        self.options.http.resumable = resumable;
        self
    }

    /// Sets how much of event streams is kept in memory for clients that come back: bytes of all events, streams, and
    /// events of one stream; 16 MiB, 4096 and 1024 by default.
    ///
    /// What is oldest goes first.
    pub fn max_events(mut self, bytes: usize, streams: usize, events: usize) -> Self {
        self.options.http.event_bounds = EventBounds { bytes, streams, events };
        self
    }

    /// Keeps the events of streams in that store, instead of in memory.
    pub fn event_store(mut self, store: impl EventStore + 'static) -> Self {
        self.options.http.event_store = Some(Arc::new(store));
        self
    }

    /// Tells callers apart by what `find` makes of a request's head; `None` is an anonymous caller,
    /// from whom everything with `scopes` is hidden.
    ///
    /// It runs before the body is read. Sessions belong to the caller that started them.
    pub fn caller(mut self, find: impl Fn(&Parts) -> Option<Caller> + Send + Sync + 'static) -> Self {
        self.options.http.caller = Some(Arc::new(find));
        self.options.authenticates = true;
        self
    }

    /// Tells callers apart by what middleware has put into requests, as `T` or as `Arc<T>`; functions take it as `&T`. A
    /// request without it comes from an anonymous caller, from whom everything with `scopes` is hidden.
    ///
    /// Sessions, tasks and the state of unfinished calls belong to the caller that started them.
    ///
    /// ```
    /// use mcp_runtime::{Caller, IntoPrincipal};
    ///
    /// #[derive(Clone)]
    /// struct User { id: u64 }
    ///
    /// impl IntoPrincipal for User {
    ///     fn into_principal(self) -> Option<Caller> {
    ///         Some(Caller::new("https://example.com", self.id.to_string()))
    ///     }
    /// }
    ///
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let server = mcp_runtime::server!().caller_from::<User>().build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn caller_from<T: IntoPrincipal + Clone + Send + Sync + 'static>(self) -> Self {
        let find = |parts: &Parts| {
            let shared = parts.extensions.get::<Arc<T>>().map(|shared| T::clone(shared));
            shared.or_else(|| parts.extensions.get::<T>().cloned())?.into_principal()
        };
        self.put_by_middleware::<T>().caller(find)
    }

    /// Grants every scope to every HTTP client, though the server cannot tell callers apart.
    ///
    /// Without this, a server whose items have `scopes` is not served over HTTP before [`caller`](Self::caller) or
    /// [`caller_from`](Self::caller_from) says who calls. Clients on stdio and in memory are always trusted.
    pub fn trust_all_callers(mut self) -> Self {
        self.options.http.trusts_all = true;
        self
    }

    /// Declares a type that middleware puts into requests as an extension, as `T` or as `Arc<T>`; functions take it
    /// as `&T`.
    ///
    /// A type that says who calls is declared with [`caller_from`](Self::caller_from) instead: otherwise sessions, tasks
    /// and unfinished calls are not bound to it.
    pub fn from_request<T: Clone + Send + Sync + 'static>(mut self) -> Self {
        let name = std::any::type_name::<T>();
        if looks_like_a_caller(name) {
            self.options.http.suspects.push(name);
        }
        self.put_by_middleware::<T>()
    }

    fn put_by_middleware<T: Clone + Send + Sync + 'static>(mut self) -> Self {
        self.request_types.push(RequestType {
            id: TypeId::of::<T>(),
            extract: Arc::new(|extensions: &dyn Any, found| {
                let Some(extensions) = extensions.downcast_ref::<Extensions>() else { return };
                if let Some(shared) = extensions.get::<Arc<T>>() {
                    found.insert(shared.clone());
                } else if let Some(value) = extensions.get::<T>() {
                    found.insert(value.clone());
                }
            }),
        });
        self
    }

    /// Serves HTTP+SSE as well, the transport of 2024-11-05 that newer revisions have replaced, at a path of its own.
    ///
    /// For clients that know no other; not at all by default. A client opens an event stream there with GET, and
    /// sends its messages to the URL that the first event names. The stream is its session: it ends when the
    /// connection does, and is not shared between replicas.
    ///
    /// ```
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let server = mcp_runtime::server!().legacy_sse("/sse").build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn legacy_sse(mut self, path: impl Into<String>) -> Self {
        self.options.http.sse_path = Some(path.into());
        self
    }

    /// Sets the path of the endpoint; `/mcp` by default.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.options.http.path = path.into();
        self
    }
}

/// Types that say who calls, as middleware puts them into requests; see
/// [`ServerBuilder::caller_from`](crate::ServerBuilder::caller_from).
pub trait IntoPrincipal {
    /// The caller; `None` is an anonymous one.
    fn into_principal(self) -> Option<Caller>;
}

/// Whether a type's name is that of someone who calls.
fn looks_like_a_caller(name: &str) -> bool {
    let name = name.split('<').next().unwrap_or_default().rsplit("::").next().unwrap_or_default();
    let words = [
        "user",
        "caller",
        "principal",
        "identity",
        "claims",
        "account",
        "subject",
        "session",
        "login",
        "auth",
    ];
    let name = name.to_ascii_lowercase();
    words.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_callers_are_recognised() {
        for name in ["app::auth::CurrentUser", "Claims", "alloc::x::AuthSession<app::Backend>"] {
            assert!(looks_like_a_caller(name), "{name}");
        }
        for name in ["app::RequestId", "user::Trace", "Tenant", "TraceContext<user::User>"] {
            assert!(!looks_like_a_caller(name), "{name}");
        }
    }
}
