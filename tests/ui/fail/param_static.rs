use mcp_runtime::mcp_tool;

struct Db;

#[mcp_tool]
fn search(db: &'static Db) -> String {
    let _: &'static Db = db;
    String::new()
}

fn main() {}
