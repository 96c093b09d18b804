//! Any bytes to the target `rates`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_runtime::fuzzing::run("rates", data));
