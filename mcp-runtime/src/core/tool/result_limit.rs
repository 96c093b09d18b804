//! The size of a result, as descriptors and options hold it.

use std::sync::Arc;

use super::{ToolEntry, ToolResult};
use crate::core::{dispatch::Response, reason::Reason, server::Server, store::ResultReader};

/// How many bytes a result may have. It has the function that answers for a tool, so that only a program that sets a limit
/// contains that.
#[derive(Debug, Clone, Copy)]
pub struct ResultLimit {
    pub(crate) bytes: usize,
    /// The response with the result of a tool.
    pub(crate) respond: fn(Self, &Server, ToolCallEnd<'_>) -> Response,
}

/// A call of a tool that has ended with a result.
pub(crate) struct ToolCallEnd<'a> {
    pub(crate) entry: &'a Arc<ToolEntry>,
    /// The reader of its result, if that is kept.
    pub(crate) reader: Option<&'a ResultReader>,
    pub(crate) result: ToolResult,
    /// Why the result is an error.
    pub(crate) reason: Option<Reason>,
}

impl ResultLimit {
    pub(crate) fn bytes(self) -> usize {
        self.bytes
    }
}
