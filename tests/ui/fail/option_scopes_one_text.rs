use mcp_runtime::auth::Oauth;
use mcp_runtime::prelude::*;

#[mcp_tool]
fn search(words: String) -> String {
    words
}

fn main() -> mcp_runtime::Result<()> {
    let auth = Oauth::issuer("https://id.example.com").resource("https://mcp.example.com/mcp");
    mcp_runtime::server!().discover().auth(auth.scopes("notes:read")).run()
}
