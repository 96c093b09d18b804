//! Code generation from a checked model. Generated code names the runtime only as `__rt`, inside a `const _`.

pub(crate) mod definition;
mod dependency;
pub(crate) mod derived;
pub(crate) mod handler;
pub(crate) mod idents;
pub(crate) mod settings;
