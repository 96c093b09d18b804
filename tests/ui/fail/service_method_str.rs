use mcp_runtime::{mcp_service, mcp_tool};

struct Weather;

#[mcp_service]
impl Weather {
    #[mcp_tool]
    fn forecast(&self, city: &str) -> String {
        city.to_owned()
    }
}

fn main() {}
