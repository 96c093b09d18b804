use mcp_runtime::mcp_tool;

struct Db;

#[mcp_tool]
fn search<'a>(db: &'a Db) -> String {
    let _: &'a Db = db;
    String::new()
}

fn main() {}
