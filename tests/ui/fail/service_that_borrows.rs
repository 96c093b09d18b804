use mcp_runtime::prelude::*;

struct Notes<'a>(&'a str);

#[mcp_service]
impl Notes<'_> {
    #[mcp_tool]
    fn note(&self) -> String {
        self.0.to_owned()
    }
}

fn main() {}
