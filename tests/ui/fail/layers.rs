//! Layers of items and of servers.

include!("../support/table.rs");

mistakes! {
    layers_empty: #[mcp_tool(layers())] ()
    layers_literal: #[mcp_prompt(layers("timing"))] ()
    layers_closure: #[mcp_tool(layers(|call, next| async move { next.run(&call).await }))] ()
}

mod layers_value {
    use mcp_runtime::{
        layer::{LayeredCall, Next, Outcome},
        mcp_tool,
    };

    async fn timing(call: LayeredCall, next: Next) -> Outcome {
        next.run(&call).await
    }

    #[mcp_tool(layers = timing)]
    fn hello() -> &'static str {
        "hello"
    }
}

mod layers_not_a_layer {
    use mcp_runtime::mcp_resource;

    struct Timing;

    #[mcp_resource(uri = "docs://one", layers(Timing))]
    fn one() -> &'static str {
        "one"
    }
}

mod layers_plain_function {
    use mcp_runtime::{
        ToolError,
        layer::{LayeredCall, Next, Outcome},
        mcp_tool,
    };

    fn refuse(_: LayeredCall, _: Next) -> Outcome {
        Err(ToolError::new("no"))
    }

    #[mcp_tool(layers(refuse))]
    fn hello() -> &'static str {
        "hello"
    }
}

mod layers_too_few_parameters {
    use mcp_runtime::prelude::*;

    fn measure() {}

    #[mcp_tool(layers(measure))]
    fn search(q: String) -> String {
        q
    }
}

mod layer_moves_capture {
    use mcp_runtime::layer::{LayeredCall, Next};

    fn start() -> mcp_runtime::Result<()> {
        let name = String::from("x");
        mcp_runtime::server!().discover().layer(|call: LayeredCall, next: Next| async move { eprintln!("{name}"); next.run(&call).await }).run()
    }
}

fn main() {}
