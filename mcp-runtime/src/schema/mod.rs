//! JSON Schema 2020-12: schemas of Rust types, minimized for models; validation whose errors models can act on.

pub(crate) mod aliases;
mod alternatives;
mod attempts;
mod cap_patterns;
mod check;
mod coerce;
mod compile;
pub(crate) mod derived;
mod duplicate_keys;
mod equality;
mod error;
mod fill_defaults;
mod flat_root;
mod format;
mod generate;
mod legacy;
mod locate;
mod meta_schema;
mod minimize;
mod needs_validation;
mod node;
mod number;
mod object;
mod pattern;
mod published_values;
mod rewrite;
mod sample;
mod signature;
mod stream_check;
mod suggest;
mod tokens;
mod trusted;
mod unique_value;
mod validate;
mod value_hash;
mod walk;
mod whole_numbers;

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod published_tests;

pub(crate) use aliases::{accept_aliases, has_aliases};
pub(crate) use attempts::Attempts;
pub(crate) use cap_patterns::{MAX_PATTERN_TEXT, cap_patterns};
pub(crate) use coerce::coerce;
#[cfg(feature = "http")]
pub(crate) use coerce::is_object_text;
pub(crate) use duplicate_keys::{duplicate_keys, has_duplicate_keys, has_duplicates_beside};
pub(crate) use error::{ValidationError, member_path, truncate, without_position};
pub(crate) use fill_defaults::{fill_defaults, has_defaults};
pub(crate) use flat_root::flat_root;
pub(crate) use generate::{generator, generator_for_output, generator_of_accepted, hoist_defs};
pub(crate) use legacy::wrap_for_legacy;
pub(crate) use locate::{Place, locate};
pub(crate) use meta_schema::check_schema;
pub(crate) use minimize::{Direction, minimize};
pub(crate) use needs_validation::{needs_validation, without_enforced};
pub(crate) use pattern::{TextPattern, link_patterns};
pub(crate) use published_values::conform_published_values;
pub(crate) use rewrite::rewrite;
pub(crate) use sample::{SAMPLE_KEY, sample_with_keys};
pub(crate) use signature::signature;
pub(crate) use suggest::nearest;
pub(crate) use tokens::{TextPlaces, Token, Tokens, consists_of_more_values, count_values, has_more_values};
pub(crate) use trusted::enforceable_part;
pub(crate) use unique_value::read_value;
pub(crate) use validate::Validator;
pub(crate) use walk::subschemas;
