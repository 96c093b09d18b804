use mcp_runtime::event;

fn main() {
    let _ = mcp_runtime::server!().add(event::of::<()>()).build();
}
