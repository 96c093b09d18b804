//! Attribute macros for MCP servers; use them through `mcp-runtime`.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod argument;
mod attr;
mod doc;
mod entry;
mod errors;
mod expand;
mod handler;
mod icon;
mod item;
mod kind;
mod mcp_type;
mod meta;
mod misplaced;
mod names;
mod params;
mod prompt;
mod resource;
mod rule;
mod service;
#[cfg(test)]
mod tests;
mod tool;
mod ty;
mod ui;
mod uri;

use proc_macro::TokenStream;

/// Makes a function a tool of the server.
///
/// Owned parameters are arguments that the client sends, `&T` is injected from the server. The doc comment
/// is the description. The function stays as it is and can be called; beside it stands a type of the same
/// name, for `.tool::<name>()`.
///
/// Options: `name`, `title`, `description`, `read_only`, `destructive`, `idempotent`, `open_world`, `icon`,
/// `meta(..)`, `timeout`, `max_concurrency`, `blocking`, `scopes(..)`, `requires(..)`, `tags(..)`,
/// `strict`, `output = Type`, `unlisted`, `crate`. On a parameter, in `#[mcp(..)]`: `name`, `title`, `description`,
/// `default`, `range`, `length`, `pattern`, `one_of`, `example`, `header`, `flatten`, `inject`.
#[proc_macro_attribute]
pub fn mcp_tool(options: TokenStream, item: TokenStream) -> TokenStream {
    kind::free_function::<tool::Tool>(options.into(), item.into()).into()
}

/// Makes a function a resource, or a template of resources, of the server.
///
/// The variables of `uri` are the function's owned parameters.
///
/// Options: `uri`, `name`, `title`, `description`, `mime`, `icon`, `audience`, `priority`, `size`,
/// `cache(ttl = "60s", public)`, `list`, `scopes(..)`, `requires(..)`, `meta(..)`, `crate`. On a parameter, in
/// `#[mcp(..)]`: `name`, `description`, `default`, `range`, `length`, `pattern`, `one_of`, `example`, `complete`, `raw`,
/// `inject`.
#[proc_macro_attribute]
pub fn mcp_resource(options: TokenStream, item: TokenStream) -> TokenStream {
    kind::free_function::<resource::Resource>(options.into(), item.into()).into()
}

/// Makes a function a prompt of the server.
///
/// Options: `name`, `title`, `description`, `icon`, `meta(..)`, `scopes(..)`, `requires(..)`, `crate`. On a
/// parameter, in `#[mcp(..)]`: `name`, `title`, `description`, `default`, `range`, `length`, `pattern`, `one_of`,
/// `example`, `complete`, `inject`.
#[proc_macro_attribute]
pub fn mcp_prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    kind::free_function::<prompt::Prompt>(options.into(), item.into()).into()
}

/// Makes the annotated methods of an `impl` block items that a server gets through `.service(..)`.
///
/// Option: `crate`.
#[proc_macro_attribute]
pub fn mcp_service(options: TokenStream, item: TokenStream) -> TokenStream {
    service::expand(options.into(), &item.into()).into()
}

/// Derives `Serialize`, `Deserialize` and `JsonSchema`, so that a type can be an argument or a result.
///
/// Attributes such as `#[serde(..)]` stand below it. Option: `crate`.
#[proc_macro_attribute]
pub fn mcp_type(options: TokenStream, item: TokenStream) -> TokenStream {
    mcp_type::expand(options.into(), &item.into()).into()
}

/// Runs an `async fn main` to its end.
///
/// Option: `crate`.
#[proc_macro_attribute]
pub fn main(options: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(options.into(), &item.into()).into()
}
