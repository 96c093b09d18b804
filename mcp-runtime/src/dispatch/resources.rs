//! `resources/list`, `resources/read`, `resources/subscribe` and `resources/unsubscribe`.

use std::{borrow::Cow, convert::Infallible, sync::Arc, time::Duration};

use serde_json::json;

use super::{
    Request,
    item_call::{ItemCall, into_protocol_error, start_with_strings},
    pagination::{CursorScope, invalid_cursor},
    request::ClientRequestPolicy,
    response::{CacheHints, ReadSource, Reply, Response, ResultBody},
};
use crate::{
    arguments::{MaybeFuture, TextArgument},
    client_request::{CallBinding, InputRequired},
    context::{Context, Retry},
    error::Failure,
    extensions::Extensions,
    invoke::{self, ClientError, ErrorContext, Invocation, Running, catch_panic},
    jsonrpc::ProtocolError,
    protocol::{self, Revision},
    resource::{ListFn, ListedResource, ResourceEntry, ResourceResult, Subscription, UriVariables},
    server::{ListKind, Registry, Server, page_of},
};

impl Server {
    pub(super) fn list_resources(
        &self,
        request: Request<'_>,
        registry: &Registry,
    ) -> Result<Response, Reply> {
        if !registry.resources.iter().any(|resource| resource.list.is_some()) {
            return self.list(request, registry, ListKind::Resources);
        }
        let cursor = request.cursor()?;
        let scope = CursorScope::new(self, &request, ListKind::Resources.key());
        let start = self.page_start(cursor.as_deref(), &scope)?;
        let entries = registry.entries(ListKind::Resources, request.revision, request.access());
        let visible = registry.resources.iter().filter(|r| request.access().allows(&r.item.scopes));
        let templates: Vec<_> = visible.filter_map(|r| Some((r.clone(), r.list?))).collect();
        let make_context =
            |entry: &ResourceEntry| request.make_context(self, &entry.state, ClientRequestPolicy::Forbidden);
        let contexts = templates.iter().map(|(entry, _)| make_context(entry)).collect();
        let call = ListInstances { entries, templates, contexts, start, scope, state: Arc::default() };
        Ok(self.call_item(request, call))
    }

    pub(super) fn read_resource(&self, request: Request<'_>, registry: &Registry) -> Result<Response, Reply> {
        let uri = request.uri()?;
        if request.revision.is_modern()
            && let Some(found) = registry.skills.find(&uri, request.access())
        {
            return Ok(self.read_skill(&uri, &found)?.into());
        }
        let Some((entry, variables)) = registry.resource(&uri, request.context) else {
            return Err(unknown_resource(&uri, request.revision).into());
        };
        if !entry.item.requires.is_empty() {
            request.check_features(&entry.item.requires)?;
        }
        let retry = request.retry(self, || CallBinding::new("resources/read", &uri, "{}"))?;
        Ok(self.call_item(request, ReadResource { entry: entry.clone(), variables, uri, retry }))
    }

    /// Whether this client can read a resource with that URI.
    pub(super) fn is_resource(&self, request: &Request<'_>, registry: &Registry, uri: &str) -> bool {
        registry.resource(uri, request.context).is_some()
            || (request.revision.is_modern() && registry.skills.find(uri, request.access()).is_some())
    }

    pub(super) fn subscribe(&self, request: Request<'_>, registry: &Registry) -> Result<Reply, Reply> {
        let uri = request.uri()?;
        self.may_subscribe(&request, registry, &uri)?;
        let subscribed = request.context.session().is_some_and(|session| session.subscribe(&uri));
        if !subscribed {
            let text = "too many subscriptions\nend one with `resources/unsubscribe`";
            return Err(ProtocolError::internal(text).into());
        }
        Ok(ResultBody::Empty.into())
    }

