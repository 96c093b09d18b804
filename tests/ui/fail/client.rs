//! Clients and their typed calls.

mod client_connect_builder {
    use mcp_runtime::client::Client;

    #[mcp_runtime::main]
    async fn start() -> Result<(), Box<dyn std::error::Error>> {
        let c = Client::connect(mcp_runtime::server!().discover()).await?;
        println!("{:?}", c.tools().await?.len());
        Ok(())
    }
}

mod client_connect_builder_reference {
    use mcp_runtime::client::Client;

    #[mcp_runtime::main]
    async fn start() -> Result<(), Box<dyn std::error::Error>> {
        let c = Client::connect(&mcp_runtime::server!().discover()).await?;
        println!("{:?}", c.tools().await?.len());
        Ok(())
    }
}

mod client_handler_not_async {
    use mcp_runtime::{client::Client, client_request::Root};

    #[mcp_runtime::main]
    async fn start() -> Result<(), Box<dyn std::error::Error>> {
        let s = mcp_runtime::server!().discover().build()?;
        let c = Client::builder().on_roots(|| vec![Root::new("file:///")]).connect(&s).await?;
        println!("{:?}", c.tools().await?.len());
        Ok(())
    }
}

mod client_typed_value {
    use mcp_runtime::prelude::*;
    use mcp_runtime::client::Client;

    #[mcp_tool]
    fn look_up(q: String) -> String {
        q
    }

    #[mcp_runtime::main]
    async fn start() -> Result<(), Box<dyn std::error::Error>> {
        let s = mcp_runtime::server!().discover().build()?;
        let c = Client::connect(&s).await?;
        let r: String = c.typed(look_up).call(("tea".into(),)).await?;
        println!("{r}");
        Ok(())
    }
}

mod client_typed_prompt_called {
    use mcp_runtime::prelude::*;
    use mcp_runtime::client::Client;

    #[mcp_prompt]
    fn search(q: String) -> String {
        q
    }

    #[mcp_runtime::main]
    async fn start() -> Result<(), Box<dyn std::error::Error>> {
        let s = mcp_runtime::server!().discover().build()?;
        let c = Client::connect(&s).await?;
        let r = c.typed::<search>().call(("tea".into(),)).await?;
        let _ = r;
        Ok(())
    }
}

mod typed_call_wrong_argument {
    use mcp_runtime::{client::Client, prelude::*};

    /// Adds
    #[mcp_tool]
    fn add(a: i64, b: i64) -> i64 {
        a + b
    }

    async fn call(client: &Client) -> i64 {
        client.typed::<add>().call((1, "2")).await.unwrap()
    }
}

mod typed_call_unreadable_result {
    use mcp_runtime::{client::Client, content::Image, prelude::*};

    /// Draws
    #[mcp_tool]
    fn draw(width: u8) -> Image {
        Image::new(vec![0; width.into()], "image/png")
    }

    async fn call(client: &Client) {
        let _ = client.typed::<draw>().call((1,)).await;
    }
}

mod typed_read_wrong_variable {
    use mcp_runtime::{client::Client, prelude::*};

    /// A page
    #[mcp_resource(uri = "page://{number}")]
    fn page(number: u32) -> String {
        number.to_string()
    }

    async fn read(client: &Client) -> String {
        client.typed::<page>().read(("one",)).await.unwrap()
    }
}

mod typed_read_unreadable_contents {
    use mcp_runtime::{client::Client, content::ResourceContents, prelude::*};

    /// A page
    #[mcp_resource(uri = "page://{name}")]
    fn page(name: String) -> Vec<ResourceContents> {
        vec![ResourceContents::text(name)]
    }

    async fn read(client: &Client) {
        let _ = client.typed::<page>().read(("a".to_owned(),)).await;
    }
}

fn main() {}
