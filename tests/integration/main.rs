//! What clients observe of tools, resources, prompts and the protocol, over every transport. One binary, to link once.

mod apps;
mod asking;
mod command_line;
mod common;
mod examples;
mod heading;
mod http;
mod logging;
mod matrix;
mod memory;
mod process;
mod promises;
mod prompts;
mod protocol;
mod replicas;
mod requires;
mod resources;
mod rounds;
mod skills;
mod stdio;
mod stream;
mod subscriptions;
mod tasks;
mod tools;
mod wire;
