//! Routes each method that the server offers in the request's revision to the function that answers it.

use std::sync::Arc;

use super::{
    Request,
    response::{Reply, Response, ResultBody},
    subscriptions::ListenStream,
};
use crate::{
    protocol::Method,
    server::{ListKind, Registry, Server},
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
        let registry: &Arc<Registry> = &self.registry();
        let revision = request.revision;
        // a method of another revision is an unknown method
        if !Method::of_name(request.method).is_some_and(|method| method.is_in(revision)) {
            return Ok(Reply::unknown_method(request.method).into());
        }
        let offers = self.offers_of(registry, revision);
        let subscribes = || offers.changes.resources && request.context.session().is_some();
        Ok(match request.method {
            "tools/call" if offers.tools => self.call_tool(request, registry)?,
            "tools/list" if offers.tools => self.list(request, registry, ListKind::Tools)?,
            "resources/read" if offers.resources => self.read_resource(request, registry)?,
            "resources/list" if offers.resources => self.list_resources(request, registry)?,
            "resources/templates/list" if offers.resources => {
                self.list(request, registry, ListKind::Templates)?
            }
            "resources/directory/read" if offers.skills => self.read_directory(request, registry)?.into(),
            "skills/list" if offers.skills => self.list(request, registry, ListKind::Skills)?,
            "skills/get" if offers.skills => self.get_skill(request, registry)?.into(),
            "prompts/get" if offers.prompts => self.get_prompt(request, registry)?,
            "prompts/list" if offers.prompts => self.list(request, registry, ListKind::Prompts)?,
            "resources/subscribe" if subscribes() => self.subscribe(request, registry)?.into(),
            "resources/unsubscribe" if subscribes() => self.unsubscribe(request)?.into(),
            "completion/complete" if offers.completions => self.complete(request, registry)?,
            "server/discover" => self.discover(request).into(),
            "logging/setLevel" if self.settings().logging => self.set_level(request)?.into(),
            "ping" => Reply::from(ResultBody::Empty).into(),
            method => {
                let mut capabilities = registry.capabilities.iter();
                match capabilities.find_map(|capability| capability.clone().answer(request)) {
                    Some(answer) => answer?,
                    None => Reply::unknown_method(method).into(),
                }
            }
        })
    }
}
