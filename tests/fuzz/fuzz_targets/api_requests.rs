//! Any arguments to an operation of a description.
#![cfg_attr(fuzzing, no_main)]

mcp_fuzz::target!(mcp_fuzz::api_requests);
