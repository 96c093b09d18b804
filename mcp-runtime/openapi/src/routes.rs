//! Routes of the program itself, called in this process: their layers, extractors and authorization run as for requests
//! from the network.

use axum::{Router, body::Body};
use http::{HeaderMap, HeaderName, header};
use mcp_runtime::{Context, ToolError};
use tower_service::Service as _;

use crate::{
    api::content_type,
    document::shown,
    request::{Request, header_value},
    response::Response,
};

/// Routes, and the headers of the client's request that they get.
pub(crate) struct Routes {
    router: Router,
    forwarded: Vec<HeaderName>,
}

impl Routes {
    pub(crate) fn new(router: Router) -> Self {
        Self { router, forwarded: Vec::new() }
    }

    /// # Errors
    /// It is not the name of a header that says what the client wants.
    pub(crate) fn forward(&mut self, name: &str) -> Result<(), String> {
        let header = HeaderName::try_from(name)
            .map_err(|_| format!("`{}` is not the name of a header", shown(name)))?;
        if [header::HOST, header::CONTENT_LENGTH, header::CONTENT_TYPE, header::TRANSFER_ENCODING]
            .contains(&header)
        {
            return Err(format!("`{header}` says what the client's request is, not that of the routes"));
        }
        self.forwarded.push(header);
        Ok(())
    }

    pub(crate) fn forwarded(&self) -> &[HeaderName] {
        &self.forwarded
    }

    /// Sets the headers of the client's request, which are not arguments.
    pub(crate) fn forward_headers(
        &self,
        context: &Context,
        headers: &mut HeaderMap,
    ) -> Result<(), ToolError> {
        for name in &self.forwarded {
            if let Some(value) = context.header(name.as_str()) {
                let mut value = header_value(name.as_str(), value)?;
                value.set_sensitive(*name == header::AUTHORIZATION);
                headers.insert(name, value);
            }
        }
        Ok(())
    }

    /// The response of the routes; the request has the caller in its extensions.
    ///
    /// # Errors
    /// It is too large.
    pub(crate) async fn call(
        &self,
        request: Request,
        context: &Context,
        max_response: usize,
    ) -> Result<Response, ToolError> {
        let Request { method, path, query, headers, body, .. } = request;
        let uri = if query.is_empty() { path } else { format!("{path}?{query}") };
        let mut request = http::Request::builder()
            .method(method)
            .uri(uri)
            .body(Body::from(body))
            .map_err(ToolError::private)?;
        *request.headers_mut() = headers;
        if let Some(caller) = context.caller() {
            request.extensions_mut().insert(caller.clone());
        }
        let response = self.router.clone().call(request).await.map_err(ToolError::private)?;
        let (head, body) = response.into_parts();
        let too_large = |_| ToolError::new(format!("the API answered more than {max_response} bytes"));
        let body = axum::body::to_bytes(body, max_response).await.map_err(too_large)?;
        Ok(Response { status: head.status, content_type: content_type(&head.headers), body: body.into() })
    }
}
