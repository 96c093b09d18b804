//! JSON Schema 2020-12 as this crate needs it: published lean, enforced whole, explained to models.
//!
//! `extract` and `def` generate and compile schemas here when a server is built; `dispatch` validates,
//! coerces and explains with them. Nothing here knows of tools beyond their name.

mod check;
mod coerce;
mod compile;
mod enforced;
mod explain;
mod generate;
mod legacy;
mod node;
mod normalise;
mod number;
mod object;
mod order;
mod signature;
mod stream;
mod suggest;
mod validate;
mod violation;
mod walk;

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod published;

pub(crate) use coerce::coerce;
pub(crate) use enforced::needs_validation;
pub(crate) use generate::{generator, generator_for_output, hoist_defs};
pub(crate) use legacy::wrap_for_legacy;
pub(crate) use normalise::{Mode, lean};
pub(crate) use signature::signature;
pub(crate) use suggest::nearest;
pub(crate) use validate::Validator;
pub(crate) use violation::{Violation, path_of, shorten};
pub(crate) use walk::children as subschemas;
