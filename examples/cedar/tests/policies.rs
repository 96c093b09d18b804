//! Calls that the policies allow, and calls that they do not.

use mcp_runtime::{Principal, serde_json::json, testing::TestServer};

fn server(role: Option<&str>) -> TestServer {
    let server = TestServer::new(mcp_example_cedar::server()).expect("a server");
    let caller = role.map(|role| {
        let claims = json!({ "role": role }).as_object().cloned().expect("an object");
        Principal::new("https://example.com", "ada").with_claims(claims)
    });
    server.caller(caller)
}

#[tokio::test]
async fn a_policy_allows_a_call_by_the_caller_and_the_arguments() {
    let clerk = server(Some("clerk"));
    let small = json!({ "from": "a", "to": "b", "amount": 1000 });
    clerk.call("transfer", small.clone()).await.expect_text("1000 from a to b");
    let large = json!({ "from": "a", "to": "b", "amount": 1001 });
    clerk.call("transfer", large).await.expect_failure("no policy allows `transfer`");
    server(Some("guest")).call("transfer", small.clone()).await.expect_failure("no policy allows `transfer`");
    server(None).call("transfer", small).await.expect_failure("no policy allows `transfer`");
    server(None).call("balance", json!({ "account": "a" })).await.expect_text("a: 2000");
}

#[tokio::test]
async fn what_a_policy_forbids_no_other_one_allows() {
    let frozen = json!({ "from": "frozen", "to": "b", "amount": 1 });
    server(Some("clerk")).call("transfer", frozen).await.expect_failure("no policy allows `transfer`");
}

#[tokio::test]
async fn a_policy_that_cannot_be_evaluated_allows_nothing() {
    let policies = "permit (principal, action, resource); forbid (principal, action, resource) when { context.missing };";
    let builder = mcp_runtime::server!().tool::<mcp_example_cedar::balance>();
    let builder = builder.layer(mcp_example_cedar::Cedar::new(policies).expect("policies"));
    let server = TestServer::new(builder).expect("a server");
    server.call("balance", json!({ "account": "a" })).await.expect_failure("cannot decide about `balance`");
}
