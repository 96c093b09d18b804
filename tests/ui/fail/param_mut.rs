use mcp_runtime::mcp_tool;

struct Db;

#[mcp_tool]
fn search(db: &mut Db) -> String {
    let _: &mut Db = db;
    String::new()
}

fn main() {}
