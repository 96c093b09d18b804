//! Any bytes to the target `webhooks`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_runtime::fuzzing::run("webhooks", data));
