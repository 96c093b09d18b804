use mcp_runtime::testing::TestServer;

fn main() {
    let _ = TestServer::new(mcp_runtime::server!());
}
