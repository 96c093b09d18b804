use mcp_runtime::client::Client;

fn main() {
    let _ = Client::connect("server");
}
