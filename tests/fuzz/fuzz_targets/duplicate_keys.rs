//! Any bytes to the target `duplicate_keys`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_runtime::fuzzing::run("duplicate_keys", data));
