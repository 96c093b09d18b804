use mcp_runtime::{mcp_service, mcp_tool};

struct Weather;

#[mcp_service]
impl Forecast for Weather {
    #[mcp_tool]
    fn forecast(&self, city: String) -> String {
        city
    }
}

trait Forecast {
    fn forecast(&self, city: String) -> String;
}

fn main() {}
