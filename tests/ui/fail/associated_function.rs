use mcp_runtime::mcp_tool;

struct Weather;

impl Weather {
    #[mcp_tool]
    fn forecast(city: String) -> String {
        city
    }
}

fn main() {}
