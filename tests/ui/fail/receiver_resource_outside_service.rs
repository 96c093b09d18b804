use mcp_runtime::mcp_resource;

struct Weather;

impl Weather {
    #[mcp_resource(uri = "weather://now")]
    async fn now(&self) -> String {
        String::new()
    }
}

fn main() {}
