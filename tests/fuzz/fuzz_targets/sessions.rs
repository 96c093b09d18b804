//! Sessions that any bytes describe.
#![no_main]

#[path = "../session.rs"]
mod session;

libfuzzer_sys::fuzz_target!(
    init: {
        // one of the tools panics, which the server survives; what `play` finds ends the process all the same
        std::panic::set_hook(Box::new(|info| {
            if !info.to_string().contains("as it should") {
                eprintln!("{info}");
            }
        }));
    },
    |data: &[u8]| session::play(data)
);
