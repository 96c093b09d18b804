//! A server and its client in one process: the same edge as every other transport, and each message is real JSON.

mod client;
mod connection;

pub(crate) use client::{MemoryClient, MemoryReply, answer_input_requests, prompt_arguments};
pub(crate) use connection::{Answers, MemoryConnection, read};
