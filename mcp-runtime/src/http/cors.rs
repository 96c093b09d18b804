//! What browsers want to hear before a page of an admitted origin may read an answer. The endpoint adds it to every
//! response to such a page.

use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use super::reply::{Reply, empty};

/// Lets the page at `origin` read a response.
pub(super) fn expose(headers: &mut HeaderMap, origin: &HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate"),
    );
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
}

/// Answers a preflight request; its origin has been admitted.
pub(super) fn preflight(request: &HeaderMap, allow: &'static str) -> Response<Reply> {
    let mut response = empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, HeaderValue::from_static(allow));
    if request.contains_key(header::ORIGIN) {
        let methods = HeaderValue::from_static("POST, GET, DELETE");
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        // a tool's `Mcp-Param-*` headers can have any name
        if let Some(wanted) = request.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
    }
    response
}
