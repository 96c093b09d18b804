use mcp_runtime::prelude::*;

trait Catalogue: Send + Sync {
    fn count(&self) -> usize;
}

#[mcp_tool]
fn search(catalogue: dyn Catalogue) -> usize {
    catalogue.count()
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().tool::<search>().run()
}
