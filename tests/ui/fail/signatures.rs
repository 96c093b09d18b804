//! Signatures that a tool cannot have.

include!("../support/functions.rs");

mistakes! {
    signature_generic: #[mcp_tool] [fn search<T: ToString>(query: T) -> String]
    signature_const_generic: #[mcp_tool] [fn search<const N: usize>(query: String) -> String]
    signature_lifetime: #[mcp_tool] [fn search<'a>(db: &'a Db) -> String]
    signature_where: #[mcp_tool] [fn search(query: String) -> String where String: Clone,]
    signature_unsafe: #[mcp_tool] [unsafe fn search(query: String) -> String]
    signature_extern: #[mcp_tool] [extern "C" fn search(count: u32) -> u32]
    signature_variadic: #[mcp_tool] [fn search(count: u32, _: ...) -> u32]
}

mod signature_without_body {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(query: String) -> String;
}

fn main() {}
