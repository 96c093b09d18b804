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

fn of_header(builder: ServerBuilder) -> ServerBuilder {
    builder.http(|http| {
        http.caller(|parts| {
            let plan = parts.headers.get("x-plan")?.to_str().ok()?;
            Some(on_plan("ada", plan))
        })
    })
}

#[tokio::test]
async fn what_the_rule_hides_is_not_listed_and_is_unknown_to_calls() {
    let served = HttpServer::start(of_header(builder())).await;
    let send = async |method: &str, params: Value, plan: &str| {
        HttpRequest::modern(1, method, params).header("x-plan", plan).send(served.address).await.json()
    };
    for (plan, tools, others) in [("pro", &["basic", "report"][..], 1), ("free", &["basic"], 0)] {
        assert_eq!(tool_names(&send("tools/list", json!({}), plan).await), tools);
        let resources = send("resources/list", json!({}), plan).await;
        assert_eq!(resources["result"]["resources"].as_array().unwrap().len(), others);
        let prompts = send("prompts/list", json!({}), plan).await;
        assert_eq!(prompts["result"]["prompts"].as_array().unwrap().len(), others);
    }
    let reply = send("tools/call", json!({ "name": "report" }), "pro").await;
    assert_eq!(text_of(&reply), "report");
    for (method, params) in [
        ("tools/call", json!({ "name": "report" })),
        ("resources/read", json!({ "uri": "plan://pro/report" })),
        ("prompts/get", json!({ "name": "pro_prompt" })),
    ] {
        let reply = send(method, params.clone(), "free").await;
        assert_eq!(error_code(&reply), -32602, "{params}");
        let unknown = reply["error"]["message"].as_str().unwrap();
        assert!(unknown.starts_with("unknown "), "{unknown}");
    }
    let misspelt = send("tools/call", json!({ "name": "repor" }), "free").await;
    assert!(!misspelt.to_string().contains("`report`"), "a hidden name is not suggested");
}

#[tokio::test]
async fn the_rule_holds_in_memory_for_callers_and_not_for_the_host() {
    let server = TestServer::new(builder()).unwrap();
    assert_eq!(server.list_tools().await.len(), 2, "the host is trusted");
    let server = server.caller(on_plan("ada", "free"));
    assert_eq!(server.list_tools().await.len(), 1);
    server.call("report", json!({})).await.expect_code(-32602);
    server.caller(on_plan("bob", "pro")).call("report", json!({})).await.expect_text("report");
}

#[tokio::test]
async fn a_rule_about_callers_is_not_served_to_those_who_are_not_identified() {
    let refused = builder().into_service().unwrap_err().to_string();
    assert!(refused.contains("callers are not identified"), "{refused}");
    assert!(builder().http(|http| http.trust_all_callers()).into_service().is_ok());
}
