//! Signatures that a tool cannot have.

mod signature_generic {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search<T: ToString>(query: T) -> String {
        query.to_string()
    }
}

mod signature_const_generic {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search<const N: usize>(query: String) -> String {
        query.repeat(N)
    }
}

mod signature_lifetime {
    use mcp_runtime::mcp_tool;

    struct Db;

    #[mcp_tool]
    fn search<'a>(db: &'a Db) -> String {
        let _: &'a Db = db;
        String::new()
    }
}

mod signature_where {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(query: String) -> String
    where
        String: Clone,
    {
        query
    }
}

mod signature_unsafe {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    unsafe fn search(query: String) -> String {
        query
    }
}

mod signature_extern {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    extern "C" fn search(count: u32) -> u32 {
        count
    }
}

mod signature_variadic {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(count: u32, _: ...) -> u32 {
        count
    }
}

mod signature_without_body {
    use mcp_runtime::mcp_tool;

    #[mcp_tool]
    fn search(query: String) -> String;
}

fn main() {}
