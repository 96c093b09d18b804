use mcp_runtime::mcp_tool;

struct Db {
    name: String,
}

#[mcp_tool]
fn name(db: &Db) -> &str {
    &db.name
}

fn main() {}
