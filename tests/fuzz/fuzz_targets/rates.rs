//! Any bytes to the target `rates`.
#![cfg_attr(fuzzing, no_main)]

mcp_fuzz::target!(|data| mcp_runtime::fuzzing::run("rates", data));
