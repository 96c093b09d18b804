//! Attribute macros for MCP servers; use them through `mcp-runtime`.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod attribute;
mod diagnostics;
mod expand;
mod model;
mod options;
mod syntax;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

use crate::attribute::config;
use crate::attribute::{error_, item, main_, misplaced, rule, service, type_};
use crate::model::{
    event::EventOptions, prompt::PromptOptions, resource::ResourceOptions, tool::ToolOptions,
};

/// Makes a function a tool of the server.
///
/// Owned parameters are arguments, which the client sends; `&T` is injected from the request or the server's state.
/// The doc comment is the description. The function is unchanged and can still be called. The attribute adds a type
/// of the same name, for `.tool::<name>()`, which gives way to a module, import or type of that name; `marker = Name`
/// names it differently, `marker = none` omits it.
///
#[doc = include_str!("examples/mcp_tool.md")]
///
/// Options: `name`, `title`, `description`, `read_only`, `destructive`, `idempotent`, `open_world`, `icon`,
/// `meta(..)`, `timeout`, `max_concurrency`, `max_concurrency_per_caller`, `rate = "60/1m"`, `max_result = "50KB"`,
/// `blocking`, `task` (feature "tasks"), `scopes(..)`, `requires(..)`, `layers(..)`, `tags(..)`, `strict`, `output = Type`,
/// `unregistered`, `ui(..)`, `validate`, `marker`, `crate`.
///
/// Options of a parameter, in `#[mcp(..)]`: `name`, `title`, `description`, `default`, `range`, `length`, `pattern`,
/// `one_of`, `example`, `header`, `flatten`, `secret`, `inject`.
#[proc_macro_attribute]
pub fn mcp_tool(options: TokenStream, function: TokenStream) -> TokenStream {
    item::expand::<ToolOptions>(options.into(), function.into()).into()
}

/// Makes a function a resource, or a resource template, of the server.
///
/// The variables of `uri` are the function's owned parameters. A resource without `uri` gets one from its name.
///
#[doc = include_str!("examples/mcp_resource.md")]
///
/// Options: `uri`, `name`, `title`, `description`, `mime`, `icon`, `audience`, `priority`, `size`,
/// `cache(ttl = "60s", public)`, `list`, `subscribe`, `max_concurrency_per_caller`, `rate = "60/1m"`,
/// `max_result = "50KB"`, `blocking`, `scopes(..)`, `requires(..)`, `layers(..)`, `meta(..)`, `ui(..)`, `validate`,
/// `marker`, `crate`.
///
/// Options of a parameter, in `#[mcp(..)]`: `name`, `description`, `default`, `range`, `length`, `pattern`, `one_of`,
/// `example`, `complete`, `raw`, `secret`, `inject`.
#[proc_macro_attribute]
pub fn mcp_resource(options: TokenStream, function: TokenStream) -> TokenStream {
    item::expand::<ResourceOptions>(options.into(), function.into()).into()
}

/// Makes a function a prompt of the server.
///
/// Owned parameters are arguments, which a user fills in; the returned text or messages go to the model.
///
#[doc = include_str!("examples/mcp_prompt.md")]
///
/// Options: `name`, `title`, `description`, `icon`, `meta(..)`, `max_concurrency_per_caller`, `rate = "60/1m"`,
/// `max_result = "50KB"`, `blocking`, `scopes(..)`, `requires(..)`, `layers(..)`, `validate`, `marker`,
/// `crate`.
///
/// Options of a parameter, in `#[mcp(..)]`: `name`, `title`, `description`, `default`, `range`, `length`, `pattern`,
/// `one_of`, `example`, `complete`, `secret`, `inject`.
#[proc_macro_attribute]
pub fn mcp_prompt(options: TokenStream, function: TokenStream) -> TokenStream {
    item::expand::<PromptOptions>(options.into(), function.into()).into()
}

/// Makes a function an event of the server, to which clients subscribe (feature `events`, preview).
///
/// The program emits the event, and for each subscription the function decides what is delivered: it returns a `bool`, an
/// `Option<T>` with the part that this subscriber may see, or nothing for every subscriber. The parameter with
/// `#[mcp(payload)]` is the emitted value; owned parameters are arguments of the subscription.
///
#[doc = include_str!("examples/mcp_event.md")]
///
/// Options: `name`, `description`, `deliver(poll, push, webhook)`, `rate = "60/1m"`, `blocking`, `scopes(..)`, `meta(..)`,
/// `validate`, `marker`, `crate`.
///
/// Options of a parameter, in `#[mcp(..)]`: `payload`, `name`, `title`, `description`, `default`, `range`, `length`,
/// `pattern`, `one_of`, `example`, `flatten`, `secret`, `inject`.
#[proc_macro_attribute]
pub fn mcp_event(options: TokenStream, function: TokenStream) -> TokenStream {
    item::expand::<EventOptions>(options.into(), function.into()).into()
}

