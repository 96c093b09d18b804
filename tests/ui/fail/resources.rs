//! Options and results of resources.

include!("../support/table.rs");

mistakes! {
    resource_unknown_option: #[mcp_resource(uri = "docs://a", mime_type = "text/plain")] ()
    mime_not_a_type: #[mcp_resource(uri = "docs://a", mime = "json")] ()
    size_string: #[mcp_resource(uri = "docs://a", size = "1")] ()
    size_of_template: #[mcp_resource(uri = "docs://{id}", size = 1024)] (id: u64)
    priority_too_high: #[mcp_resource(uri = "docs://a", priority = 1.5)] ()
    audience_unknown: #[mcp_resource(uri = "docs://a", audience("model"))] ()
    cache_without_ttl: #[mcp_resource(uri = "docs://a", cache(public))] ()
    cache_bad_duration: #[mcp_resource(uri = "docs://a", cache(ttl = "soon"))] ()
    cache_unknown: #[mcp_resource(uri = "docs://a", cache(ttl = "60s", privat))] ()
    cache_public_with_scopes: #[mcp_resource(uri = "docs://a", scopes("read"), cache(ttl = "60s", public))] ()
    list_string: #[mcp_resource(uri = "docs://{id}", list = "ids")] (id: u32)
    resource_param_str: #[mcp_resource(uri = "notes://{id}")] (id: &str)
    resource_with_flatten: #[mcp_resource(uri = "docs://{id}")] (#[mcp(flatten)] id: u32)
    resource_with_header: #[mcp_resource(uri = "docs://{id}")] (#[mcp(header = "Id")] id: u32)
}

mod list_of_one_resource {
    use mcp_runtime::prelude::*;

    fn all() -> Vec<String> {
        Vec::new()
    }

    #[mcp_resource(uri = "docs://one", list = all)]
    fn page() -> String {
        all().concat()
    }
}

mod list_blocking_async {
    use mcp_runtime::mcp_resource;

    async fn ids() -> Vec<String> {
        Vec::new()
    }

    #[mcp_resource(uri = "docs://{id}", list = blocking(ids))]
    fn page(id: u32) -> u32 {
        id
    }
}

mod list_not_send {
    use mcp_runtime::mcp_resource;

    async fn names() -> Vec<String> {
        let id = std::rc::Rc::new(1);
        std::future::ready(()).await;
        vec![format!("docs://{id}")]
    }

    #[mcp_resource(uri = "docs://{id}", list = names)]
    fn page(id: u32) -> u32 {
        id
    }
}

mod subscribe_blocking {
    use mcp_runtime::{mcp_resource, resource::Subscription};

    fn may(wanted: &Subscription) -> bool {
        wanted.uri.len() > 5
    }

    #[mcp_resource(uri = "docs://{id}", subscribe = blocking(may))]
    fn page(id: u32) -> u32 {
        id
    }
}

mod subscribe_async {
    use mcp_runtime::{mcp_resource, resource::Subscription};

    async fn may_subscribe(wanted: &Subscription) -> bool {
        wanted.uri.len() > 5
    }

    #[mcp_resource(uri = "docs://{id}", subscribe = may_subscribe)]
    fn page(id: u32) -> u32 {
        id
    }
}

mod registered_prompt {
    use mcp_runtime::mcp_prompt;

    #[mcp_prompt]
    fn review(id: &str) -> String {
        id.to_owned()
    }

    fn start() {
        let _ = mcp_runtime::server!().prompt::<review>().build();
    }
}

fn main() {}
