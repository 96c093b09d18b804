//! Types, errors, services and settings in every form. They share a program, since each links the whole runtime.

#![deny(warnings)]
#![forbid(unsafe_code)]

mod error_types;
mod own_derives;
mod service_forms;
mod settings;
mod type_forms;

fn main() {
    error_types::main();
    own_derives::main();
    service_forms::main();
    settings::main();
    type_forms::main();
}
