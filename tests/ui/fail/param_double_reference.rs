use mcp_runtime::mcp_tool;

struct Db;

#[mcp_tool]
fn search(db: &&Db) -> String {
    let _: &Db = db;
    String::new()
}

fn main() {}
