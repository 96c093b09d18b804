//! `tools/list`, `resources/list`, `resources/templates/list` and `prompts/list`.

use std::{borrow::Cow, convert::Infallible, sync::Arc};

use super::{
    MayAsk, Request,
    call::ItemCall,
    pagination::{View, bad_cursor},
    response::{Reply, Response, ResultBody},
};
use crate::{
    arguments::MaybeFuture,
    context::Context,
    error::Failure,
    extensions::Extensions,
    invoke::{self, ClientError, ErrorContext, Invocation, Running},
    jsonrpc::{ProtocolError, text_of},
    protocol::Revision,
    resource::{ListFn, ListedResource, ResourceEntry},
    server::{ListKind, Page, Registry, Server, page_of},
};

/// A template, and what its `list` function gave.
type Instances = (Arc<ResourceEntry>, Vec<ListedResource>);

/// `resources/list` where templates list their instances beside the plain resources.
struct ListInstances {
    /// The plain resources.
    entries: Vec<Vec<u8>>,
    listers: Vec<(Arc<ResourceEntry>, ListFn)>,
    start: usize,
    view: View,
    /// What the functions' contexts have in common; each has its own state.
    contexts: Vec<Context>,
    state: Arc<Extensions>,
}

impl Server {
    pub(super) fn list(
        &self,
        request: Request<'_>,
        registry: &Registry,
        kind: ListKind,
    ) -> Result<Response, Reply> {
        let cursor = request.cursor()?;
        let view = || View::new(self, &request, kind.key());
        if kind == ListKind::Resources && registry.resources.iter().any(|r| r.list.is_some()) {
            let view = view();
            let start = self.start_of(cursor.as_deref(), &view)?;
            return Ok(self.list_instances(request, registry, start, view));
        }
        let size = self.options().page_size;
        if cursor.is_none() && request.access().is_full() {
            let page = registry.first_page(kind, request.revision, size);
            return Ok(self.page_reply(kind.key(), page, view)?.into());
        }
        let view = view();
        let entries = registry.entries(kind, request.revision, request.access());
        let start = self.start_of(cursor.as_deref(), &view)?;
        let page = page_of(&entries, start, size).ok_or_else(bad_cursor)?;
        Ok(self.page_reply(kind.key(), page.into(), || view)?.into())
    }

    /// A page, under that member of the result.
    pub(super) fn page_reply(
        &self,
        key: &'static str,
        page: Arc<Page>,
        view: impl FnOnce() -> View,
    ) -> Result<Reply, Reply> {
        let cursor = self.cursor_after(&page, view)?.map(str::to_owned);
        Ok(ResultBody::List { key, page, cursor, cache: self.cache_hints() }.into())
    }

    fn list_instances(
        &self,
        request: Request<'_>,
        registry: &Registry,
        start: usize,
        view: View,
    ) -> Response {
        let entries = registry.entries(ListKind::Resources, request.revision, request.access());
        let visible = registry.resources.iter().filter(|r| request.access().allows(&r.item.scopes));
        let listers: Vec<_> = visible.filter_map(|r| Some((r.clone(), r.list?))).collect();
        let contexts =
            listers.iter().map(|(r, _)| request.make_context(self, &r.state, MayAsk::No)).collect();
        let call = ListInstances { entries, listers, start, view, contexts, state: Arc::default() };
        self.perform(request, call)
    }
}

impl ItemCall for ListInstances {
    type Output = Vec<Instances>;
    type Interruption = Infallible;
    type Owned = Self;

    fn into_owned(self) -> Self {
        self
    }

    fn name(&self) -> &str {
        "resources"
    }

    fn arguments(&self) -> &str {
        "{}"
    }

    fn state(&self) -> &Arc<Extensions> {
        &self.state
    }

    fn may_ask(&self) -> MayAsk {
        MayAsk::No
    }

    fn start(&self, _: bool, context: &dyn Fn() -> Context) -> Invocation<Vec<Instances>, Infallible> {
        let functions: Vec<_> = self.listers.iter().cloned().zip(self.contexts.iter().cloned()).collect();
        let gather = async move {
            let mut found: Vec<Instances> = Vec::with_capacity(functions.len());
            for ((entry, list), context) in functions {
                if let Some(instances) = list(Some(context)).outcome {
                    found.push((entry, instances.await?));
                }
            }
            Ok(found)
        };
        invoke::start_with(|| Ok(MaybeFuture::Pending(Box::pin(gather))), &context(), None)
    }

    fn reply(&self, server: &Server, revision: Revision, result: Result<Vec<Instances>, Failure>) -> Reply {
        let failure = match result {
            Ok(found) => {
                let mut entries = self.entries.clone();
                for (entry, instances) in found {
                    entries.extend(instances.iter().map(|instance| {
                        let mut out = Vec::with_capacity(128);
                        entry.write_instance(&mut out, revision, instance);
                        out
                    }));
                }
                let page = page_of(&entries, self.start, server.options().page_size);
                let page = page.ok_or_else(|| Reply::from(bad_cursor()));
                let key = ListKind::Resources.key();
                return page
                    .and_then(|page| server.page_reply(key, page.into(), || self.view.clone()))
                    .unwrap_or_else(|refusal| refusal);
            }
            Err(failure) => failure,
        };
        let of =
            ErrorContext { kind: "list of", name: "resources", detailed: server.options().detailed_errors };
        match failure.into_client_error(of, revision) {
            ClientError::Arguments(text) | ClientError::Message(text, _) => ProtocolError::internal(text),
            ClientError::NotFound => ProtocolError::internal("nothing was found"),
            ClientError::Protocol(error) => error,
        }
        .into()
    }

    fn interrupted(self, _: &Server, _: Revision, why: Infallible, _: Running<Vec<Instances>>) -> Response {
        match why {}
    }
}

impl<'a> Request<'a> {
    /// The cursor of a request for a list.
    pub(super) fn cursor(&self) -> Result<Option<Cow<'a, str>>, ProtocolError> {
        match self.params.cursor.filter(|raw| raw.get() != "null") {
            None => Ok(None),
            Some(raw) => text_of(raw)
                .map(Some)
                .ok_or_else(|| ProtocolError::invalid_params("`cursor` is not a string")),
        }
    }
}
