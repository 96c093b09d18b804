use mcp_runtime::mcp_config;

#[mcp_config]
struct Settings {
    #[mcp(default = "many")]
    count: u64,
}

fn main() {
    let _count = Settings::load().map(|settings| settings.count);
}
