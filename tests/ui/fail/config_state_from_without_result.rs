use mcp_runtime::mcp_config;

#[mcp_config]
struct Settings {
    name: String,
}

fn main() {
    let _server = mcp_runtime::server!()
        .config::<Settings>()
        .state_from(|settings: &Settings| settings.name.clone());
}
