//! Items that lists leave out, and what functions see of the tools of their caller.

use crate::prelude::*;

/// For everyone
#[mcp_tool(read_only)]
fn plain() -> &'static str {
    "plain"
}

/// Not in lists
#[mcp_tool(destructive)]
fn hidden_tool() -> &'static str {
    "hidden"
}

/// Not in lists
#[mcp_resource(uri = "hidden://one")]
fn hidden_document() -> &'static str {
    "hidden"
}

/// Not in lists
#[mcp_prompt]
fn hidden_prompt() -> &'static str {
    "hidden"
}

/// Only with a scope
#[mcp_tool(scopes("admin"))]
fn admin() {}

/// What the caller may see
#[mcp_tool]
fn seen(ctx: &Context) -> String {
    let tools = ctx.tools();
    let names = tools.iter().map(|(place, tool)| {
        assert_eq!(tools.get(tool.name()).map(|tool| tool.name()), Some(tool.name()));
        format!("{place} {} {:?}", tool.name(), tool.hints().destructive)
    });
    names.collect::<Vec<_>>().join(", ")
}

fn builder() -> ServerBuilder {
    let builder = mcp_runtime::server!()
        .tool::<plain>()
        .tool::<hidden_tool>()
        .tool::<admin>()
        .tool::<seen>()
        .resource::<hidden_document>()
        .prompt::<hidden_prompt>();
    builder
        .http(|http| http.caller(|_| None))
        .lists(|lists| lists.listed(|_, item| !item.name().contains("hidden")))
}

#[tokio::test]
async fn what_is_not_listed_is_called_all_the_same() {
    let server = builder().build().unwrap();
    for client in [TestServer::of(&server), TestServer::of(&server).caller(Principal::new("test", "ada"))] {
        assert!(client.list_tools().await.iter().all(|tool| tool["name"] != "hidden_tool"));
        assert_eq!((client.list_resources().await.len(), client.list_prompts().await.len()), (0, 0));
        client.call("hidden_tool", json!({})).await.expect_text("hidden");
        client.read("hidden://one").await.expect_ok();
        client.prompt("hidden_prompt", json!({})).await.expect_ok();
    }
}

#[tokio::test]
async fn a_function_sees_the_tools_of_its_caller_whether_they_are_listed_or_not() {
    let server = builder().transform(|item| {
        item.only("hidden_tool", |tool| tool.hints(|hints| hints.destructive = Some(false)))
    });
    let server = server.build().unwrap();
    let of_host = TestServer::of(&server);
    of_host
        .call("seen", json!({}))
        .await
        .expect_text("0 plain None, 1 hidden_tool Some(false), 2 admin None, 3 seen None");
    let ada = TestServer::of(&server).caller(Principal::new("test", "ada"));
    ada.call("seen", json!({})).await.expect_text("0 plain None, 1 hidden_tool Some(false), 3 seen None");
    assert_eq!(Context::for_test().tools().iter().count(), 0);
}

#[tokio::test]
async fn rules_add_up_and_count_all_tools_and_one_that_panics_hides_nothing() {
    let server = builder().lists(|lists| {
        lists.listed(|_, item| item.list_size().is_none_or(|size| size.tools < 5 && size.bytes > 100)).listed(
            |_, item| match item.name() {
                "plain" => panic!("boom"),
                _ => true,
            },
        )
    });
    let server = server.build().unwrap();
    assert_eq!(TestServer::of(&server).list_tools().await.len(), 3);
    server.handle().add(ToolDef::builder("fifth").handler(|_: ToolCall| async { "5" })).unwrap();
    assert_eq!(TestServer::of(&server).list_tools().await.len(), 0, "the registry is too large");
}

#[test]
fn a_mounted_server_does_not_decide_what_lists_show() {
    let refused = mcp_runtime::server!().mount("inner", builder()).build().unwrap_err().to_string();
    assert!(refused.contains("the server that is mounted as `inner` decides what lists show"), "{refused}");
}
