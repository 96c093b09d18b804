use mcp_runtime::mcp_resource;

struct Timing;

#[mcp_resource(uri = "docs://one", layers(Timing))]
fn one() -> &'static str {
    "one"
}

fn main() {}
