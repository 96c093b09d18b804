//! The output of an item's function, whatever the kind of the item: one type, so that the code around functions is compiled
//! once.

use std::{any::Any, fmt};

use crate::{
    core::{context::PendingRequest, error::Failure, tool::ToolResult},
    prompt::PromptResult,
    resource::ResourceResult,
};

/// The output of a function.
#[derive(Debug)]
pub enum ItemOutput {
    /// The result of a tool.
    Tool(ToolResult),
    /// The result of a resource.
    Resource(ResourceResult),
    /// The result of a prompt.
    Prompt(PromptResult),
    /// The values of an argument, of its `complete` function.
    Values(Vec<String>),
    /// The result of a template's `list` function: encoded entries, and where the next page begins.
    Entries(Vec<Vec<u8>>, Option<Vec<u8>>),
    /// The result of an item that only its capability knows.
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

/// The input that a call needs from its client; layers pass it on.
#[derive(Clone)]
pub struct PendingInput {
    pub(crate) requests: Vec<PendingRequest>,
    /// Sealed.
    pub(crate) state: String,
}

impl PendingInput {
    /// The keys of the requests to the client.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.requests.iter().map(|request| &*request.key)
    }
}

impl PartialEq for PendingInput {
    fn eq(&self, other: &Self) -> bool {
        // the state has the requests in it
        self.state == other.state
    }
}

impl fmt::Debug for PendingInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.keys()).finish()
    }
}

/// A layer can return anything.
pub(crate) fn wrong_kind() -> Failure {
    Failure::private("a layer has returned the result of another kind of item")
}
