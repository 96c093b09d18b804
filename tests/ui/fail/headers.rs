//! `header`.

include!("../support/table.rs");

mistakes! {
    header_alone: #[mcp_tool] (#[mcp(header)] value: String)
    header_not_a_token: #[mcp_tool] (#[mcp(header = "My Region")] value: String)
    duplicate_headers: #[mcp_tool] (#[mcp(header = "Region")] first: String, #[mcp(header = "REGION")] second: String)
    header_on_float: #[mcp_tool] (#[mcp(header = "Ratio")] value: f64)
    header_on_unbounded_integer: #[mcp_tool] (#[mcp(header = "Count")] value: u64)
    header_range_too_wide: #[mcp_tool] (#[mcp(header = "Count", range(0..=9007199254740992))] value: u64)
}

fn main() {}
