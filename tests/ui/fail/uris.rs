//! URIs of resources, and their variables.

mod uri_number {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = 5)]
    fn page() -> String {
        String::new()
    }
}

mod uri_without_scheme {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "pages/{id}")]
    fn page(id: u32) -> u32 {
        id
    }
}

mod uri_unclosed {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://{id")]
    fn page(id: u32) -> u32 {
        id
    }
}

mod uri_unsupported {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://x{#id}")]
    fn page(id: u32) -> u32 {
        id
    }
}

mod uri_adjacent_variables {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://{a}{b}")]
    fn page(a: String, b: String) -> String {
        a + &b
    }
}

mod uri_variable_twice {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://{id}/{id}")]
    fn page(id: u32) -> u32 {
        id
    }
}

mod uri_query_first {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://x{?q}/y")]
    fn page(q: Option<u32>) -> Option<u32> {
        q
    }
}

mod uri_with_dollar {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "notes://${id}")]
    fn note(id: String) -> String {
        id
    }
}

mod uri_percent {
    use mcp_runtime::prelude::*;

    #[mcp_resource(uri = "docs://100%")]
    fn page() -> String {
        String::new()
    }
}

mod uri_not_ascii {
    use mcp_runtime::prelude::*;

    #[mcp_resource(uri = "docs://büro")]
    fn page() -> String {
        String::new()
    }
}

mod uri_variable_without_parameter {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://{id}/{page}")]
    fn page(id: u32) -> String {
        id.to_string()
    }
}

mod uri_parameter_without_variable {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://{id}")]
    fn page(id: u32, page: u32) -> u32 {
        id + page
    }
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

mod title_of_variable {
    use mcp_runtime::mcp_resource;

    #[mcp_resource(uri = "docs://{id}")]
    fn doc(#[mcp(title = "Number")] id: u32) -> String {
        id.to_string()
    }
}

fn main() {}
