//! JSON Schema 2020-12: schemas of Rust types, minimized for models; validation whose errors models can act on.

mod alternatives;
mod check;
mod coerce;
mod compile;
mod error;
mod generate;
mod legacy;
mod minimize;
mod needs_validation;
mod node;
mod number;
mod object;
mod order;
mod signature;
mod stream_check;
mod suggest;
mod validate;
mod walk;

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod published_tests;

pub(crate) use coerce::coerce;
pub(crate) use error::{ValidationError, member_path, truncate};
pub(crate) use generate::{generator, generator_for_output, hoist_defs};
pub(crate) use legacy::wrap_for_legacy;
pub(crate) use minimize::{Direction, minimize};
pub(crate) use needs_validation::needs_validation;
pub(crate) use signature::signature;
pub(crate) use suggest::nearest;
pub(crate) use validate::Validator;
pub(crate) use walk::subschemas;
