use mcp_runtime::{mcp_service, mcp_tool};

struct Catalogue;

#[mcp_service]
impl Catalogue {
    #[mcp_tool]
    fn search(&self, query: str) -> String {
        query.len().to_string()
    }
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().service(Catalogue).run()
}
