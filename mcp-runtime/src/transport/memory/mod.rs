//! A client in the server's process. Its messages are encoded as JSON and take the same path as those of every other
//! transport.

mod client;
mod connection;

pub(crate) use client::{MemoryClient, MemoryReply, answer_input_requests, prompt_arguments};
pub(crate) use connection::parse_message;
