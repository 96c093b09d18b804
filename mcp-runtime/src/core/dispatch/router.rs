//! Routes each method that the server offers in the request's revision to the function that answers it.

use super::{
    Request,
    response::{Reply, Response, ResultBody},
    subscriptions::ListenStream,
};
use crate::core::{
    connection::Access,
    protocol::Method,
    server::{List, Registry, Server},
};

/// Whether the program's subscriber wants the spans of requests.
pub(crate) fn wants_spans() -> bool {
    tracing::span_enabled!(target: "mcp_runtime::request", tracing::Level::INFO, "otel.kind")
}

impl Server {
    /// Answers one request, but not `subscriptions/listen`.
    pub(super) fn answer(&self, request: Request<'_>) -> Response {
        if self.is_observed() {
            self.observe(request)
        } else {
            self.route(request).unwrap_or_else(Response::Ready)
        }
    }

    /// Answers `subscriptions/listen`.
    ///
    /// # Errors
    /// The reply that refuses it.
    pub(super) fn answer_listen(&self, request: Request<'_>) -> Result<ListenStream, Reply> {
        if self.is_observed() { self.observe_listen(request) } else { self.route_listen(request) }
    }

    /// Whether requests are watched: the program's subscriber wants their spans, or they are counted or audited.
    pub(super) fn is_observed(&self) -> bool {
        self.counts_or_audits() || wants_spans()
    }

    pub(super) fn route_listen(&self, request: Request<'_>) -> Result<ListenStream, Reply> {
        if !request.context.counted {
            self.take_rate(|| request.context.owner()).map_err(|reached| Reply::limited(&reached))?;
        }
        request.check()?;
        self.listen(request)
    }

    pub(super) fn route(&self, request: Request<'_>) -> Result<Response, Reply> {
        if !request.context.counted && request.method != "ping" {
            self.take_rate(|| request.context.owner()).map_err(|reached| Reply::limited(&reached))?;
        }
        request.check()?;
        let registry: &Registry = &self.registry();
        // a method of another revision is an unknown method
        if !Method::of_name(request.method).is_some_and(|method| method.is_in(request.revision)) {
            return Err(Reply::unknown_method(request.method));
        }
        match request.method {
            "tools/call" if self.offers_tools(registry) => self.call_tool(request, registry),
            "tools/list" if self.offers_tools(registry) => {
                let entries = |revision, access: Access<'_>| registry.tool_entries(revision, access);
                self.list(request, List { key: "tools", entries: &entries, pages: &registry.tool_pages })
            }
            "server/discover" => Ok(self.discover(request).into()),
            "logging/setLevel" if self.settings().logging => Ok(self.set_level(request)?.into()),
            "ping" => Ok(Reply::from(ResultBody::Empty).into()),
            method => match registry.capabilities.of_method(method) {
                Some(capability) => capability.clone().answer(self, registry, request),
                None => Err(Reply::unknown_method(method)),
            },
        }
    }
}
