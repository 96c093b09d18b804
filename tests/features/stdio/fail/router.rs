fn main() -> mcp_runtime::Result<()> {
    let _router = mcp_runtime::server!().into_router()?;
    Ok(())
}
