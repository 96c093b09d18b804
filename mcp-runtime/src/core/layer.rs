//! Layers: users' code around the calls of tools, resources and prompts. They see the item, its raw arguments, the
//! request and the typed outcome, and may answer instead of the function, change what it gets or returns, or run it
//! again. See [the guide](crate::guide::layers).
//!
//! A layer is an async function of a [`LayeredCall`] and the [`Next`] inside it:
//!
//! ```
//! use mcp_runtime::{
//!     ToolError,
//!     layer::{LayeredCall, Next, Outcome},
//!     prelude::*,
//!     testing::TestServer,
//! };
//! use serde_json::json;
//!
//! async fn members_only(call: LayeredCall, next: Next) -> Outcome {
//!     if call.context().header("x-member").is_none() {
//!         return Err(ToolError::new("this tool is for members"));
//!     }
//!     next.run(&call).await
//! }
//!
//! /// The weather of tomorrow.
//! #[mcp_tool(layers(members_only))]
//! fn forecast() -> &'static str {
//!     "sunny"
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> mcp_runtime::Result<()> {
//! let server = TestServer::new(mcp_runtime::server!().tool::<forecast>())?;
//! server.call("forecast", json!({})).await.expect_failure("this tool is for members");
//! # Ok(())
//! # }
//! ```

use std::{fmt, future::Future, sync::Arc};

use serde_json::{Map, Value};

pub use crate::core::{connection::ItemKind, item_output::PendingInput};
use crate::{
    core::{
        arguments::BoxFuture,
        callback::Callback,
        context::Context,
        dispatch::FunctionOfItem,
        error::{Failure, ToolError},
        invoke::contain,
        item::{ItemLayer, ItemSpec},
        tool::ToolResult,
    },
    prompt::PromptResult,
    resource::ResourceResult,
};

/// How a call ended: with a result, or with the failure of its function or of a layer.
///
/// A [`ToolError`] says what kind of failure it is: one that the client reads, a private one with its
/// [cause](ToolError::cause), a [JSON-RPC error](ToolError::protocol_error), [invalid
/// arguments](ToolError::is_invalid_arguments), or a [time limit](ToolError::is_timeout). A tool may also fail with a
/// result that [is an error](ToolResult::is_error).
pub type Outcome = Result<CallOutput, ToolError>;

/// The output of a call, by the kind of its item.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CallOutput {
    /// The result of `tools/call`.
    Tool(ToolResult),
    /// The result of `resources/read`.
    Resource(ResourceResult),
    /// The result of `prompts/get`.
    Prompt(PromptResult),
    /// The function asks its client for input, which a client of 2026-07-28 sends with a new request for the same call.
    InputRequired(PendingInput),
}

impl CallOutput {
    /// Whether it is the result of a tool that says that the tool has failed.
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, Self::Tool(result) if result.is_error)
    }
}

/// A call on its way to its function. Clones are cheap, and are the same call.
#[derive(Clone)]
pub struct LayeredCall {
    parts: Arc<LayeredCallParts>,
    /// Raw JSON of an object, if a layer has replaced the arguments.
    replaced: Option<Arc<str>>,
}

pub(crate) struct LayeredCallParts {
    pub(crate) kind: ItemKind,
    pub(crate) name: Box<str>,
    /// The URI, for a resource.
    pub(crate) uri: Option<Box<str>>,
    /// Raw JSON of an object.
    pub(crate) arguments: Box<str>,
    /// Raw JSON.
    pub(crate) request_id: Box<str>,
    pub(crate) context: Context,
}

impl LayeredCall {
    pub(crate) fn new(parts: LayeredCallParts) -> Self {
        Self { parts: Arc::new(parts), replaced: None }
    }

    /// The kind of the item.
    #[must_use]
    pub fn kind(&self) -> ItemKind {
        self.parts.kind
    }

    /// The method of the request: `tools/call`, `resources/read` or `prompts/get`.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self.kind() {
            ItemKind::Tool => "tools/call",
            // skills are read like resources, and have no layers
            ItemKind::Resource | ItemKind::Skill => "resources/read",
            ItemKind::Prompt => "prompts/get",
            // polls have no layers
            ItemKind::Event => "events/poll",
        }
    }

    /// The item's wire name, with the prefix of its mount. A template has one name, whatever is read.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// The URI that is read, of a resource.
    #[must_use]
    pub fn uri(&self) -> Option<&str> {
        self.parts.uri.as_deref()
    }

    /// The arguments as JSON text, before they are checked: an object. That of a resource is empty.
    #[must_use]
    pub fn raw_arguments(&self) -> &str {
        self.replaced.as_deref().unwrap_or(&self.parts.arguments)
    }

    /// The arguments, before they are checked.
    #[must_use]
    pub fn arguments(&self) -> Map<String, Value> {
        serde_json::from_str(self.raw_arguments()).unwrap_or_default()
    }

    /// Replaces the arguments of a tool or prompt, for the layers inside and the function. A resource has none, so that
    /// this has no effect on it.
    pub fn set_arguments(&mut self, arguments: Map<String, Value>) {
        self.replaced = Some(Value::Object(arguments).to_string().into());
    }

    /// JSON text of the request's id.
    #[must_use]
    pub fn request_id(&self) -> &str {
        &self.parts.request_id
    }

    /// The context of the request: its caller, client, headers, trace and state.
    ///
    /// A layer may use all of it, client requests included: their keys are those of the call, which its function uses
    /// too.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.parts.context
    }

    /// The arguments that a layer has set.
    pub(crate) fn replaced_arguments(&self) -> Option<&str> {
        self.replaced.as_deref()
    }
}

