use mcp_runtime::{mcp_service, mcp_tool};

struct Weather<T>(T);

#[mcp_service]
impl<T: Sync> Weather<T> {
    #[mcp_tool]
    fn forecast(&self, city: String) -> String {
        city
    }
}

fn main() {}
