use mcp_runtime::prelude::*;

trait Search {
    #[mcp_tool]
    fn search(&self, query: String) -> String;
}

fn main() {}
