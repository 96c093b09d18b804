//! What clients observe of tools, resources, prompts and the protocol, over every transport, and the client. One binary, to
//! compile once what both use.

mod added_stores;
mod apps;
mod audit;
mod authorization;
mod batches;
mod byte_streams;
mod changing_items;
mod client;
mod client_requests;
mod command_line;
mod common;
mod descriptions;
mod error_types;
mod events;
mod examples;
mod http;
mod install;
mod layers;
mod limits;
mod logging;
mod made_state;
mod matrix;
mod metadata;
mod own_results;
mod pages;
mod prelude;
mod process;
mod prompts;
mod protocol;
mod readable;
mod reasons;
mod replicas;
mod request_state;
mod required_capabilities;
mod resilience;
mod resources;
mod runtime_items;
mod sessions;
mod settings;
#[cfg(unix)]
#[path = "../shared/mod.rs"]
mod shared;
mod skills;
mod stdio;
mod stores;
mod subscriptions;
mod tasks;
mod telemetry;
mod test_clients;
mod testing;
mod tools;
mod transforms;

#[cfg(unix)]
use stores::stores;
