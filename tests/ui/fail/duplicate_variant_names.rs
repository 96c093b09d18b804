use mcp_runtime::mcp_type;

#[mcp_type]
enum Unit {
    #[serde(rename = "c")]
    Celsius,
    #[serde(rename = "c")]
    Century,
}

fn main() {}
