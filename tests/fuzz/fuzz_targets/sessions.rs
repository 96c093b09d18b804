//! Sessions that any bytes describe.
#![cfg_attr(fuzzing, no_main)]

mcp_fuzz::target!(mcp_fuzz::sessions);
