//! Any bytes to the target `event_streams`.
#![cfg_attr(fuzzing, no_main)]

mcp_fuzz::target!(|data| mcp_runtime::fuzzing::run("event_streams", data));
