use mcp_runtime::prelude::*;

struct Shop;

#[mcp_service]
impl Shop {
    /// Searches.
    #[mcp_tool(marker = SearchShop)]
    fn search(&self, words: String) -> String {
        words
    }
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().service(Shop).run()
}
