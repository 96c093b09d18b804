//! Parts of expansions that need a feature: without it, they are one error at the option or attribute that has them.

#[cfg(feature = "events")]
#[doc(hidden)]
#[macro_export]
macro_rules! __needs_events {
    ($($expansion:tt)*) => { $($expansion)* };
}

#[cfg(not(feature = "events"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __needs_events {
    ($($expansion:tt)*) => {
        ::core::compile_error!(
            "`#[mcp_event]` needs the feature `events` of `mcp-runtime`\n`cargo add mcp-runtime --features events`"
        );
    };
}

#[cfg(feature = "config")]
#[doc(hidden)]
#[macro_export]
macro_rules! __needs_config {
    ($($expansion:tt)*) => { $($expansion)* };
}

#[cfg(not(feature = "config"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __needs_config {
    ($($expansion:tt)*) => {
        ::core::compile_error!(
            "`#[mcp_config]` needs the feature `config` of `mcp-runtime`\n`cargo add mcp-runtime --features config`"
        );
    };
}

#[cfg(feature = "tasks")]
#[doc(hidden)]
#[macro_export]
macro_rules! __needs_tasks {
    ($($expansion:tt)*) => { $($expansion)* };
}

#[cfg(not(feature = "tasks"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __needs_tasks {
    ($($expansion:tt)*) => {
        ::core::compile_error!(
            "`task` needs the feature `tasks` of `mcp-runtime`\n`cargo add mcp-runtime --features tasks`"
        )
    };
}

pub use crate::{
    __needs_config as needs_config, __needs_events as needs_events, __needs_tasks as needs_tasks,
};

/// Without the feature, after the error at the option.
#[cfg(not(feature = "tasks"))]
pub async fn start_task(_: &crate::Context) {}

#[cfg(not(feature = "tasks"))]
pub use crate::core::arguments::blocking as blocking_task;