/// Without the arguments, which may be secret.
impl fmt::Debug for LayeredCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayeredCall")
            .field("method", &self.method())
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

/// The inner part of a layer: the next layer, or the function.
#[derive(Clone)]
pub struct Next {
    layers: Arc<[ItemLayer]>,
    /// The index of the next layer.
    index: usize,
    function: Arc<FunctionOfItem>,
}

impl Next {
    pub(crate) fn new(layers: Arc<[ItemLayer]>, function: Arc<FunctionOfItem>) -> Self {
        Self { layers, index: 0, function }
    }

    /// Runs the layers inside and the function.
    ///
    /// May be called several times: each time the arguments are decoded again, and the function gets a permit of its
    /// `max_concurrency` and its own time limit. If it is not called, the function does not run. Dropping the future drops
    /// the function's.
    ///
    /// # Errors
    /// The failure of the function or of a layer inside; also of one that panicked.
    pub async fn run(&self, call: &LayeredCall) -> Outcome {
        let Some(layer) = self.layers.get(self.index) else {
            return Arc::clone(&self.function).run(call.clone()).await;
        };
        let next =
            Self { layers: self.layers.clone(), index: self.index + 1, function: self.function.clone() };
        let outcome = (layer.0)(call.clone(), next);
        contain(outcome, call.context()).await.map_err(ToolError)
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("layers", &(self.layers.len() - self.index)).finish_non_exhaustive()
    }
}

/// Wraps the calls of tools, resources and prompts.
///
/// Every `async fn(LayeredCall, Next) -> Outcome` is a layer; implement it for a type that has options or state:
///
/// ```
/// use mcp_runtime::layer::{Layer, LayeredCall, Next, Outcome};
///
/// /// Runs a call again that failed privately.
/// struct Retry {
///     times: u32,
/// }
///
/// impl Layer for Retry {
///     async fn call(&self, call: LayeredCall, next: Next) -> Outcome {
///         let mut outcome = next.run(&call).await;
///         for _ in 0..self.times {
///             if !outcome.as_ref().is_err_and(|error| error.cause().is_some()) {
///                 break;
///             }
///             outcome = next.run(&call).await;
///         }
///         outcome
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a layer",
    label = "not a layer",
    note = "write `async fn(LayeredCall, Next) -> Outcome`, or implement `mcp_runtime::layer::Layer`",
    note = "the parameters of a closure need their types: `|call: LayeredCall, next: Next| async move {{ .. }}`",
    note = "a closure runs for many calls: what it captures, it clones for each: `move |call: LayeredCall, next: Next| {{ let name = name.clone(); async move {{ .. }} }}`"
)]
pub trait Layer: Send + Sync + 'static {
    /// The outcome of a call; its function runs when `next` does.
    fn call(&self, call: LayeredCall, next: Next) -> impl Future<Output = Outcome> + Send;
}

#[diagnostic::do_not_recommend]
impl<F, Fut> Layer for F
where
    F: Fn(LayeredCall, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send,
{
    fn call(&self, call: LayeredCall, next: Next) -> impl Future<Output = Outcome> + Send {
        self(call, next)
    }
}

/// A layer without its type.
pub(crate) type DynLayer = dyn Fn(LayeredCall, Next) -> BoxFuture<Result<CallOutput, Failure>> + Send + Sync;

/// The layer as items have it.
// rustc shows the next line where it counts the parameters of a function
pub fn item_layer(layer: impl Layer /* async fn(LayeredCall, Next) -> Outcome */) -> ItemLayer {
    let layer = Arc::new(layer);
    ItemLayer(Callback(Arc::new(move |call, next| {
        let layer = layer.clone();
        // the layer is called in the first poll, where panics are caught
        Box::pin(async move { Layer::call(&*layer, call, next).await.map_err(Failure::from) })
    })))
}

/// Adds a layer inside those that the item has.
pub(crate) fn push_layer(item: &mut ItemSpec, layer: impl Layer) {
    item.layers = item.layers.iter().cloned().chain([item_layer(layer)]).collect();
}
