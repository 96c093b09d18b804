//! Bodies of responses, without the feature `client`: as they are sent, since nothing asks for compressed ones.

use http::HeaderMap;
use hyper::body::{Body as _, Bytes, Incoming};

use super::http_client::{ExchangeError, receive};

/// The body of a response.
pub(super) struct ResponseBody(Incoming);

impl ResponseBody {
    pub(super) fn new(_headers: &HeaderMap, incoming: Incoming) -> Self {
        Self(incoming)
    }

    /// Its length, if the head says it.
    pub(super) fn length(&self) -> Option<u64> {
        self.0.size_hint().exact()
    }

    /// The next part; `None` at the end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, ExchangeError> {
        receive(&mut self.0).await
    }
}
