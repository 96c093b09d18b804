use mcp_runtime::prelude::*;

#[mcp_service]
trait Forecast {
    /// The forecast for a city.
    #[mcp_tool(read_only)]
    async fn forecast(&self, #[mcp(default = "Oslo")] city: String) -> String;

    #[mcp_runtime::mcp_tool]
    fn days(&self) -> u32 {
        7
    }
}

fn main() {}
