struct Settings;

fn main() {
    let _server = mcp_runtime::server!().config::<Settings>();
}
