use mcp_runtime::{mcp_service, mcp_tool};

struct Weather;

#[mcp_service]
impl Weather {
    #[mcp_tool]
    fn forecast(&mut self, city: String) -> String {
        city
    }
}

fn main() {}
