//! The subscribers that may be notified of changes to a resource.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use serde_json::json;

use super::{Resources, Subscription, methods::unknown_resource};
use crate::core::{
    arguments::TextArgument,
    changes::Filter,
    client_error::ClientError,
    connection::{AccessError, SubscribeError, check_uri},
    context::Context,
    dispatch::{ClientRequestPolicy, Reply, Request, Response, ResultBody, into_protocol_error},
    extensions::Extensions,
    invoke::catch_panic,
    jsonrpc::ProtocolError,
    protocol::normalize_uri,
    server::Server,
};

impl Resources {
    /// Answers `resources/subscribe`.
    pub(crate) fn subscribe(&self, server: &Server, request: Request<'_>) -> Result<Response, Reply> {
        let uri = request.uri()?;
        check_uri(&uri).map_err(ProtocolError::from)?;
        self.check_scopes(server, &request, [&*uri])?;
        self.may_subscribe(server, &request, &uri, &mut Vec::new())?;
        let session =
            request.context.session().ok_or(SubscribeError::NoSession).map_err(ProtocolError::from)?;
        session.subscribe(&uri).map_err(ProtocolError::from)?;
        Ok(Reply::from(ResultBody::Empty).into())
    }

    /// Subscribes a filter to those resources that the client may subscribe to.
    pub(super) fn subscribe_to<'u>(
        &self,
        server: &Server,
        request: &Request<'_>,
        requested: &'u [String],
        filter: &Filter,
    ) -> Result<Vec<&'u str>, Reply> {
        self.check_scopes(server, request, requested.iter().map(String::as_str))?;
        let (mut uris, mut contexts, mut accepted) = (HashSet::new(), Vec::new(), Vec::new());
        for uri in requested {
            // two spellings of one URI are one subscription
            if uris.insert(normalize_uri(uri))
                && self.may_subscribe(server, request, uri, &mut contexts).is_ok()
            {
                filter.subscribe(uri).map_err(|error| Reply::unavailable(error.to_string()))?;
                accepted.push(&**uri);
            } else {
                tracing::debug!(uri, "a resource subscription was not accepted");
            }
        }
        Ok(accepted)
    }

    /// Checks that the caller does not lack scopes of resources that it sees.
    ///
    /// # Errors
    /// It does; the reply names the scopes of all of them.
    fn check_scopes<'u>(
        &self,
        server: &Server,
        request: &Request<'_>,
        uris: impl IntoIterator<Item = &'u str>,
    ) -> Result<(), Reply> {
        if request.access().is_full() {
            return Ok(());
        }
        let mut missing = Vec::new();
        for uri in uris {
            if let Err(AccessError::MissingScopes(scopes)) = self.find(uri, request.access()) {
                missing.extend(scopes.iter().cloned());
            }
        }
        if missing.is_empty() { Ok(()) } else { Err(server.insufficient_scope(&missing)) }
    }

    /// Checks that this client may be notified of changes to a resource. The contexts of one request, by the state of
    /// the resources, are made once: each copies the request's `_meta`.
    ///
    /// # Errors
    /// The resource does not exist for this client, or its own check refuses.
    fn may_subscribe(
        &self,
        server: &Server,
        request: &Request<'_>,
        uri: &str,
        contexts: &mut Vec<(Arc<Extensions>, Context)>,
    ) -> Result<(), ProtocolError> {
        let revision = request.revision;
        let Ok((entry, variables)) = self.find(uri, request.access()) else {
            return Err(unknown_resource(uri, revision));
        };
        let Some(check) = &entry.subscribe else { return Ok(()) };
        let text = |variable| match variable {
            TextArgument::One(text) => text.into_owned(),
            TextArgument::Listed(text, _) => text,
            TextArgument::Many(parts) | TextArgument::Repeated(parts) => parts.join("/"),
        };
        let mut subscription = Subscription { uri: uri.to_owned(), variables: BTreeMap::new() };
        for (name, value) in variables {
            subscription.variables.insert(name.into_owned(), text(value));
        }
        let known = contexts.iter().find(|(state, _)| Arc::ptr_eq(state, &entry.state));
        let context = match known {
            Some((_, context)) => context.clone(),
            None => {
                let context = request.make_context(server, &entry.state, ClientRequestPolicy::Forbidden);
                contexts.push((entry.state.clone(), context.clone()));
                context
            }
        };
        let failure = match catch_panic(|| check(subscription, context)) {
            Ok(true) => return Ok(()),
            Ok(false) => {
                return Err(ProtocolError::invalid_params(format!("`{uri}` cannot be subscribed to"))
                    .with_data(json!({ "uri": uri })));
            }
            Err(failure) => failure,
        };
        let subject = server.error_context("subscription to", &entry.item.name);
        Err(match failure.into_client_error(subject, revision) {
            ClientError::NotFound => unknown_resource(uri, revision),
            error => into_protocol_error(error),
        })
    }
}
