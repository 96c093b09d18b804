//! Callers that are authenticated, and what clients read about that.

use http::{HeaderName, HeaderValue, Response, StatusCode, Uri, header};

use super::{
    endpoint::Endpoint,
    http_error::HttpError,
    request_connection::RequestConnection,
    response_body::{ResponseBody, empty_response, json_response},
    service::HttpHandler,
};
use crate::{
    auth::{Authenticator, RefusedCaller},
    core::{
        admission::whole_seconds,
        config::HttpOptions,
        observer::RefusedRequest,
        protocol::{INTERNAL_ERROR, INVALID_REQUEST},
        server::Server,
    },
};

impl Endpoint {
    /// Finds out who calls.
    ///
    /// # Errors
    /// The caller is not authenticated.
    pub(super) async fn authenticate(
        &self,
        authenticator: &Authenticator,
        connection: &RequestConnection,
    ) -> Result<(), HttpError> {
        let HttpOptions { behind_proxy, client_address, trusted_proxies, .. } = &self.options;
        // the address of a client may be that of a proxy, which all clients share
        let is_shared = *behind_proxy && client_address.is_none() && trusted_proxies.is_empty();
        let peer = connection.sender().peer.as_ref().filter(|_| !is_shared);
        let address = peer.map(|peer| &peer.owner);
        let verified = authenticator.start(connection.parts(), address).get().await;
        connection.set_caller(verified.map_err(HttpError::refused)?);
        Ok(())
    }
}

impl HttpError {
    /// The caller is not authenticated.
    fn refused(refused: RefusedCaller) -> Self {
        let RefusedCaller { message, refusal, scopes, caller, challenges, nonce, retry_after } = refused;
        let is_fault = refusal.status().is_client_error() && retry_after.is_none();
        let code = if is_fault { INVALID_REQUEST } else { INTERNAL_ERROR };
        let mut error = Self::new(refusal, code, message);
        error.refused = RefusedRequest { scopes, caller, ..error.refused };
        if let Some(wait) = retry_after {
            error = error.retry_after(whole_seconds(wait));
        }
        for challenge in challenges.iter().filter_map(|text| HeaderValue::from_str(text).ok()) {
            error = error.with(header::WWW_AUTHENTICATE, challenge);
        }
        match nonce.and_then(|nonce| HeaderValue::from_str(&nonce).ok()) {
            Some(nonce) => error.with(HeaderName::from_static("dpop-nonce"), nonce),
            None => error,
        }
    }
}

impl HttpHandler {
    /// The metadata of the protected resource, which is not secret.
    pub(super) fn resource_metadata(&self) -> Response<ResponseBody> {
        let metadata = self.endpoint.options.authenticator.as_ref().and_then(|auth| auth.metadata());
        let Some(metadata) = metadata else { return empty_response(StatusCode::NOT_FOUND) };
        let mut response = json_response(StatusCode::OK, metadata.json.clone());
        let cache = HeaderValue::from_static("public, max-age=300");
        response.headers_mut().insert(header::CACHE_CONTROL, cache);
        response
    }
}

impl Server {
    /// A warning if the endpoint seems not to be where clients are told that the resource is.
    pub(super) fn warning_of_resource(&self) -> Option<String> {
        let options = &self.options().http;
        let resource = options.authenticator.as_ref()?.metadata()?.resource();
        if options.is_at(resource) {
            return None;
        }
        let named = resource.parse().unwrap_or_else(|_| Uri::default());
        Some(format!(
            "clients are told that the resource is `{resource}`, and the endpoint is at `{}`\n\
             write the whole URL of the endpoint in `.resource(..)`, or serve it there with `.http(|http| http.path(\"{}\"))`",
            options.path,
            named.path()
        ))
    }
}
