//! Any bytes to the target `duplicate_keys`.
#![cfg_attr(fuzzing, no_main)]

mcp_fuzz::target!(|data| mcp_runtime::fuzzing::run("duplicate_keys", data));
