use mcp_runtime::prelude::*;

struct Notes(String);

#[mcp_service]
impl Notes {
    #[mcp_tool]
    fn add<'a>(&'a self, text: String) -> String {
        text + &self.0
    }
}

fn main() {}
