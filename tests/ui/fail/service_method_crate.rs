use mcp_runtime::{mcp_service, mcp_tool};

struct Weather;

#[mcp_service]
impl Weather {
    #[mcp_tool(crate = mcp_runtime)]
    fn forecast(&self, city: String) -> String {
        city
    }
}

fn main() {}
