//! Requests, from the addresses that may be connected to up to whole documents.

mod connector;
mod document;
mod http_client;
#[cfg_attr(not(feature = "client"), path = "no_proxies.rs")]
mod proxies;
mod reach;
#[cfg_attr(not(feature = "client"), path = "plain_body.rs")]
mod response_body;

pub use connector::{LookUp, LookUpFuture, Network, system_look_up};
pub use document::{FetchError, Fetcher, MAX_DOCUMENT, issuer_metadata_urls};
pub use http_client::{ExchangeError, HttpClient, HttpRequest, HttpResponse, user_agent};
pub use reach::Reach;
