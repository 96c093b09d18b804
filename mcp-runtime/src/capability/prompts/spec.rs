//! The descriptor that `#[mcp_prompt]` expands to.

use crate::core::item::ItemDescriptor;
use crate::core::item_function::{Handler, missing_handler};

/// One annotated prompt.
#[derive(Debug, Clone, Copy)]
pub struct PromptDescriptor {
    /// The part that all kinds of items have.
    pub item: ItemDescriptor,
    /// Decodes the arguments and calls the function.
    pub handler: Handler,
}

impl PromptDescriptor {
    /// Every field that an attribute may leave out; on its own, the descriptor of an item with errors.
    pub const EMPTY: Self = Self { item: ItemDescriptor::EMPTY, handler: missing_handler };
}
