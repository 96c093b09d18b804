use mcp_runtime::auth::Oauth;

fn main() {
    let _ = mcp_runtime::server!().auth(Oauth::issuer("https://id.example.com")).build();
}
