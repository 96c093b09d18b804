use std::sync::Arc;

use mcp_runtime::prelude::*;

struct Db;

#[mcp_tool]
fn search(db: Arc<Db>) -> usize {
    Arc::strong_count(&db)
}

fn main() {}
