fn main() {
    let _ = mcp_runtime::server!().shared(mcp_runtime::store::Memory::default()).build();
}
