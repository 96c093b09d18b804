//! Everything that generated code names, and nothing else. Not part of the public API: it changes with the macros, which
//! are pinned to this exact version.

pub use core::{
    clone::Clone, concat, convert::Into, default::Default, env, file, module_path, ops::Bound,
    option::Option, result::Result,
};

pub use std::{borrow::Cow, boxed::Box};

pub use inventory;
#[cfg(feature = "macros")]
pub use mcp_runtime_macros::TypeAttributes;
pub use schemars;
pub use serde;

pub use crate::{
    capability::events::{
        Delivery, Event, EventDescriptor, EventOf, EventOutput, EventPayload, EventPosition, Streamed,
        event_output, event_payload, event_position, event_source, opened_at,
    },
    capability::prompts::{
        Prompt, TypedPrompt,
        output::{PromptOutput, prompt_output},
        spec::PromptDescriptor,
    },
    capability::resources::{
        Resource, TypedResource,
        listed::{list, list_blocking},
        output::{AnyResourceOutput, ResourceOutput, resource_output},
        spec::ResourceDescriptor,
        subscribe_fn::subscribe,
    },
    capability::tasks::{blocking_task, start_task, task},
    core::{
        arguments::{
            AnyArg, ArgDescriptor, ArgumentRule, Call, FromContextFn, HandlerResult, HeaderArg, Inject,
            ItemRules, NoBound, Opens, Pattern, Probe, ProbeDyn, RuleDescriptor, RuleParam, RuleValues,
            Rules, blocking, complete, complete_blocking, flatten, from_context_fn, from_text, injected,
            json, json_of, object, on_thread, pending, provided, provided_option, ready, rule_result,
            rule_value, shared, text, text_of,
        },
        client_request::ClientFeature,
        content::{Theme, icon::icon},
        error::{ErrorVisibility, Failure, NotAnError, PublicError, RegisteredError},
        item::{ItemDescriptor, Location, Signature, item, item_at},
        item_output::ItemOutput,
        server::{AnnotatedItem, ServiceBlock},
        tool::{
            TaskMode, Tool, TypedTool,
            output::{AnyToolOutput, ToolOutput, tool_output},
            result_limit::ResultLimit,
            spec::{OutputType, ToolDescriptor},
        },
    },
    gate::layer::item_layer as layer,
    schema::{
        aliases::lists_aliases,
        derived::{Checked, Field, NotDerived, SchemaNotDerived, SchemaOf, field},
    },
};

#[cfg(feature = "config")]
pub use crate::{
    core::server::Error,
    settings::{
        AnyMember, AnySettingText, Config, ConfigDescriptor, DurationText, MemberOf, OtherText, SettingField,
        SettingMembers, SettingText, config_id, config_schema, deserialize_config, flat_setting, load_config,
        next_slot, setting,
    },
};

/// Runs an async `main`.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            #[cfg(feature = "client")]
            let future = async {
                crate::client::manage_main();
                let output = future.await;
                // the runtime does not wait for the tasks that would end them
                crate::client::end_children().await;
                output
            };
            let output = runtime.block_on(future);
            // a thread of a `blocking` function that outlives its call must not delay the exit
            runtime.shutdown_background();
            output
        }
        // `main` may have any error type, and nothing runs without a runtime
        Err(e) => panic!("the async runtime cannot be started: {e}"),
    }
}
