//! The descriptor that `#[mcp_event]` expands to.

use super::{EventResult, PayloadFns};
use crate::core::{
    item_output::{Output, OutputSchemaFn},
    tool::ToolDescriptor,
};

/// A way in which events reach a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// `events/poll`
    Poll,
    /// `events/stream`
    Push,
    /// `events/subscribe`
    Webhook,
}

impl Delivery {
    /// The wire's word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Push => "push",
            Self::Webhook => "webhook",
        }
    }
}

/// One annotated event.
#[derive(Debug, Clone, Copy)]
pub struct EventDescriptor {
    /// The function that decides what a subscription gets; its arguments are as those of a tool.
    pub function: ToolDescriptor,
    /// The type of the emitted payload.
    pub payload: Option<PayloadFns>,
    /// How it may be delivered; empty for every way that the server has.
    pub deliver: &'static [Delivery],
    /// Writes the schema of the return type, if it is not the payload.
    pub output: Option<OutputSchemaFn>,
}

impl EventDescriptor {
    /// Every field that an attribute may leave out; on its own, the descriptor of an item with errors.
    pub const EMPTY: Self =
        Self { function: ToolDescriptor::EMPTY, payload: None, deliver: &[], output: None };

    /// The options that an attribute may leave out, for a function with this result.
    #[must_use]
    pub const fn returning<R>(output: &Output<R, EventResult>) -> Self {
        Self { output: Some(output.schema), ..Self::EMPTY }
    }

    /// Identifies the event, whatever it is called on a server.
    pub(super) fn key(&'static self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}
