//! Options, `key`, `key = value` and `key(..)`: their syntax, values and names.

pub(crate) mod entry;
pub(crate) mod known;
pub(crate) mod meta;
pub(crate) mod rate_syntax;
pub(crate) mod size;
