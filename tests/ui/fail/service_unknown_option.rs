use mcp_runtime::{mcp_service, mcp_tool};

struct Weather;

#[mcp_service(name = "weather")]
impl Weather {
    #[mcp_tool]
    fn forecast(&self, city: String) -> String {
        city
    }
}

fn main() {}
