use std::cell::RefCell;

use mcp_runtime::prelude::*;

struct Db(RefCell<u32>);

#[mcp_tool]
fn search(db: &Db) -> u32 {
    *db.0.borrow()
}

fn main() {
    let _ = mcp_runtime::server!().tool::<search>().state(Db(RefCell::new(1))).build();
}
