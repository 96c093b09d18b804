fn main() {
    let _ = mcp_runtime::server!().info(|info| info.registry_name("com.example/notes")).build();
}
