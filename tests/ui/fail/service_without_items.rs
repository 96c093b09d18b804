use mcp_runtime::mcp_service;

struct Weather;

#[mcp_service]
impl Weather {
    fn forecast(&self, city: String) -> String {
        city
    }
}

const _: fn(&Weather, String) -> String = Weather::forecast;

fn main() {}
