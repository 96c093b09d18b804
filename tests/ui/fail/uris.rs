//! URIs of resources, and their variables.

include!("../support/table.rs");

mistakes! {
    uri_number: #[mcp_resource(uri = 5)] ()
    uri_without_scheme: #[mcp_resource(uri = "pages/{id}")] (id: u32)
    uri_unclosed: #[mcp_resource(uri = "docs://{id")] (id: u32)
    uri_unsupported: #[mcp_resource(uri = "docs://x{#id}")] (id: u32)
    uri_adjacent_variables: #[mcp_resource(uri = "docs://{a}{b}")] (a: String, b: String)
    uri_variable_twice: #[mcp_resource(uri = "docs://{id}/{id}")] (id: u32)
    uri_query_first: #[mcp_resource(uri = "docs://x{?q}/y")] (q: Option<u32>)
    uri_with_dollar: #[mcp_resource(uri = "notes://${id}")] (id: String)
    uri_percent: #[mcp_resource(uri = "docs://100%")] ()
    uri_not_ascii: #[mcp_resource(uri = "docs://büro")] ()
    uri_variable_without_parameter: #[mcp_resource(uri = "docs://{id}/{page}")] (id: u32)
    uri_parameter_without_variable: #[mcp_resource(uri = "docs://{id}")] (id: u32, page: u32)
    title_of_variable: #[mcp_resource(uri = "docs://{id}")] (#[mcp(title = "Number")] id: u32)
}

mod registered_resource {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "page")]
    fn page() -> String {
        String::new()
    }

    fn start() {
        let _ = mcp_runtime::server!().resource::<page>().build();
    }
}

fn main() {}
