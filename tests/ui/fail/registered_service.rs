use mcp_runtime::{mcp_service, mcp_tool};

struct Weather;

#[mcp_service]
impl Weather {
    #[mcp_tool(timeout = "5s")]
    fn forecast(&self, city: String) -> String {
        city
    }
}

fn main() {
    let _ = mcp_runtime::server!().service(Weather).build();
}
