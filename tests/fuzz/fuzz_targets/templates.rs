//! Any bytes to the target `templates`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_runtime::fuzzing::run("templates", data));
