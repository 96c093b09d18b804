//! `task` in all its forms, with everything that is injected, under a module that takes the usual names.

#![deny(warnings, missing_docs, clippy::all)]

use mcp_runtime::{FromContext, prelude::*};

/// A store.
#[derive(Debug)]
pub struct Store;

/// A user.
#[derive(Debug)]
pub struct User;

impl FromContext for User {
    type Error = ToolError;

    async fn from_context(_: &Context) -> Result<Self, ToolError> {
        Ok(Self)
    }
}

/// Nothing injected.
#[mcp_tool(task)]
pub async fn bare() {}

/// The flag, spelt out.
#[mcp_tool(task = true, timeout = "5s", max_concurrency = 2)]
pub async fn spelt(target: String, store: &Store, ctx: &Context) -> String {
    format!("{target} {store:?} {}", ctx.is_cancelled())
}

/// No task.
#[mcp_tool(task = false)]
pub fn none() {}

/// Nothing but a task.
#[mcp_tool(task = required)]
pub async fn required(#[mcp(inject)] user: User) -> String {
    format!("{user:?}")
}

/// Starts automatically.
#[mcp_tool(task = manual)]
pub async fn manual(ctx: &Context) -> bool {
    ctx.start_task().await
}

/// On the blocking pool.
#[mcp_tool(task, blocking)]
pub fn blocking(store: &Store) -> String {
    format!("{store:?}")
}

/// A service.
#[derive(Debug)]
pub struct Builds;

#[mcp_service]
impl Builds {
    /// A method.
    #[mcp_tool(task)]
    pub async fn build(&self, target: String) -> String {
        target
    }

    /// A method on the blocking pool.
    #[mcp_tool(task = required, blocking)]
    pub fn crunch(&self) -> u32 {
        7
    }
}

mod taken {
    #![allow(dead_code)]

    struct Clone;
    struct Option;
    struct Result;

    /// Names mean something else here.
    #[mcp_runtime::mcp_tool(task, blocking)]
    fn shadowed() {}

    /// And here.
    #[mcp_runtime::mcp_tool(task)]
    async fn waiting() {}
}
