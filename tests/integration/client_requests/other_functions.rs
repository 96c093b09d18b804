//! Functions beside tools, resources and prompts cannot send requests to the client: what completes arguments, or lists
//! instances.

use mcp_runtime::{Completion, resource::ListedResource};

use super::{client, since};
use crate::prelude::*;

/// Asks the client, and returns why that fails.
async fn ask(ctx: &Context) -> String {
    match ctx.roots("roots").await {
        Ok(roots) => format!("{roots:?}"),
        Err(error) => error.to_string(),
    }
}

async fn offered(_: &Completion, ctx: &Context) -> Vec<String> {
    vec![ask(ctx).await]
}

async fn listed(ctx: &Context) -> Vec<ListedResource> {
    vec![ListedResource::new("asked://1", "").description(ask(ctx).await)]
}

#[mcp_prompt]
fn greet(#[mcp(complete = offered)] name: String) -> String {
    name
}

#[mcp_resource(uri = "asked://{id}", list = listed)]
fn asked(id: u32) -> String {
    id.to_string()
}

#[tokio::test]
async fn only_calls_can_send_requests_to_the_client() {
    let why = "only tools, resources and prompts can send requests to the client";
    for revision in since(LEGACY[0]) {
        let builder = mcp_runtime::server!().prompt::<greet>().resource::<asked>();
        let (server, requests) = client(builder, |_, _| json!({ "roots": [] }));
        let server = if revision.is_modern() { server } else { server.legacy(revision) };
        let completed = server.complete("greet", "name", "").await;
        let text = completed.value()["completion"]["values"][0].as_str().expect("a value").to_owned();
        assert!(text.contains(why), "{revision}: {text}");
        let listed = server.list_resources().await;
        let text = listed[0]["description"].as_str().expect("a description");
        assert!(text.contains(why), "{revision}: {text}");
        assert_eq!(requests.take(), [] as [(String, Value); 0], "{revision}");
    }
}
