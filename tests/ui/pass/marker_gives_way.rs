//! The type for `.tool::<name>()` gives way to modules, imports, types and crates of the function's name.
#![deny(warnings)]

use mcp_runtime::prelude::*;
use tokio::time;

mod run {
    pub fn steps() -> u32 {
        3
    }
}

/// Runs it.
#[mcp_tool]
fn run() -> u32 {
    run::steps()
}

/// The crate of the same name is used in the body.
#[mcp_tool]
fn serde_json() -> String {
    serde_json::json!({}).to_string()
}

/// A module is imported under the name.
#[mcp_tool]
async fn time() -> u32 {
    time::sleep(time::Duration::ZERO).await;
    1
}

#[allow(non_camel_case_types)]
struct report {}

/// A type has the name.
#[mcp_tool]
fn report() -> u32 {
    let _ = report {};
    1
}

/// Named explicitly.
#[mcp_tool(marker = RunTool)]
fn run_again() -> u32 {
    run::steps()
}

/// Found by discovery only.
#[mcp_prompt(marker = none)]
fn hidden() -> &'static str {
    "x"
}

mod inner {
    use mcp_runtime::prelude::*;

    /// Imported with its function.
    #[mcp_tool]
    pub(super) fn search() -> u32 {
        super::run::steps()
    }

    /// Exported again.
    #[mcp_resource]
    pub fn page() -> &'static str {
        "x"
    }

    #[cfg(any())]
    /// Not compiled.
    #[mcp_tool]
    pub fn absent() -> Missing {}
}
pub use inner::page;
use inner::search;

macro_rules! tool {
    ($name:ident) => {
        /// Made by a macro.
        #[mcp_tool]
        fn $name() -> u32 {
            1
        }
    };
}
tool!(made);

/// The name with generic arguments is a function's, and the type is there.
#[mcp_tool]
fn collect() -> String {
    ["a", "b"].into_iter().collect::<String>()
}

pub(crate) fn main() {
    /// Inside a function.
    #[mcp_tool]
    fn local() -> u32 {
        1
    }
    let built = mcp_runtime::server!()
        .tool::<search>()
        .resource::<page>()
        .tool::<RunTool>()
        .tool::<made>()
        .tool::<local>()
        .tool::<collect>()
        .discover_in(module_path!())
        .build();
    assert!(built.is_ok(), "{built:?}");
    let _ = (
        run(),
        serde_json(),
        time(),
        report(),
        run_again(),
        hidden(),
        search(),
        page(),
        made(),
        local(),
        collect(),
    );
}
