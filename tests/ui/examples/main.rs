//! `#[mcp_runtime::main]` with a result, and beside other attributes.

#![deny(warnings)]

/// Starts.
#[mcp_runtime::main]
#[allow(clippy::needless_return)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let number: u32 = std::future::ready("5").await.parse()?;
    assert_eq!(number, 5);
    return Ok(());
}