/// Makes the annotated methods of an `impl` block items of the server, which are registered with `.service(..)`.
///
#[doc = include_str!("examples/mcp_service.md")]
///
/// Options: `markers = module`, which adds a module with a marker of each method, for typed calls of a client; `crate`.
#[proc_macro_attribute]
pub fn mcp_service(options: TokenStream, block: TokenStream) -> TokenStream {
    service::expand(options.into(), &block.into()).into()
}

/// Derives `Serialize`, `Deserialize` and `JsonSchema`, so that a type can be an argument or a result.
///
/// Helper attributes such as `#[serde(..)]` have to be below it.
///
#[doc = include_str!("examples/mcp_type.md")]
///
/// Option: `crate`.
#[proc_macro_attribute]
pub fn mcp_type(options: TokenStream, item: TokenStream) -> TokenStream {
    type_::expand(options.into(), &item.into()).into()
}

/// Generates nothing: declares the attributes that the derives of `#[mcp_type]` read, for other derives of the type.
#[doc(hidden)]
#[proc_macro_derive(TypeAttributes, attributes(serde, schemars, validate, garde))]
pub fn type_attributes(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// Says what to write instead: a tool is a function.
#[doc(hidden)]
#[proc_macro_derive(Tool)]
pub fn tool(_: TokenStream) -> TokenStream {
    misplaced::report_derived_tool().into()
}

/// Marks variants of an error enum whose message the model may read; other messages stay private.
///
/// This applies wherever a tool, resource or prompt fails with the error: returned, propagated with `?` into
/// a `ToolError`, or inside a `Box<dyn Error + Send + Sync>`. The type implements `std::error::Error`, such
/// as with `thiserror`, whose derive may be above or below.
///
/// ```text
/// #[mcp_error]
/// #[derive(Debug, thiserror::Error)]
/// enum ShopError {
///     #[mcp(public)]
///     #[error("order {0} does not exist")]
///     UnknownOrder(u64),
///     // the model reads `tool 'order' failed`, the log has the cause
///     #[error("the database failed")]
///     Database(#[from] DatabaseError),
/// }
/// ```
///
/// Options: `public`, which makes a whole enum or struct public, `crate`.
///
/// Option of a variant, in `#[mcp(..)]`: `public`.
#[proc_macro_attribute]
pub fn mcp_error(options: TokenStream, item: TokenStream) -> TokenStream {
    error_::expand(options.into(), &item.into()).into()
}

/// Makes a struct the settings of the server: each field is a flag, an environment variable and a key of a file.
///
/// `.config::<Settings>()` on the builder reads them, and functions take them as `&Settings`; `Settings::load()` reads
/// them without a server. The doc comment of a field is its description. A field with a default is optional, and so is an
/// `Option`. Structs with the attribute can be fields: as a table, or with `flatten`.
///
#[doc = include_str!("examples/mcp_config.md")]
///
/// Options: `name`, which names the variables and the file instead of the server's name, `crate`.
///
/// Options of a field, in `#[mcp(..)]`: `name`, `title`, `description`, `default`, `range`, `length`, `pattern`, `one_of`,
/// `example`, `secret`, `flag`, `env`, `flatten`.
#[proc_macro_attribute]
pub fn mcp_config(options: TokenStream, item: TokenStream) -> TokenStream {
    config::expand(options.into(), &item.into()).into()
}

/// Makes a function a rule over several arguments, which `validate` of an item names.
///
/// It takes arguments by name and by reference: `&T`, and `Option<&T>` for an argument that is an `Option<T>`. Parameters
/// whose names are not those of arguments are injected: state, `&Context`, `&Principal`. It runs once the arguments are
/// decoded, before the function. The text of a public error is reported with all other mistakes, under the arguments that
/// the rule takes. The first line of its doc comment is in those reports. It may be async.
///
#[doc = include_str!("examples/mcp_rule.md")]
///
/// Option: `crate`.
#[proc_macro_attribute]
pub fn mcp_rule(options: TokenStream, function: TokenStream) -> TokenStream {
    rule::expand(options.into(), &function.into()).into()
}

/// Makes an `async fn main` the entry point of a program.
///
#[doc = include_str!("examples/main.md")]
///
/// Option: `crate`.
#[proc_macro_attribute]
pub fn main(options: TokenStream, function: TokenStream) -> TokenStream {
    main_::expand(options.into(), &function.into()).into()
}
