use mcp_runtime::prelude::*;

struct Db;
struct State<T>(T);

#[mcp_tool]
fn search(State(db): State<Db>) -> String {
    let Db = db;
    String::new()
}

fn main() {}
