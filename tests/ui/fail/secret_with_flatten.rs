use mcp_runtime::{mcp_tool, mcp_type};

#[mcp_type]
struct Login {
    password: String,
}

#[mcp_tool]
fn sign_in(#[mcp(flatten, secret)] login: Login) -> String {
    login.password
}

fn main() {}
