use mcp_runtime::mcp_tool;

struct Db {
    name: String,
}

#[mcp_tool]
fn name(Db { name }: &Db) -> String {
    name.clone()
}

fn main() {}
