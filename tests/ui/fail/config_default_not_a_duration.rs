use std::time::Duration;

use mcp_runtime::mcp_config;

#[mcp_config]
struct Settings {
    #[mcp(default = "soon")]
    wait: Duration,
}

fn main() {
    let _wait = Settings::load().map(|settings| settings.wait);
}
