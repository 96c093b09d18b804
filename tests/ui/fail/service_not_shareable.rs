use std::cell::Cell;

use mcp_runtime::prelude::*;

struct Counter(Cell<u32>);

#[mcp_service]
impl Counter {
    #[mcp_tool]
    fn count(&self) -> u32 {
        self.0.get()
    }
}

fn main() {
    let _ = mcp_runtime::server!().service(Counter(Cell::new(1))).build();
}
