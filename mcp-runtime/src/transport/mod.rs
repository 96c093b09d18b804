//! The transports: byte streams (stdio or any other pair), HTTP, and memory. A transport only moves messages;
//! `dispatch` interprets them, in the same way for every transport.

mod connection;
#[cfg(feature = "http")]
pub(crate) mod http;
#[cfg(any(feature = "cli", feature = "testing", test))]
pub(crate) mod memory;
#[cfg(any(feature = "stdio", feature = "http"))]
mod signal;
#[cfg(feature = "stdio")]
mod stdio;
mod stream;
mod writer;

#[cfg(feature = "client")]
pub(crate) use connection::{Line, LineBuffer};
