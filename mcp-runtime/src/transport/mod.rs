//! The ways into a server: byte streams (stdio and any other pair), HTTP, and memory. A transport moves bytes; what they
//! mean is decided in `dispatch`, the same for all of them.

mod connection;
#[cfg(feature = "http")]
pub(crate) mod http;
pub(crate) mod memory;
#[cfg(feature = "stdio")]
mod stdio;
mod stream;
mod writer;
