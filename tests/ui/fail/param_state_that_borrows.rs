use mcp_runtime::mcp_tool;

struct Db<'a>(&'a str);

#[mcp_tool]
fn search(db: &Db<'_>) -> String {
    db.0.to_owned()
}

fn main() {}
