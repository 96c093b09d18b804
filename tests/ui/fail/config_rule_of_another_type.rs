use mcp_runtime::mcp_config;

#[mcp_config]
struct Settings {
    #[mcp(range(1..))]
    name: String,
}

fn main() {
    let _name = Settings::load().map(|settings| settings.name);
}
