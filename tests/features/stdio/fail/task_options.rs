fn main() {
    let _ = mcp_runtime::server!().tasks(|tasks| tasks.max_running(8)).build();
}
