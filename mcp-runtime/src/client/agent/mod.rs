//! The tools and resources of several servers, for a model to use.
//!
//! ```no_run
//! use mcp_runtime::client::{Client, agent::{Artifacts, Toolset}};
//! use serde_json::json;
//!
//! # async fn example() -> Result<(), mcp_runtime::client::Error> {
//! let files = Client::connect("npx -y @modelcontextprotocol/server-filesystem ./data").await?;
//! let shop = Client::connect("https://shop.example.com/mcp").await?;
//! let toolset = Toolset::merge([files.toolset("files").except(["write_*"]), shop.toolset("shop")])?
//!     .allow_calls(|tool, _| tool != "shop.buy")
//!     .artifacts(Artifacts::directory("./artifacts"));
//!
//! let definitions = toolset.anthropic().await?; // the `tools` of a request to the model
//! let result = toolset.call("files.read_text_file", json!({ "path": "tea.txt" })).await?;
//! println!("{}", result.text());
//! # let _ = definitions;
//! # Ok(())
//! # }
//! ```

mod artifact;
mod artifact_stores;
mod member;
mod model_format;
mod model_schema;
mod resource_tools;
mod tool_source;
mod toolset;
mod toolset_result;

pub use self::{
    artifact::{Artifact, ArtifactRef, ArtifactStore, Artifacts},
    toolset::{Toolset, ToolsetCounters, ToolsetTool},
    toolset_result::{ResultPart, ToolsetResult},
};
