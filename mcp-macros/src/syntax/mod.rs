//! Rust syntax and nothing of MCP: types, literals, doc comments, functions, `impl` blocks, the names that serde gives.

pub(crate) mod docs;
pub(crate) mod function;
pub(crate) mod impl_block;
pub(crate) mod literals;
pub(crate) mod types;
pub(crate) mod wire_names;
