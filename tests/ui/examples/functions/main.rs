//! Functions in every form. They share a program, since each links the whole runtime.

#![deny(warnings)]
#![forbid(unsafe_code)]

mod aliases;
mod cfg;
mod event_forms;
mod instrument;
mod lint_levels;
mod macro_rules;
mod marker_gives_way;
mod places;
mod raw_identifiers;

fn main() {
    aliases::main();
    cfg::main();
    event_forms::main();
    instrument::main();
    lint_levels::main();
    macro_rules::main();
    marker_gives_way::main();
    places::main();
    raw_identifiers::main();
}
