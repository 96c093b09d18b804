fn main() {
    let _ = mcp_runtime::server!().audit(mcp_runtime::audit::Audit::new()).build();
}
