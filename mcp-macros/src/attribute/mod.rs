//! One file per attribute: from its tokens to its expansion, which always contains the annotated item.

pub(crate) mod config;
pub(crate) mod error_;
pub(crate) mod item;
pub(crate) mod main_;
pub(crate) mod misplaced;
pub(crate) mod rule;
pub(crate) mod service;
pub(crate) mod type_;
mod type_attributes;
