//! Methods that belong elsewhere.

mod server_new {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(words: String) -> String {
        words
    }

    fn start() -> mcp_runtime::Result<()> {
        let server = mcp_runtime::Server::new();
        server.tool::<search>().run()
    }
}

mod builder_bind {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(words: String) -> String {
        words
    }

    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().discover().bind("0.0.0.0:8080").run()
    }
}

mod builder_with_method_of_handle {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(words: String) -> String {
        words
    }

    fn start() -> mcp_runtime::Result<()> {
        let server = mcp_runtime::server!().discover();
        server.tools_changed();
        server.run()
    }
}

mod option_on_builder {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(q: String) -> String {
        q
    }

    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().discover().max_in_flight(8).run()
    }
}

mod option_of_info_on_builder {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(q: String) -> String {
        q
    }

    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().discover().name("x").run()
    }
}

mod option_in_other_group {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(q: String) -> String {
        q
    }

    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().discover().http(|h| h.max_in_flight(8)).run()
    }
}

mod option_port {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(words: String) -> String {
        words
    }

    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().discover().http(|http| http.port(8080)).run()
    }
}

mod option_after_build {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(q: String) -> String {
        q
    }

    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().discover().build()?.limits(|l| l.max_in_flight(8)).run()
    }
}

mod telemetry_otel {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(q: String) -> String {
        q
    }

    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().discover().telemetry(|t| t.otel("http://localhost:4317")).run()
    }
}

mod event_method {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Order {
        id: u32,
    }

    #[mcp_event]
    fn ordered(#[mcp(payload)] _order: &Order) {}

    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().event::<ordered>().run()
    }
}

mod event_method_value {
    use mcp_runtime::prelude::*;

    #[mcp_type]
    struct Purchase {
        id: u32,
    }

    #[mcp_event]
    fn purchased(#[mcp(payload)] _order: &Purchase) {}

    fn start() -> mcp_runtime::Result<()> {
        mcp_runtime::server!().event(purchased).run()
    }
}

mod client_new {
    use mcp_runtime::client::Client;
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn search(words: String) -> String {
        words
    }

    #[mcp_runtime::main]
    async fn start() -> Result<(), Box<dyn std::error::Error>> {
        let client = Client::new("https://example.com/mcp").await?;
        println!("{:?}", client.tools().await?.len());
        Ok(())
    }
}

mod client_call_tool {
    use mcp_runtime::prelude::*;
    use mcp_runtime::client::Client;

    #[mcp_tool]
    fn search(q: String) -> String {
        q
    }

    #[mcp_runtime::main]
    async fn start() -> Result<(), Box<dyn std::error::Error>> {
        let s = mcp_runtime::server!().discover().build()?;
        let c = Client::connect(&s).await?;
        c.call_tool("search", serde_json::json!({})).await?;
        Ok(())
    }
}

fn main() {}
