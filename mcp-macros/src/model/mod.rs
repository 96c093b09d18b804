//! An annotated function as checked data; contains no generated code.

pub(crate) mod argument;
pub(crate) mod event;
pub(crate) mod icon;
pub(crate) mod item;
pub(crate) mod kind;
pub(crate) mod marker;
pub(crate) mod params;
pub(crate) mod prompt;
pub(crate) mod resource;
pub(crate) mod rule;
pub(crate) mod setting;
pub(crate) mod template_syntax;
pub(crate) mod tool;
pub(crate) mod ui;
