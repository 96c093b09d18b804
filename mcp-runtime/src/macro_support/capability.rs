//! What generated code names of `capability`.

pub use crate::capability::{
    events::{
        Delivery, Event, EventDescriptor, EventOf, EventOutput, EventPayload, event_output, event_payload,
    },
    prompts::{
        Prompt, TypedPrompt,
        output::{PromptOutput, prompt_output},
        spec::PromptDescriptor,
    },
    resources::{
        Resource, TypedResource,
        listed::{list, list_blocking},
        output::{AnyResourceOutput, ResourceOutput, resource_output},
        spec::ResourceDescriptor,
        subscribe_fn::subscribe,
    },
};

#[cfg(feature = "tasks")]
pub use crate::capability::tasks::{blocking_task, start_task};
