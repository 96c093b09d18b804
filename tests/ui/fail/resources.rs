//! Options and results of resources.

mod resource_unknown_option {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://a", mime_type = "text/plain")]
    fn page() -> String {
        String::new()
    }
}

mod mime_not_a_type {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://a", mime = "json")]
    fn page() -> String {
        String::new()
    }
}

mod size_string {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://a", size = "1")]
    fn page() -> String {
        String::new()
    }
}

mod size_of_template {
    use mcp_runtime::prelude::*;

    #[mcp_resource(uri = "docs://{id}", size = 1024)]
    fn page(id: u64) -> String {
        id.to_string()
    }
}

mod priority_too_high {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://a", priority = 1.5)]
    fn page() -> String {
        String::new()
    }
}

mod audience_unknown {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://a", audience("model"))]
    fn page() -> String {
        String::new()
    }
}

mod cache_without_ttl {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://a", cache(public))]
    fn page() -> String {
        String::new()
    }
}

mod cache_bad_duration {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://a", cache(ttl = "soon"))]
    fn page() -> String {
        String::new()
    }
}

mod cache_unknown {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://a", cache(ttl = "60s", privat))]
    fn page() -> String {
        String::new()
    }
}

mod cache_public_with_scopes {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://a", scopes("read"), cache(ttl = "60s", public))]
    fn page() -> String {
        String::new()
    }
}

mod list_string {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://{id}", list = "ids")]
    fn page(id: u32) -> u32 {
        id
    }
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

mod resource_param_str {
    use mcp_runtime::prelude::*;

    #[mcp_resource(uri = "notes://{id}")]
    fn note(id: &str) -> String {
        id.to_owned()
    }
}

mod resource_with_flatten {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://{id}")]
    fn page(#[mcp(flatten)] id: u32) -> u32 {
        id
    }
}

mod resource_with_header {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://{id}")]
    fn page(#[mcp(header = "Id")] id: u32) -> u32 {
        id
    }
}

mod resource_returns_content_list {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://a")]
    fn page() -> Vec<String> {
        Vec::new()
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
