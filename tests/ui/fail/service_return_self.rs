use mcp_runtime::{mcp_service, mcp_tool};

struct Catalogue;

#[mcp_service]
impl Catalogue {
    #[mcp_tool]
    fn copy(&self) -> Self {
        Self
    }
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().service(Catalogue).run()
}