    pub(super) fn unsubscribe(&self, request: Request<'_>) -> Result<Reply, Reply> {
        let uri = request.uri()?;
        if let Some(session) = request.context.session() {
            session.unsubscribe(&uri);
        }
        Ok(ResultBody::Empty.into())
    }

    /// Checks that this client may be notified of changes to a resource.
    ///
    /// # Errors
    /// The resource does not exist for this client, or its own check refuses.
    pub(super) fn may_subscribe(
        &self,
        request: &Request<'_>,
        registry: &Registry,
        uri: &str,
    ) -> Result<(), ProtocolError> {
        let revision = request.revision;
        let Some((entry, variables)) = registry.resource(uri, request.context) else {
            return Err(unknown_resource(uri, revision));
        };
        let Some(check) = entry.subscribe else { return Ok(()) };
        let text = |variable| match variable {
            TextArgument::One(text) => text,
            TextArgument::Many(parts) => parts.join("/"),
        };
        let variables = variables.into_iter().map(|(name, value)| (name, text(value))).collect();
        let subscription = Subscription { uri: uri.to_owned(), variables };
        let context = request.make_context(self, &entry.state, ClientRequestPolicy::Forbidden);
        let failure = match catch_panic(|| check(Some((&subscription, context))).outcome.unwrap_or(Ok(false)))
        {
            Ok(true) => return Ok(()),
            Ok(false) => {
                return Err(ProtocolError::invalid_params(format!("`{uri}` cannot be subscribed to"))
                    .with_data(json!({ "uri": uri })));
            }
            Err(failure) => failure,
        };
        let detailed = self.options().detailed_errors;
        let subject = ErrorContext { kind: "subscription to", name: &entry.item.name, detailed };
        Err(match failure.into_client_error(subject, revision) {
            ClientError::NotFound => unknown_resource(uri, revision),
            error => into_protocol_error(error),
        })
    }
}

/// One `resources/read`.
struct ReadResource<'a> {
    entry: Arc<ResourceEntry>,
    variables: UriVariables,
    uri: Cow<'a, str>,
    retry: Option<Arc<Retry>>,
}

impl ItemCall for ReadResource<'_> {
    type Output = ResourceResult;
    type Interruption = InputRequired;
    type Owned = ReadResource<'static>;

    fn into_owned(self) -> ReadResource<'static> {
        let Self { entry, variables, uri, retry } = self;
        ReadResource { entry, variables, uri: Cow::Owned(uri.into_owned()), retry }
    }

    fn name(&self) -> &str {
        &self.uri
    }

    fn state(&self) -> &Arc<Extensions> {
        &self.entry.state
    }

    fn client_request_policy(&self) -> ClientRequestPolicy {
        ClientRequestPolicy::Allowed(self.retry.clone())
    }

    fn start(
        &self,
        forwards_events: bool,
        context: &dyn Fn() -> Context,
    ) -> Invocation<ResourceResult, InputRequired> {
        start_with_strings(&self.entry.function, &self.variables, forwards_events, context)
    }

    fn reply(&self, server: &Server, revision: Revision, result: Result<ResourceResult, Failure>) -> Reply {
        let (entry, uri) = (&self.entry, &*self.uri);
        let failure = match result {
            Ok(result) => {
                // a result that depends on the client's input is valid for this client and this time only
                let cache = entry.cache.filter(|_| self.retry.is_none());
                let cache = cache.map_or(CacheHints::NONE, |(ttl, public)| CacheHints {
                    ttl: Duration::from_millis(ttl),
                    public: public && !server.options().tells_callers_apart(),
                });
                let source = ReadSource::Resource(entry.clone());
                return ResultBody::Resource { result, uri: uri.into(), source, cache }.into();
            }
            Err(failure) => failure,
        };
        let detailed = server.options().detailed_errors;
        let subject = ErrorContext { kind: "resource", name: &entry.item.name, detailed };
        match failure.into_client_error(subject, revision) {
            ClientError::Arguments(report) => {
                ProtocolError::invalid_params(format!("invalid URI `{uri}`: {report}"))
                    .with_data(json!({ "uri": uri }))
            }
            ClientError::NotFound => unknown_resource(uri, revision),
            error => into_protocol_error(error),
        }
        .into()
    }

    fn interrupt(
        self,
        server: &Server,
        _: Revision,
        input: InputRequired,
        running: Running<ResourceResult>,
    ) -> Response {
        let bound = CallBinding::new("resources/read", &self.uri, "{}");
        server.input_required(&bound, running.context(), input).into()
    }
}

