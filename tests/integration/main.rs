//! The integration tests, in one binary: each module drives one way into a server.

mod child;
mod command_line;
mod examples;
mod http;
mod memory;
mod stdio;
mod stream;
