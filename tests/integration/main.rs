//! What clients observe of tools, resources, prompts and the protocol, over every transport. One binary, to link once.

mod apps;
mod byte_streams;
mod catalog;
mod client_requests;
mod command_line;
mod common;
mod error_types;
mod examples;
mod http;
mod logging;
mod matrix;
mod metadata;
mod process;
mod prompts;
mod protocol;
mod replicas;
mod request_state;
mod required_capabilities;
mod resilience;
mod resources;
mod skills;
mod stdio;
mod subscriptions;
mod tasks;
mod testing;
mod tools;
