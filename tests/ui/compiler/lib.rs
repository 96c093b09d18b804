//! The command with which cargo compiles a test, so that the test compiles other programs against the same dependencies: a macro
//! runs in the compiler, and sees its arguments.

use std::env;

use proc_macro::TokenStream;

/// The path of the compiler, and its arguments that name dependencies: a slice of strings.
///
/// # Panics
///
/// If the path of the compiler is unknown.
#[proc_macro]
pub fn compiler(_: TokenStream) -> TokenStream {
    let path = env::current_exe().expect("the path of the compiler");
    let mut command = vec![path.display().to_string()];
    let mut arguments = env::args();
    while let Some(argument) = arguments.next() {
        if matches!(argument.as_str(), "-L" | "--extern" | "--target") {
            command.push(argument);
            command.extend(arguments.next());
        }
    }
    format!("&{command:?}").parse().expect("a slice of strings")
}
