//! Items that are shown to some callers only, by a rule of the server.

use crate::prelude::*;

/// For everyone
#[mcp_tool]
fn basic() -> &'static str {
    "basic"
}

/// For the better plan
#[mcp_tool(tags("pro"))]
fn report() -> &'static str {
    "report"
}

/// For the better plan
#[mcp_resource(uri = "plan://pro/report")]
fn document() -> &'static str {
    "document"
}

/// For the better plan
#[mcp_prompt]
fn pro_prompt() -> &'static str {
    "prompt"
}

fn builder() -> ServerBuilder {
    let builder =
        mcp_runtime::server!().tool::<basic>().tool::<report>().resource::<document>().prompt::<pro_prompt>();
    builder.lists(|lists| {
        lists.visible(|caller, item| {
            let plan = caller.and_then(|caller| caller.claims()?.get("plan")?.as_str());
            plan == Some("pro") || !(item.tags().contains(&"pro") || item.name().contains("pro"))
        })
    })
}

fn on_plan(name: &str, plan: &str) -> Principal {
    let Value::Object(claims) = json!({ "plan": plan }) else { unreachable!("an object") };
    Principal::new("test", name).with_claims(claims)
}

#[tokio::test]
async fn what_the_rule_hides_from_a_caller_is_not_listed_and_is_unknown_to_calls() {
    let server = builder().build().unwrap();
    assert_eq!(TestServer::of(&server).list_tools().await.len(), 2, "the host is trusted");
    for (plan, count) in [("pro", 1), ("free", 0)] {
        let client = TestServer::of(&server).caller(on_plan("ada", plan));
        assert_eq!(client.list_tools().await.len(), 1 + count);
        assert_eq!((client.list_resources().await.len(), client.list_prompts().await.len()), (count, count));
    }
    let [pro, free] = ["pro", "free"].map(|plan| TestServer::of(&server).caller(on_plan("ada", plan)));
    pro.call("report", json!({})).await.expect_text("report");
    for reply in [
        free.call("report", json!({})).await,
        free.read("plan://pro/report").await,
        free.prompt("pro_prompt", json!({})).await,
    ] {
        let (code, message) = refusal(&reply);
        assert!(code == -32602 && message.starts_with("unknown "), "{message}");
    }
    let (_, misspelt) = refusal(&free.call("repor", json!({})).await);
    assert!(!misspelt.contains("`report`"), "a hidden name is not suggested: {misspelt}");
}

#[tokio::test]
async fn a_rule_about_callers_is_not_served_to_those_who_are_not_identified() {
    let refused = builder().into_service().unwrap_err().to_string();
    assert!(refused.contains("callers are not identified"), "{refused}");
    assert!(builder().http(|http| http.trust_all_callers()).into_service().is_ok());
}
