use mcp_runtime::prelude::*;

//@repeat
/// Search collection @I@ for a text and say what was asked
#[mcp_tool]
async fn search_@I@(
    /// Text to look for in collection @I@
    query: String,
    /// How many results to return
    limit: u32,
    /// Whether case is ignored
    ignore_case: Option<bool>,
) -> String {
    let n = limit + @TOUCH@;
    format!("{} {} {:?}", query, n, ignore_case)
}

//@end
fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().run()
}
