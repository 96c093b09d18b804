//! Any bytes to the target `mcp_servers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_runtime::fuzzing::run("mcp_servers", data));
