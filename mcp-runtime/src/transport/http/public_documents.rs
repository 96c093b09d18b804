//! Answers requests for documents that everyone may read, also pages of every origin: `GET`, `HEAD`, preflights and
//! revalidation. They are the same for every request, and do not change while the server runs.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, request::Parts};
use sha2::{Digest as _, Sha256};

use super::{
    headers::ProtocolHeaders,
    http_error::HttpError,
    request_connection::RequestConnection,
    response_body::{ResponseBody, charge_response, empty_response},
    service::{HttpHandler, Route},
};
use crate::core::{
    config::{CARD_SUFFIX, HttpOptions},
    server::Server,
};

/// How long a copy of a document is fresh.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("public, max-age=3600");
/// Leads from the card to the catalog.
const LINK: &str = "</.well-known/ai-catalog.json>; rel=\"ai-catalog\"; type=\"application/ai-catalog+json\"";
const ALLOW: &str = "GET, HEAD, OPTIONS";

/// A document, such as the server card.
pub(super) struct PublicDocument {
    pub(super) path: String,
    media_type: HeaderValue,
    etag: HeaderValue,
    body: Vec<u8>,
}

impl PublicDocument {
    /// Those of a server with these options, the card first.
    pub(super) fn all(options: &HttpOptions) -> Vec<Self> {
        let documents = options.card.iter().flat_map(|card| &card.documents);
        let documents = documents.map(|(path, media_type, body)| Self {
            path: path.clone(),
            media_type: HeaderValue::from_static(media_type),
            etag: etag(body),
            body: body.clone(),
        });
        documents.collect()
    }

    fn answer(&self, request: &Parts) -> Response<ResponseBody> {
        let mut response = match request.method {
            Method::GET | Method::HEAD if is_fresh(&request.headers, &self.etag) => {
                empty_response(StatusCode::NOT_MODIFIED)
            }
            // without its body, as an answer to `HEAD`
            Method::GET | Method::HEAD => {
                let mut response = Response::new(ResponseBody::complete(self.body.clone()));
                response.headers_mut().insert(header::CONTENT_TYPE, self.media_type.clone());
                response
            }
            Method::OPTIONS => {
                let mut response = empty_response(StatusCode::NO_CONTENT);
                response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(ALLOW));
                return response;
            }
            _ => return HttpError::method_not_allowed(ALLOW).into(),
        };
        let headers = response.headers_mut();
        headers.insert(header::ETAG, self.etag.clone());
        headers.insert(header::CACHE_CONTROL, CACHE_CONTROL);
        response
    }
}

impl Server {
    /// A warning if the endpoint seems not to be where the card says.
    pub(super) fn warning_of_card(&self) -> Option<String> {
        let options = &self.options().http;
        let card = options.card.as_ref().filter(|card| !options.is_at(&card.url))?;
        Some(format!(
            "the server card says that the endpoint is at `{}`, and its path here is `{}`\n\
             write the whole URL of the endpoint in `.info(|info| info.public_url(..))`",
            card.url, options.path
        ))
    }
}

impl HttpHandler {
    /// The document that the endpoint answers at a path below the one that it is mounted at. Routers remove that prefix; an
    /// endpoint at the path of a card is not hidden by its own card.
    pub(super) fn mounted_document(&self, path: &str) -> Option<Route> {
        let card = self.documents.first()?;
        let is_card = path == CARD_SUFFIX && !card.path.ends_with("/server-card/server-card");
        let number =
            if is_card { Some(0) } else { self.documents.iter().position(|known| known.path == path) };
        number.map(Route::Document)
    }

    /// Answers a request for the document of this number: pages of every origin may read it, and it needs no token.
    #[cold]
    pub(super) async fn document(
        &self,
        connection: &Arc<RequestConnection>,
        headers: &ProtocolHeaders<'_>,
        number: usize,
    ) -> Response<ResponseBody> {
        let (endpoint, parts) = (&self.endpoint, connection.parts());
        // pages of every origin may read it
        let check_host = |()| self.guard.check_authorities(parts, headers).map(drop);
        let checked = endpoint.check_sender(connection).and_then(check_host);
        let admitted = match checked {
            Ok(()) => endpoint.take_rate(connection).await,
            refused => refused,
        };
        let mut response = match (admitted, self.documents.get(number)) {
            (Err(error), _) => error.into(),
            (Ok(()), None) => empty_response(StatusCode::NOT_FOUND),
            (Ok(()), Some(document)) => {
                let mut response = document.answer(parts);
                for (name, value) in [
                    (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
                    (header::ACCESS_CONTROL_ALLOW_METHODS, "GET"),
                    (header::ACCESS_CONTROL_ALLOW_HEADERS, "Content-Type, If-None-Match"),
                    (header::ACCESS_CONTROL_EXPOSE_HEADERS, "ETag"),
                    (header::LINK, LINK),
                ] {
                    response.headers_mut().insert(name, HeaderValue::from_static(value));
                }
                response
            }
        };
        charge_response(&mut response, connection, None);
        if response.status().as_u16() >= 400 {
            self.record(connection, &response);
        }
        response
    }
}

/// A validator of these bytes.
fn etag(body: &[u8]) -> HeaderValue {
    let digest = Sha256::digest(body);
    let short = digest.get(..16).unwrap_or_default();
    let quoted = format!("\"{}\"", URL_SAFE_NO_PAD.encode(short));
    HeaderValue::try_from(quoted).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Whether the client has the document already (RFC 9110, section 13.1.2).
fn is_fresh(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let etag = etag.to_str().unwrap_or_default();
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    known
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == etag)
}
