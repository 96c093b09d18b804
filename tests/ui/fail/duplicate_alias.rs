use mcp_runtime::mcp_type;

#[mcp_type]
struct Place {
    #[serde(alias = "town")]
    city: String,
    town: String,
}

fn main() {}
