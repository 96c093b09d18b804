//! Prompts made at run time: a name, arguments and a closure.

use std::{collections::BTreeMap, future::Future};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::PromptResult;
use crate::core::{
    arguments::{
        AnyArg, ArgumentCompletion, Completion, CompletionSource, TextArgument, attribute_fn::IntoReturned,
        parse_text_argument,
    },
    context::Context,
    error::ToolError,
    item::{ItemSpec, impl_item_setters},
    item_function::{AsyncReply, DynHandler, async_handler, blocking_handler},
    item_output::IntoOutput,
    jsonrpc::ProtocolError,
};

/// One request for a prompt made at run time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PromptCall {
    /// The arguments by name, among them all that are required.
    pub arguments: BTreeMap<String, String>,
    /// The context of the request.
    pub context: Context,
}

impl PromptCall {
    /// The argument `name` as a `T`, parsed like a parameter of that type; an absent one is `None` for an `Option`.
    ///
    /// # Errors
    /// It is absent, or not a `T`: `-32602`, with a message that names it.
    pub fn arg<T: DeserializeOwned>(&self, name: &str) -> Result<T, ToolError> {
        let value = self.arguments.get(name).map(|text| TextArgument::One(text.into()));
        parse_text_argument(value.as_ref())
            .map_err(|error| ProtocolError::invalid_params(format!("`{name}`: {error}")).into())
    }
}

/// An argument of a prompt made at run time.
#[derive(Debug, Clone)]
pub struct PromptArgument {
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) required: bool,
    pub(crate) completion: ArgumentCompletion,
}

impl PromptArgument {
    /// An optional argument of this name.
    pub fn new(name: impl Into<String>) -> Self {
        let source = CompletionSource::Choices(Vec::new());
        let completion = ArgumentCompletion { argument: name.into().into(), source };
        Self { title: None, description: None, required: false, completion }
    }

    /// An argument of an annotated prompt.
    pub(crate) fn of(arg: &'static dyn AnyArg) -> Self {
        Self {
            title: arg.options().title.map(str::to_owned),
            description: arg.options().description.map(str::to_owned),
            required: arg.required(),
            completion: ArgumentCompletion::of(arg),
        }
    }

    /// `name` on the wire.
    pub(crate) fn name(&self) -> &str {
        &self.completion.argument
    }

    /// Sets `title` on the wire.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets `description` on the wire.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Makes it required: a request without it is an error, and the handler does not run.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Sets the values that completion offers; they match by prefix, ignoring case.
    #[must_use]
    pub fn complete<S: Into<String>>(mut self, values: impl IntoIterator<Item = S>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.completion.source = CompletionSource::Choices(values);
        self
    }

    /// Sets the async function that completes it, and which does its own matching.
    #[must_use]
    pub fn complete_with<F, Fut, N>(mut self, complete: F) -> Self
    where
        F: Fn(Completion, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoReturned<Vec<String>, N>> + Send + 'static,
    {
        self.completion.source = CompletionSource::function(complete);
        self
    }
}

/// A prompt made at run time, to [add](crate::ServerBuilder::add) to a server.
///
/// ```
/// use mcp_runtime::prompt::{PromptArgument, PromptCall, PromptDef};
///
/// let prompt = PromptDef::builder("review")
///     .description("Reviews code.")
///     .argument(PromptArgument::new("code").required())
///     .argument(PromptArgument::new("tone").complete(["kind", "blunt"]))
///     .handler(|call: PromptCall| async move { format!("Review this.\n\n{}", call.arguments["code"]) });
/// assert_eq!(prompt.name(), "review");
/// ```
#[derive(Debug, Clone)]
pub struct PromptDef {
    pub(crate) item: ItemSpec,
    pub(crate) arguments: Vec<PromptArgument>,
    pub(crate) handler: DynHandler<PromptCall>,
}

impl PromptDef {
    /// Starts building a prompt with this name.
    pub fn builder(name: impl Into<String>) -> PromptBuilder {
        let item = ItemSpec { name: name.into(), ..ItemSpec::default() };
        PromptBuilder { item, arguments: Vec::new() }
    }

    /// `name` on the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.item.name
    }
}

/// Builds a [`PromptDef`](crate::prompt::PromptDef); its handler is the last step.
#[derive(Debug, Clone)]
#[must_use = "a prompt is complete with its handler"]
pub struct PromptBuilder {
    item: ItemSpec,
    arguments: Vec<PromptArgument>,
}

impl_item_setters!(PromptBuilder, "prompt");

impl PromptBuilder {
    pub(crate) fn item_mut(&mut self) -> &mut ItemSpec {
        &mut self.item
    }

    /// Adds a member to the entry's `_meta`.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.item.insert_meta(key.into(), value.into());
        self
    }

    /// Adds an argument, after those before.
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        self.arguments.push(argument);
        self
    }

    /// Sets the handler and builds the prompt.
    pub fn handler<F, Fut>(self, handler: F) -> PromptDef
    where
        F: Fn(PromptCall) -> Fut + Send + Sync + 'static,
        Fut: AsyncReply + Send + 'static,
        Fut::Reply: IntoOutput<PromptResult>,
    {
        self.build(async_handler(handler, Fut::Reply::into_output))
    }

    /// Sets a plain handler, which runs on the blocking pool, and builds the prompt.
    pub fn blocking_handler<F, R>(self, handler: F) -> PromptDef
    where
        F: Fn(PromptCall) -> R + Send + Sync + 'static,
        R: IntoOutput<PromptResult> + 'static,
    {
        self.build(blocking_handler(handler, R::into_output))
    }

    fn build(self, handler: DynHandler<PromptCall>) -> PromptDef {
        PromptDef { item: self.item, arguments: self.arguments, handler }
    }
}
