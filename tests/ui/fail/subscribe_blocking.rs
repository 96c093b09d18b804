use mcp_runtime::{mcp_resource, resource::Subscription};

fn may(wanted: &Subscription) -> bool {
    wanted.uri.len() > 5
}

#[mcp_resource(uri = "docs://{id}", subscribe = blocking(may))]
fn page(id: u32) -> u32 {
    id
}

fn main() {}
