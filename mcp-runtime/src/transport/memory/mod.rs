//! A client in the server's process. Its messages are encoded as JSON and take the same path as those of every other
//! transport.

mod client;
mod connection;

#[cfg(any(feature = "testing", test))]
pub(crate) use client::answer_input_requests;
pub(crate) use client::{MemoryClient, MemoryReply, prompt_arguments};
#[cfg(any(feature = "testing", test))]
pub(crate) use connection::parse_message;
