//! HTTP requests that this crate makes: those of clients, and those for what authorization servers publish and say of
//! tokens; and the TLS of these connections and of those to Redis. Nothing here changes what other crates of the program
//! do: no feature of a crate is enabled that chooses how TLS works for all of its users.
//!
//! [`Fetcher`] is for documents whose URLs come from other documents: it limits their size and time and the addresses
//! that are connected to, and follows no redirect.

#[cfg(feature = "client")]
mod body_decoder;
#[cfg(feature = "_fetch")]
mod connector;
#[cfg(any(feature = "auth", feature = "client"))]
mod document;
#[cfg(feature = "_fetch")]
mod http_client;
#[cfg(any(feature = "auth", feature = "client", feature = "events-webhook"))]
mod reach;
mod tls;
mod tls_provider;

#[cfg(any(feature = "auth", feature = "client-oauth"))]
pub(crate) use document::FetchError;
#[cfg(feature = "client")]
pub(crate) use document::FetchedDocument;
#[cfg(any(feature = "auth", feature = "client"))]
pub(crate) use document::Fetcher;
#[cfg(feature = "client-oauth")]
pub(crate) use document::MAX_DOCUMENT;
#[cfg(feature = "events-webhook")]
pub(crate) use http_client::ExchangeFailure;
#[cfg(feature = "events-webhook")]
pub(crate) use http_client::IdleConnections;
#[cfg(feature = "client")]
pub(crate) use http_client::{ExchangeError, HttpResponse};
#[cfg(any(feature = "client", feature = "events-webhook"))]
pub(crate) use http_client::{HttpClient, HttpRequest};
#[cfg(any(feature = "auth", feature = "client", feature = "events-webhook"))]
pub(crate) use reach::Reach;
pub(crate) use tls::tls_config;
