//! Any bytes to the target `header_params`.
#![cfg_attr(fuzzing, no_main)]

mcp_fuzz::target!(|data| mcp_runtime::fuzzing::run("header_params", data));
