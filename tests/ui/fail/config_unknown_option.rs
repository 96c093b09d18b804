use mcp_runtime::mcp_config;

#[mcp_config]
struct Settings {
    #[mcp(defautl = 5)]
    timeout: u64,
}

fn main() {
    let _server = mcp_runtime::server!().config::<Settings>();
    let _timeout = Settings::load().map(|settings| settings.timeout);
}
