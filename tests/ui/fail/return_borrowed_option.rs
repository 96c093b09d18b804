use mcp_runtime::mcp_tool;

struct Db {
    name: Option<String>,
}

#[mcp_tool]
fn name(db: &Db) -> Option<&str> {
    db.name.as_deref()
}

fn main() {}
