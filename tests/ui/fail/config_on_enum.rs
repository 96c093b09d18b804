use mcp_runtime::mcp_config;

#[mcp_config]
enum Settings {
    Plain,
}

const _: Settings = Settings::Plain;

fn main() {}
