//! Signatures that a tool cannot have, or not with its attributes.

include!("../support/functions.rs");

mistakes! {
    signature_generic: #[mcp_tool] [fn search<T: ToString>(query: T) -> String]
    signature_const_generic: #[mcp_tool] [fn search<const N: usize>(query: String) -> String]
    signature_lifetime: #[mcp_tool] [fn search<'a>(db: &'a Db) -> String]
    signature_where: #[mcp_tool] [fn search(query: String) -> String where String: Clone,]
    signature_unsafe: #[mcp_tool] [unsafe fn search(query: String) -> String]
    signature_extern: #[mcp_tool] [extern "C" fn search(count: u32) -> u32]
    signature_variadic: #[mcp_tool] [fn search(count: u32, _: ...) -> u32]
    param_str_by_value: #[mcp_tool] [fn search(query: str) -> String]
    name_of_function_not_ascii: #[mcp_tool] [fn größe() -> u32]
    timeout_on_plain_fn: #[mcp_tool(timeout = "5s")] [fn search(query: String) -> String]
    blocking_on_async_fn: #[mcp_tool(blocking)] [async fn search(query: String) -> String]
    task_on_plain_fn: #[mcp_tool(task)] [fn search(query: String) -> String]
    task_manual_blocking: #[mcp_tool(task = manual, blocking)] [fn search(query: String) -> String]
}

mod signature_without_body {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(query: String) -> String;
}

fn main() {}
