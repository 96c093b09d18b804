//! Any bytes to the target `mcp_servers`.
#![cfg_attr(fuzzing, no_main)]

mcp_fuzz::target!(|data| mcp_runtime::fuzzing::run("mcp_servers", data));
