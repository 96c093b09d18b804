//! The function of a tool. A program that makes no tool at run time does not contain how those are called.

use std::{fmt, sync::Arc};

use super::{ToolCall, ToolEntry};
use crate::core::{
    arguments::{AnyArg, MaybeFuture},
    context::Context,
    error::Failure,
    item::{DynHandler, Function},
    item_output::ItemOutput,
};

/// The function of a tool: annotated, or of a tool that was made at run time.
pub(crate) enum ToolHandler {
    Annotated(Function),
    Made(Arc<CallMadeTool>),
}

type CallMadeTool = dyn Fn(MadeToolCall<'_>) -> Result<MaybeFuture<ItemOutput>, Failure> + Send + Sync;

/// A call of a tool that was made at run time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MadeToolCall<'a> {
    pub(crate) entry: &'a Arc<ToolEntry>,
    /// Raw JSON of an object.
    pub(crate) arguments: &'a str,
    pub(crate) context: &'a Context,
    /// Whether the call leaves its request before its function starts.
    pub(crate) starts_outside: bool,
}

impl ToolHandler {
    /// The function gets arguments that match the tool's schema.
    pub(super) fn made(handler: DynHandler<ToolCall>) -> Self {
        Self::Made(Arc::new(move |call| call.run(&handler)))
    }

    /// The parameters of an annotated function.
    pub(crate) fn args(&self) -> &'static [&'static dyn AnyArg] {
        match self {
            Self::Annotated(function) => function.args,
            Self::Made(_) => &[],
        }
    }
}

impl fmt::Debug for ToolHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolHandler").finish_non_exhaustive()
    }
}

impl MadeToolCall<'_> {
    fn run(self, handler: &DynHandler<ToolCall>) -> Result<MaybeFuture<ItemOutput>, Failure> {
        let (entry, text) = (self.entry, self.arguments);
        let arguments = entry.input.read_untyped(text, entry.spec.strict)?;
        let body = handler(ToolCall { arguments, context: self.context.clone(), tool: entry.clone() });
        Ok(MaybeFuture::Pending(if self.starts_outside {
            let context = self.context.clone();
            Box::pin(async move {
                context.leave_request().await;
                body.await
            })
        } else {
            body
        }))
    }
}
