//! An agent that uses several servers as one toolset: `cargo run --example agent`.
//! The model is a script that responds in the form of Anthropic's Messages API; replace it with a request to a real one.

#![allow(clippy::print_stdout)]

use std::error::Error;

use mcp_runtime::{
    client::{
        Client,
        agent::{ArtifactRef, Artifacts, Toolset},
    },
    content::ResourceLink,
    prelude::*,
    serde_json::{self, Value, json},
};

/// Finds products
#[mcp_tool(read_only)]
fn search(
    /// Words of the product's name
    query: String,
) -> (String, ResourceLink) {
    (format!("1 product for {query}: green tea"), ResourceLink::new("shop://tea/label", "label").size(12_000))
}

/// Orders a product
#[mcp_tool(destructive)]
fn order(product: String) -> String {
    format!("ordered {product}")
}

/// The label of a product
#[mcp_resource(uri = "shop://{product}/label", mime = "image/png", cache(ttl = "10m"))]
fn label(product: String) -> Vec<u8> {
    product.repeat(4000).into_bytes()
}

/// Multiplies prices
#[mcp_tool(read_only)]
fn multiply(price: f64, pieces: u32) -> f64 {
    price * f64::from(pieces)
}

/// The next step of a conversation: calls of tools, or a text at its end.
fn model(tools: &[Value], messages: &[Value]) -> Value {
    let call = |number: usize, name: &str, input: Value| {
        assert!(tools.iter().any(|tool| tool["name"] == name), "the model has no tool `{name}`");
        json!({ "type": "tool_use", "id": format!("call_{number}"), "name": name, "input": input })
    };
    let step = messages.len() / 2;
    let content = match step {
        0 => vec![
            call(1, "shop__search", json!({ "query": "tea" })),
            call(2, "prices__multiply", json!({ "price": 4.5, "pieces": 3 })),
        ],
        1 => vec![call(3, "shop__resources_read", json!({ "uri": "shop://tea/label" }))],
        2 => vec![call(4, "shop__order", json!({ "product": "green tea" }))],
        _ => vec![
            json!({ "type": "text", "text": "Three packs of green tea cost 13.50. I may not order them." }),
        ],
    };
    json!({ "role": "assistant", "content": content })
}

#[mcp_runtime::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // servers in this process; use a command line or a URL in the same way
    let shop = mcp_runtime::server!().tool::<search>().tool::<order>().resource::<label>().build()?;
    let prices = mcp_runtime::server!().tool::<multiply>().build()?;
    let shop = Client::connect(&shop).await?.toolset("shop").allow_calls(|tool, _| tool != "shop__order");
    let prices = Client::connect(&prices).await?.toolset("prices");
    // this one cannot be reached, which hides only its own tools
    let away = Toolset::connecting("away", || Client::connect("http://127.0.0.1:9/mcp"));
    let toolset = Toolset::merge([shop, prices, away])?.separator("__").artifacts(Artifacts::memory());

    let tools = toolset.anthropic().await?;
    let names: Vec<_> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    println!("tools: {}", names.join(" "));
    for (namespace, _) in toolset.unavailable() {
        println!("unavailable: {namespace}");
    }

    let mut messages =
        vec![json!({ "role": "user", "content": "What do three packs of tea cost? Order them." })];
    let mut stored: Vec<ArtifactRef> = Vec::new();
    loop {
        let reply = model(&tools, &messages);
        let blocks = reply["content"].as_array().cloned().unwrap_or_default();
        messages.push(reply);
        let mut results = Vec::new();
        for block in &blocks {
            let (Some(id), Some(name)) = (block["id"].as_str(), block["name"].as_str()) else {
                println!("{}", block["text"].as_str().unwrap_or_default());
                continue;
            };
            // an error is for the model too: it may find another way
            let result = match toolset.call(name, block["input"].clone()).await {
                Ok(result) => {
                    stored.extend(result.artifacts().cloned());
                    result.anthropic(id)
                }
                Err(error) => json!({
                    "type": "tool_result", "tool_use_id": id, "content": error.to_string(), "is_error": true
                }),
            };
            println!("{name}: {}", result["content"].as_str().unwrap_or_default());
            results.push(result);
        }
        if results.is_empty() {
            break;
        }
        messages.push(json!({ "role": "user", "content": results }));
    }

    // the model sees references, the program gets the contents
    for reference in &stored {
        let artifact = toolset.artifact(reference).await?;
        println!("{}: {} bytes", serde_json::to_string(&artifact.reference.mime_type)?, artifact.bytes.len());
    }
    println!("{:?}", toolset.counters());
    Ok(())
}
