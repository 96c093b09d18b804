struct Deployed;

async fn deploy(server: &mcp_runtime::ServerHandle) {
    let _ = server.emit::<Deployed>(&"1.0.0").await;
}

fn main() {}
