use std::sync::Arc;

use mcp_runtime::prelude::*;

trait Repo {
    fn count(&self) -> u32;
}

#[mcp_tool]
fn search(repo: &dyn Repo) -> u32 {
    repo.count()
}

fn register(repo: Arc<dyn Repo>) {
    let _ = mcp_runtime::server!().tool::<search>().state(repo).build();
}

fn main() {
    let _ = register;
}
