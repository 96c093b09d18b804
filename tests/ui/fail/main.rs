//! `#[mcp_runtime::main]`.

mod main_not_async {
    #[mcp_runtime::main]
    fn main() {}
}

mod main_with_parameter {
    #[mcp_runtime::main]
    async fn main(_: u32) {}
}

fn main() {}
