//! CORS: lets web pages of allowed origins send requests and read their responses.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use super::response_body::{ResponseBody, empty_response};

/// Lets a page of an allowed origin read a response.
pub(super) fn expose_response(headers: &mut HeaderMap, origin: &HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce"),
    );
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
}

/// The response to a preflight request of an allowed origin.
pub(super) fn preflight_response(request: &HeaderMap, allow: &'static str) -> Response<ResponseBody> {
    let mut response = empty_response(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, HeaderValue::from_static(allow));
    if request.contains_key(header::ORIGIN) {
        let methods = HeaderValue::from_static("POST, GET, DELETE");
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        // a tool's `Mcp-Param-*` headers can have any name
        if let Some(requested) = request.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, requested.clone());
        }
    }
    response
}
