//! Programs without mistakes, each a module with its own `main`. They share a program, since each links the whole runtime.

#![deny(warnings, future_incompatible, non_ascii_idents, rust_2024_compatibility)]
#![forbid(unsafe_code)]

mod aliases;
mod cfg;
mod child;
mod error_types;
mod event_forms;
mod keys_from_env;
mod lint_levels;
mod macro_rules;
mod mains;
mod marker_gives_way;
mod no_implicit_prelude_types;
// public, as is `strict_lints`, for the lints of what is
pub mod options;
mod other_name;
mod own_derives;
mod places;
mod raw_identifiers;
mod service_forms;
mod settings;
mod shadowed_prelude;
pub mod strict_lints;
mod type_forms;

/// The name under which `other_name` finds the runtime.
pub extern crate mcp_runtime as renamed;

use std::process::{ExitCode, Termination as _};

fn main() -> ExitCode {
    match std::env::var(child::MAIN).ok().as_deref() {
        None => {}
        Some("keys_from_env") => return keys_from_env::child().report(),
        Some(main) => return mains::child(main),
    }
    let programs: [fn(); 20] = [
        aliases::main,
        cfg::main,
        error_types::main,
        event_forms::main,
        keys_from_env::main,
        lint_levels::main,
        macro_rules::main,
        mains::main,
        marker_gives_way::main,
        no_implicit_prelude_types::main,
        options::main,
        other_name::main,
        own_derives::main,
        places::main,
        raw_identifiers::main,
        service_forms::main,
        settings::main,
        shadowed_prelude::main,
        strict_lints::main,
        type_forms::main,
    ];
    for program in programs {
        program();
    }
    println!("{}", programs.len());
    ExitCode::SUCCESS
}
