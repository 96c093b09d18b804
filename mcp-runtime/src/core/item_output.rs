//! The output of an item's function, whatever the kind of the item: one type, so that the code around functions is compiled
//! once.

use std::any::Any;

use crate::{
    core::{error::Failure, tool::ToolResult},
    gate::layer::PendingInput,
    prompt::PromptResult,
    resource::ResourceResult,
};

/// The output of a function.
#[derive(Debug)]
pub enum ItemOutput {
    /// Of a tool.
    Tool(ToolResult),
    /// Of a resource.
    Resource(ResourceResult),
    /// Of a prompt.
    Prompt(PromptResult),
    /// The values of an argument, of its `complete` function.
    Values(Vec<String>),
    /// Of the `list` functions of templates: encoded entries, and where the next page begins.
    Entries(Vec<Vec<u8>>, Option<Vec<u8>>),
    /// Of an item that only its capability knows.
    Other(Box<dyn Any + Send>),
    /// The request that its layers pass on if the function needs the client's input.
    InputRequired(PendingInput),
    /// The failure of a call whose function has not failed: one of its layers has made it.
    OfLayer(Box<Result<ItemOutput, Failure>>),
}

impl From<ToolResult> for ItemOutput {
    fn from(result: ToolResult) -> Self {
        Self::Tool(result)
    }
}

impl From<ResourceResult> for ItemOutput {
    fn from(result: ResourceResult) -> Self {
        Self::Resource(result)
    }
}

impl From<PromptResult> for ItemOutput {
    fn from(result: PromptResult) -> Self {
        Self::Prompt(result)
    }
}

/// A layer can return anything.
pub(crate) fn wrong_kind() -> Failure {
    Failure::private("a layer has returned the result of another kind of item")
}
