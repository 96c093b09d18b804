//! A server for any source tree: search it, outline its files, read them, have one explained.
//!
//! ```sh
//! cargo run --release --example repo -- list
//! cargo run --release --example repo -- call search '{"pattern": "fn main", "include": ["*.rs"]}'
//! REPO_ROOT=../other cargo run --release --example repo -- read repo:///README.md
//! cargo run --release --example repo -- --http 127.0.0.1:8080
//! ```
//!
//! The tree is `REPO_ROOT`, or the current directory. Files that `.gitignore` excludes, hidden files,
//! and files behind symbolic links that leave the tree are neither listed nor searched nor read.

mod file;
mod outline;
mod refused;
pub(crate) mod root;
pub(crate) mod search;

use mcp_runtime::{ServerBuilder, content::Embedded, prelude::*};

use refused::Refused;
use root::Root;

/// The audience of an explanation.
#[mcp_type]
#[derive(Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Audience {
    Newcomer,
    Reviewer,
    Maintainer,
}

/// Explain one file to a reader.
#[mcp_prompt]
async fn explain(
    /// Path of the file, from the root of the tree
    #[mcp(complete = file::paths)]
    path: String,
    /// Who is going to read it
    audience: Audience,
    root: &Root,
) -> Result<(Embedded, String), ToolError> {
    let contents = file::contents(&path, root).await?.ok_or(Refused::NoFile(path.clone())).public()?;
    let focus = match audience {
        Audience::Newcomer => {
            "what it is for and how to read it, without assuming any knowledge of the project"
        }
        Audience::Reviewer => "what could be wrong with it, and what to look at first",
        Audience::Maintainer => "its invariants, and what depends on them",
    };
    Ok((Embedded::new(contents), format!("Explain `{path}`: {focus}.")))
}

pub(crate) fn server(root: Root) -> ServerBuilder {
    mcp_runtime::server!()
        .info(|info| {
            info.name("repo").instructions(
                "Find code with `search`, look at a file's shape with `outline`, read it as `repo:///path`.",
            )
        })
        .state(root)
        .tool::<search::search>()
        .tool::<outline::outline>()
        .resource::<file::tree>()
        .resource::<file::file>()
        .prompt::<explain>()
}

fn main() -> mcp_runtime::Result<()> {
    let root = std::env::var_os("REPO_ROOT").unwrap_or_else(|| ".".into());
    server(Root::open(root)?).run()
}