/// A template, and the instances that its `list` function returned.
type TemplateInstances = (Arc<ResourceEntry>, Vec<ListedResource>);

/// One `resources/list` of a server with templates that list their instances.
struct ListInstances {
    /// The plain resources, which come first.
    entries: Vec<Vec<u8>>,
    templates: Vec<(Arc<ResourceEntry>, ListFn)>,
    /// The contexts of the templates' `list` functions, since each template has its own state.
    contexts: Vec<Context>,
    start: usize,
    scope: CursorScope,
    state: Arc<Extensions>,
}

impl ItemCall for ListInstances {
    type Output = Vec<TemplateInstances>;
    type Interruption = Infallible;
    type Owned = Self;

    fn into_owned(self) -> Self {
        self
    }

    fn name(&self) -> &str {
        "resources"
    }

    fn state(&self) -> &Arc<Extensions> {
        &self.state
    }

    fn start(
        &self,
        _: bool,
        context: &dyn Fn() -> Context,
    ) -> Invocation<Vec<TemplateInstances>, Infallible> {
        let functions: Vec<_> = self.templates.iter().cloned().zip(self.contexts.iter().cloned()).collect();
        let list_all = async move {
            let mut lists: Vec<TemplateInstances> = Vec::with_capacity(functions.len());
            for ((entry, list), context) in functions {
                if let Some(instances) = list(Some(context)).outcome {
                    lists.push((entry, instances.await?));
                }
            }
            Ok(lists)
        };
        invoke::start_with(|| Ok(MaybeFuture::Pending(Box::pin(list_all))), &context(), None)
    }

    fn reply(
        &self,
        server: &Server,
        revision: Revision,
        result: Result<Vec<TemplateInstances>, Failure>,
    ) -> Reply {
        let failure = match result {
            Ok(lists) => {
                let mut entries = self.entries.clone();
                for (entry, instances) in lists {
                    entries.extend(instances.iter().map(|instance| {
                        let mut out = Vec::with_capacity(128);
                        entry.write_instance(&mut out, revision, instance);
                        out
                    }));
                }
                let page = page_of(&entries, self.start, server.options().lists.page_size);
                let page = page.ok_or_else(|| Reply::from(invalid_cursor()));
                let key = ListKind::Resources.key();
                return page
                    .and_then(|page| server.page_reply(key, page.into(), || self.scope.clone()))
                    .unwrap_or_else(|refusal| refusal);
            }
            Err(failure) => failure,
        };
        let detailed = server.options().detailed_errors;
        let subject = ErrorContext { kind: "list of", name: "resources", detailed };
        match failure.into_client_error(subject, revision) {
            // the client has not sent any
            ClientError::Arguments(report) => ProtocolError::internal(report),
            error => into_protocol_error(error),
        }
        .into()
    }

    fn interrupt(
        self,
        _: &Server,
        _: Revision,
        interruption: Infallible,
        _: Running<Vec<TemplateInstances>>,
    ) -> Response {
        match interruption {}
    }
}

/// `-32602` in 2026-07-28, `-32002` before.
fn unknown_resource(uri: &str, revision: Revision) -> ProtocolError {
    let code = if revision.is_modern() { protocol::INVALID_PARAMS } else { protocol::RESOURCE_NOT_FOUND };
    ProtocolError::new(code, format!("unknown resource `{uri}`")).with_data(json!({ "uri": uri }))
}
