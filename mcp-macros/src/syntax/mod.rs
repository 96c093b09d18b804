//! Rust syntax and nothing of MCP: types, literals, doc comments, functions, `impl` blocks.

pub(crate) mod docs;
pub(crate) mod function;
pub(crate) mod impl_block;
pub(crate) mod literals;
pub(crate) mod types;
