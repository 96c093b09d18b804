//! What all requests to one endpoint share: the server, its options and limits, and where a request comes from.

use std::{any::Any, sync::Arc};

use http::request::Parts;

use super::{
    budgets::{Budgets, MessagePermit},
    connection::RequestConnection,
    headers::ProtocolHeaders,
};
use crate::{
    config::HttpOptions,
    connection::{ClientConnection, ClientData, Principal, RequestContext},
    extensions::Extensions,
    server::Server,
};
use tokio_util::sync::CancellationToken;

/// One server, served at one path.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) server: Server,
    pub(super) options: HttpOptions,
    pub(super) budgets: Budgets,
    no_extensions: Arc<Extensions>,
    /// Fires when the server stops.
    pub(super) shutdown: CancellationToken,
}

/// One POST whose body has been read.
pub(super) struct PostRequest<'a> {
    pub(super) connection: &'a Arc<RequestConnection>,
    pub(super) headers: &'a ProtocolHeaders<'a>,
    pub(super) caller: Option<Arc<Principal>>,
    pub(super) permit: MessagePermit,
}

impl Endpoint {
    pub(super) fn new(server: &Server) -> Arc<Self> {
        let options = server.options().http.clone();
        Arc::new(Self {
            server: server.clone(),
            budgets: Budgets::new(&options),
            no_extensions: Arc::default(),
            shutdown: CancellationToken::default(),
            options,
        })
    }

    /// The caller, as the head of a request identifies it.
    pub(super) fn caller(&self, parts: &Parts) -> Option<Arc<Principal>> {
        self.options.caller.as_ref().and_then(|find| find(parts)).map(Arc::new)
    }

    /// The context of a request.
    pub(super) fn context(
        &self,
        request: &RequestConnection,
        connection: Arc<dyn ClientConnection>,
        caller: Option<Arc<Principal>>,
        client: ClientData,
    ) -> RequestContext {
        RequestContext {
            connection: Some(connection),
            extensions: self.extensions(request),
            caller,
            authenticated: self.options.caller.is_some(),
            client,
        }
    }

    /// The declared values that middleware has put into a request.
    fn extensions(&self, request: &RequestConnection) -> Arc<Extensions> {
        let types = &self.server.options().http.request_types;
        if types.is_empty() {
            return self.no_extensions.clone();
        }
        let mut extensions = Extensions::default();
        let source: &dyn Any = &request.parts().extensions;
        for declared in types {
            (declared.extract)(source, &mut extensions);
        }
        Arc::new(extensions)
    }
}
