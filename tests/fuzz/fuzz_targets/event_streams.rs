//! Any bytes to the target `event_streams`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_runtime::fuzzing::run("event_streams", data));
