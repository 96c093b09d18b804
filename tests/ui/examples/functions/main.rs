//! Functions in every form. They share a program, since each links the whole runtime.

#![deny(warnings)]
#![forbid(unsafe_code)]

mod aliases;
mod cfg;
mod converted;
mod instrument;
mod lint_levels;
mod macro_rules;
mod places;
mod raw_identifiers;

fn main() {
    aliases::main();
    cfg::main();
    converted::main().expect("no error");
    instrument::main();
    lint_levels::main();
    macro_rules::main();
    places::main();
    raw_identifiers::main();
}
