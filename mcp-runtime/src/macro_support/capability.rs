//! What generated code names of `capability`.

pub use crate::capability::{
    prompts::{Prompt, PromptResult, spec::PromptDescriptor},
    resources::{
        Resource, ResourceResult,
        listed::{list, list_blocking},
        spec::ResourceDescriptor,
        subscribe_fn::subscribe,
    },
};

#[cfg(feature = "events")]
pub use crate::capability::events::{
    Delivery, Event, EventDescriptor, EventOf, EventPayload, EventResult, event_payload,
};
#[cfg(feature = "tasks")]
pub use crate::capability::tasks::{blocking_task, start_task};
