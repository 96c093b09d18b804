//! Any bytes as the description of an API.
#![cfg_attr(fuzzing, no_main)]

mcp_fuzz::target!(mcp_fuzz::descriptions);
