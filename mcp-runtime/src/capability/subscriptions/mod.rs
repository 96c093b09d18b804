//! `resources/subscribe` and `resources/unsubscribe` of revisions before 2026-07-28.

use std::sync::Arc;

use crate::{
    capability::resources::Resources,
    core::{
        dispatch::{Reply, Request, Response, ResultBody},
        server::{Capability, Registry, Server},
    },
};

/// Subscriptions of legacy sessions; open on a server that has a handle, which reports the changes.
#[derive(Default)]
pub(crate) struct Subscriptions;

impl Capability for Subscriptions {
    fn methods(&self) -> &'static [&'static str] {
        &["resources/subscribe", "resources/unsubscribe"]
    }

    fn answer(
        self: Arc<Self>,
        server: &Server,
        registry: &Registry,
        request: Request<'_>,
    ) -> Result<Response, Reply> {
        let unknown = || Reply::unknown_method(request.method);
        let session = request.context.session().ok_or_else(unknown)?;
        if request.method == "resources/unsubscribe" {
            let uri = request.uri()?;
            session.unsubscribe(&uri);
            return Ok(Reply::from(ResultBody::Empty).into());
        }
        let resources = registry.capabilities.get::<Resources>().ok_or_else(unknown)?;
        resources.subscribe(server, request)
    }
}
