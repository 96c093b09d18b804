//! Any bytes to the target `webhooks`.
#![cfg_attr(fuzzing, no_main)]

mcp_fuzz::target!(|data| mcp_runtime::fuzzing::run("webhooks", data));
