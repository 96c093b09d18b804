use mcp_runtime::prelude::*;

struct Shop;

#[mcp_service(markers = shop)]
impl Shop {
    /// Searches.
    #[mcp_tool]
    fn search(&self, words: String) -> String {
        words
    }
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().tool::<shop::search>().run()
}
