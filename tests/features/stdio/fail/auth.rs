struct Members;

fn main() {
    let _ = mcp_runtime::server!().auth(Members).build();
}
