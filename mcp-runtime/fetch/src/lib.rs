//! HTTP requests that `mcp-runtime` makes: those of clients, and those for what authorization servers publish and say of
//! tokens; and the TLS of these connections and of those to Redis. Nothing here changes what other crates of the program
//! do: no feature of a crate is enabled that chooses how TLS works for all of its users.
//!
//! [`Fetcher`] is for documents whose URLs come from other documents: it limits their size and time and the addresses
//! that are connected to, and follows no redirect.

// only `mcp-runtime` uses these types, and much of what they hold is secret
#![allow(missing_debug_implementations)]

#[cfg(feature = "http")]
mod request;
mod tls;
mod tls_provider;

#[cfg(feature = "http")]
pub use request::{
    ExchangeError, FetchError, Fetcher, HttpClient, HttpRequest, HttpResponse, LookUp, LookUpFuture,
    MAX_DOCUMENT, Network, Reach, issuer_metadata_urls, system_look_up, user_agent,
};
pub use tls::tls_config;
