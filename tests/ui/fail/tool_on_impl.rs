use mcp_runtime::mcp_tool;

struct Weather;

#[mcp_tool]
impl Weather {
    #[mcp_tool]
    fn forecast(&self, #[mcp(default)] city: String) -> String {
        city
    }
}

fn main() {}
