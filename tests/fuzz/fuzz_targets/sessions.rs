//! Sessions that any bytes describe.
#![no_main]

#[path = "../session.rs"]
mod session;

libfuzzer_sys::fuzz_target!(|data: &[u8]| session::play(data));
