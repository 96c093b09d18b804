//! Answers requests for documents that everyone may read, also pages of every origin: `GET`, `HEAD`, preflights and
//! revalidation. They are the same for every request, and do not change while the server runs.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, request::Parts};
use sha2::{Digest as _, Sha256};

use super::CARD_SUFFIX;
use crate::core::config::Documents;

/// How long a copy of a document is fresh.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("public, max-age=3600");
/// Leads from the card to the catalog.
const LINK: &str = "</.well-known/ai-catalog.json>; rel=\"ai-catalog\"; type=\"application/ai-catalog+json\"";
const ALLOW: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// The card, and the catalog at both of its paths.
#[derive(Debug)]
pub(super) struct PublicDocuments {
    paths: [String; 3],
    documents: [PublicDocument; 3],
    warning: Option<String>,
}

#[derive(Debug)]
struct PublicDocument {
    media_type: HeaderValue,
    etag: HeaderValue,
    body: Vec<u8>,
}

impl PublicDocuments {
    pub(super) fn new(
        paths: [String; 3],
        documents: [(&'static str, Vec<u8>); 3],
        warning: Option<String>,
    ) -> Self {
        let documents = documents.map(|(media_type, body)| PublicDocument {
            media_type: HeaderValue::from_static(media_type),
            etag: etag(&body),
            body,
        });
        Self { paths, documents, warning }
    }
}

impl Documents for PublicDocuments {
    fn paths(&self) -> &[String] {
        &self.paths
    }

    fn find_mounted(&self, path: &str) -> Option<usize> {
        let [card, ..] = &self.paths;
        // routers remove the prefix that they mount a service under; an endpoint at that path is not hidden by its card
        let is_card = path == CARD_SUFFIX && !card.ends_with("/server-card/server-card");
        if is_card { Some(0) } else { self.paths.iter().position(|known| known == path) }
    }

    fn answer(&self, document: usize, request: &Parts) -> Response<Vec<u8>> {
        let mut response = match self.documents.get(document) {
            Some(document) => document.answer(request),
            None => empty(StatusCode::NOT_FOUND),
        };
        let headers = response.headers_mut();
        for (name, value) in [
            (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
            (header::ACCESS_CONTROL_ALLOW_METHODS, "GET"),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, "Content-Type, If-None-Match"),
            (header::ACCESS_CONTROL_EXPOSE_HEADERS, "ETag"),
            (header::LINK, LINK),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }

    fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }
}

impl PublicDocument {
    fn answer(&self, request: &Parts) -> Response<Vec<u8>> {
        let mut response = match request.method {
            Method::GET | Method::HEAD if is_fresh(&request.headers, &self.etag) => {
                empty(StatusCode::NOT_MODIFIED)
            }
            Method::GET => Response::new(self.body.clone()),
            Method::HEAD => {
                let mut response = empty(StatusCode::OK);
                response.headers_mut().insert(header::CONTENT_LENGTH, self.body.len().into());
                response
            }
            _ => {
                let is_preflight = request.method == Method::OPTIONS;
                let status =
                    if is_preflight { StatusCode::NO_CONTENT } else { StatusCode::METHOD_NOT_ALLOWED };
                let mut response = empty(status);
                response.headers_mut().insert(header::ALLOW, ALLOW);
                return response;
            }
        };
        let is_sent = response.status() == StatusCode::OK;
        let headers = response.headers_mut();
        headers.insert(header::ETAG, self.etag.clone());
        headers.insert(header::CACHE_CONTROL, CACHE_CONTROL);
        if is_sent {
            headers.insert(header::CONTENT_TYPE, self.media_type.clone());
        }
        response
    }
}

fn empty(status: StatusCode) -> Response<Vec<u8>> {
    let mut response = Response::new(Vec::new());
    *response.status_mut() = status;
    response
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
