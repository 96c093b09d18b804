//! The programs of `cargo fuzz`, one for each target: see docs/security.md. Without a fuzzer they are programs that take files,
//! so that every compiler checks them, and runs again what a fuzzer found: `cargo run -p mcp-fuzz --bin sessions -- FILE`.

mod openapi;
mod session;

use std::sync::Once;

/// The program of a target: what it does with bytes.
#[macro_export]
macro_rules! target {
    ($run:expr) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|data: &[u8]| ($run)(data));

        #[cfg(not(fuzzing))]
        fn main() -> std::io::Result<()> {
            $crate::run_files($run)
        }
    };
}

/// Runs a target with the contents of the files that the arguments name.
///
/// # Errors
/// Without arguments, or if a file cannot be read.
///
/// # Panics
/// A promise is broken.
pub fn run_files(run: impl Fn(&[u8])) -> std::io::Result<()> {
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    if files.is_empty() {
        return Err(std::io::Error::other("name the files with the inputs"));
    }
    files.iter().try_for_each(|file| std::fs::read(file).map(|data| run(&data)))
}

/// Plays the session that bytes describe.
///
/// # Panics
/// The server breaks a promise.
pub fn sessions(data: &[u8]) {
    static HOOK: Once = Once::new();
    // one of the tools panics, which the server survives; what `play` finds ends the process all the same
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            if !info.to_string().contains("as it should") {
                eprintln!("{info}");
            }
        }));
    });
    session::play(data);
}

/// Builds a server of the description that bytes are.
///
/// # Panics
/// A promise is broken.
pub fn descriptions(data: &[u8]) {
    openapi::descriptions(data);
}

/// Calls an operation with the arguments that bytes are.
///
/// # Panics
/// An argument has changed another part of the request.
pub fn api_requests(data: &[u8]) {
    openapi::api_requests(data);
}
