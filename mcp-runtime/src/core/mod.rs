//! The parts that every server has: messages, items and their calls, and the builder. The core imports nothing from the
//! folders around it except a short list of names in `tests/hygiene.rs`.

pub(crate) mod admission;
pub(crate) mod arguments;
pub(crate) mod blocking;
pub(crate) mod bound;
pub(crate) mod build_error;
pub(crate) mod callback;
pub(crate) mod changes;
pub(crate) mod client_error;
pub mod client_request;
pub(crate) mod config;
pub(crate) mod connection;
pub mod content;
pub(crate) mod context;
pub(crate) mod crypto;
pub(crate) mod dispatch;
pub(crate) mod error;
#[cfg(any(feature = "client-oauth", all(feature = "auth", feature = "testing")))]
pub(crate) mod es256;
pub(crate) mod extensions;
pub(crate) mod gates;
pub(crate) mod invoke;
pub(crate) mod item;
pub(crate) mod item_function;
pub(crate) mod item_output;
#[cfg(any(feature = "client", feature = "install"))]
pub(crate) mod jsonc;
pub(crate) mod jsonrpc;
pub mod layer;
#[cfg(any(feature = "client", feature = "contract"))]
pub(crate) mod lock_file;
pub(crate) mod log_limit;
pub(crate) mod maybe_ready;
pub(crate) mod observer;
#[cfg(any(feature = "contract", feature = "install"))]
pub(crate) mod project_file;
pub(crate) mod protocol;
pub(crate) mod reason;
pub(crate) mod recent_map;
#[cfg(any(feature = "_fetch", feature = "redis"))]
pub(crate) mod resolver;
#[cfg(feature = "config")]
pub(crate) mod secret_texts;
pub(crate) mod server;
pub(crate) mod single_flight;
pub(crate) mod spawn;
pub(crate) mod store;
pub(crate) mod sync;
pub(crate) mod text_file;
pub mod tool;
pub(crate) mod unix_time;
pub(crate) mod visible_text;
#[cfg(any(feature = "client", feature = "contract", feature = "install"))]
pub(crate) mod whole_file;
