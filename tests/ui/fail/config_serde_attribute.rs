use mcp_runtime::mcp_config;

#[mcp_config]
struct Settings {
    #[serde(rename = "time")]
    timeout: u64,
}

fn main() {
    let _timeout = Settings::load().map(|settings| settings.timeout);
}
