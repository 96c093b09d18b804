use mcp_runtime::mcp_tool;

struct Db(std::cell::Cell<u32>);

#[mcp_tool]
fn search(db: &Db) -> u32 {
    db.0.get()
}

fn main() {}
