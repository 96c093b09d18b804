use mcp_runtime::mcp_config;

struct Place;

#[mcp_config]
struct Settings {
    place: Place,
}

const _: Option<Settings> = None;

fn main() {}
