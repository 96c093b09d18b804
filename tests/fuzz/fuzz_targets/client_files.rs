//! Any bytes to the target `client_files`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_runtime::fuzzing::run("client_files", data));
