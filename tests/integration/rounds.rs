//! Rounds of the stateless era: what travels with the client between them, and what becomes of it when it is changed,
//! lost, sent twice or sent elsewhere.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use mcp_runtime::{
    ServerBuilder,
    prelude::*,
    testing::{Reply, TestServer},
};
use serde_json::{Value, json};

use crate::common::{refusal, serve};

#[mcp_type]
struct Name {
    name: String,
}

#[derive(Default)]
struct Runs(AtomicUsize);

impl Runs {
    fn next(&self) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    fn so_far(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Pays somebody, once the user agrees
#[mcp_tool]
async fn pay(amount: f64, ctx: &Context, runs: &Runs) -> Result<String, ToolError> {
    runs.next();
    let Name { name } = ctx.elicit("payee", format!("Whom do you pay {amount}?")).await?;
    ctx.consume_once().await?;
    Ok(format!("paid {amount} to {name}"))
}

/// Tips somebody
#[mcp_tool]
async fn tip(amount: f64, ctx: &Context, runs: &Runs) -> Result<String, ToolError> {
    runs.next();
    let Name { name } = ctx.elicit("payee", format!("Whom do you pay {amount}?")).await?;
    Ok(format!("tipped {name}"))
}

/// Asks something else after a while
#[mcp_tool]
async fn moody(ctx: &Context, runs: &Runs) -> Result<String, ToolError> {
    let run = runs.next();
    let first: Name = ctx.elicit("first", "A name?").await?;
    let second: Name = ctx.elicit("second", format!("Name {}?", run / 2)).await?;
    Ok(format!("{} {}", first.name, second.name))
}

/// Never has enough
#[mcp_tool]
async fn endless(ctx: &Context) -> Result<String, ToolError> {
    for n in 0..100 {
        ctx.elicit::<bool>(format!("q{n}"), "More?").await?;
    }
    Ok("enough".into())
}

/// Remembers too much
#[mcp_tool]
async fn hoarder(ctx: &Context) -> Result<String, ToolError> {
    let _small: String = ctx.once("small", || async { Ok("x".into()) }).await?;
    let _large: String = ctx.once("heap", || async { Ok("x".repeat(70_000)) }).await?;
    let sure: bool = ctx.elicit("sure", "Really?").await?;
    Ok(sure.to_string())
}

/// Fails at first, then asks
#[mcp_tool]
async fn flaky(ctx: &Context, runs: &Runs) -> Result<String, ToolError> {
    let computed: usize = ctx
        .once("sum", || async {
            match runs.next() {
                0 => Err(ToolError::new("try again")),
                n => Ok(n),
            }
        })
        .await?;
    let sure: bool = ctx.elicit("sure", "Really?").await?;
    Ok(format!("{computed} {sure}"))
}

/// Waits for something slow beside a question
#[mcp_tool]
async fn beside(ctx: &Context, runs: &Runs) -> Result<String, ToolError> {
    let slow = async {
        std::future::pending::<()>().await;
        runs.next();
    };
    let ((), name) = tokio::join!(slow, ctx.elicit::<Name>("name", "Who?"));
    Ok(name?.name)
}

fn builder(runs: &Arc<Runs>) -> ServerBuilder {
    mcp_runtime::server!().discover_in(module_path!()).state(Arc::clone(runs))
}

fn server() -> (TestServer, Arc<Runs>) {
    let runs = Arc::<Runs>::default();
    (serve(builder(&runs)), runs)
}

/// One request of a client that shows forms.
async fn send(server: &TestServer, tool: &str, arguments: Value, more: Value) -> Reply {
    let mut params = json!({ "name": tool, "arguments": arguments });
    params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
    for (key, value) in more.as_object().expect("members") {
        params[key] = value.clone();
    }
    server.request("tools/call", params).await
}

/// The state of a call that asks.
async fn asked(server: &TestServer, tool: &str, arguments: Value) -> Value {
    let reply = send(server, tool, arguments, json!({})).await;
    assert_eq!(reply.value()["resultType"], "input_required", "{reply}");
    assert!(reply.value()["requestState"].is_string(), "{reply}");
    reply.value()["requestState"].clone()
}

fn named(key: &str, name: &str) -> Value {
    json!({ key: { "action": "accept", "content": { "name": name } } })
}

fn with(state: &Value, responses: &Value) -> Value {
    json!({ "requestState": state, "inputResponses": responses })
}

#[tokio::test]
async fn state_of_one_server_is_of_no_use_to_another_unless_they_share_a_key() {
    let arguments = || json!({ "amount": 1 });
    let serve_with = |keys: &[u8]| serve(builder(&Arc::default()).keys(keys.iter().map(|key| [*key; 32])));
    let (one, twin, other) = (serve_with(&[1]), serve_with(&[1]), serve_with(&[2]));
    let whole = with(&asked(&one, "tip", arguments()).await, &named("payee", "A"));
    send(&twin, "tip", arguments(), whole.clone()).await.expect_text("tipped A");
    assert_eq!(refusal(&send(&other, "tip", arguments(), whole.clone()).await).0, -32602);
    // a key that no longer seals still opens
    send(&serve_with(&[3, 1]), "tip", arguments(), whole).await.expect_text("tipped A");
}

#[tokio::test]
async fn a_question_that_changed_between_rounds_is_asked_again() {
    let (server, _) = server();
    let first = send(&server, "moody", json!({}), json!({})).await;
    assert_eq!(first.value()["inputRequests"]["first"]["params"]["message"], "A name?");
    let more = with(&first.value()["requestState"], &named("first", "Ada"));
    let second = send(&server, "moody", json!({}), more).await;
    assert_eq!(second.value()["inputRequests"]["second"]["params"]["message"], "Name 0?");
    // the third run asks for another name: the answer to the old question does not count, but the first one does
    let more = with(&second.value()["requestState"], &named("second", "Bob"));
    let third = send(&server, "moody", json!({}), more).await;
    let requests = third.value()["inputRequests"].as_object().unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["second"]);
    assert_eq!(requests["second"]["params"]["message"], "Name 1?");
    let more = with(&third.value()["requestState"], &named("second", "Cy"));
    send(&server, "moody", json!({}), more).await.expect_text("Ada Cy");
}

#[tokio::test]
async fn missing_unknown_and_shapeless_answers() {
    let (server, _) = server();
    let arguments = || json!({ "amount": 1 });
    let state = asked(&server, "tip", arguments()).await;
    let unknown = with(&state, &json!({ "unknown": { "action": "accept" } }));
    let again = send(&server, "tip", arguments(), unknown).await;
    assert!(again.value()["inputRequests"]["payee"].is_object(), "{again}");
    for shapeless in [json!(null), json!([]), json!("payee")] {
        let reply = send(&server, "tip", arguments(), with(&state, &shapeless)).await;
        assert_eq!(refusal(&reply).0, -32602, "{reply}");
    }
    // answers of the first round are found by their key, even without state
    let stateless = json!({ "inputResponses": named("payee", "Eve") });
    send(&server, "tip", arguments(), stateless).await.expect_text("tipped Eve");
}

#[tokio::test]
async fn a_useless_answer_is_asked_for_three_more_times() {
    let (server, _) = server();
    let arguments = || json!({ "amount": 1 });
    let mut state = asked(&server, "tip", arguments()).await;
    for again in 0..4 {
        let reply = send(&server, "tip", arguments(), with(&state, &json!({ "payee": 12345 }))).await;
        if again < 3 {
            assert_eq!(reply.value()["resultType"], "input_required", "{again}: {reply}");
            state = reply.value()["requestState"].clone();
        } else {
            assert_eq!(reply.value()["isError"], true, "{reply}");
            assert!(reply.text().starts_with("the answer to `payee` does not fit"), "{reply}");
        }
    }
}

#[tokio::test]
async fn answers_are_used_once_where_the_function_says_so() {
    let (server, _) = server();
    let arguments = || json!({ "amount": 10 });
    let state = asked(&server, "pay", arguments()).await;
    send(&server, "pay", arguments(), with(&state, &named("payee", "Bob")))
        .await
        .expect_text("paid 10 to Bob");
    // with the same answer, and with another one: it is the same call
    for name in ["Bob", "Eve"] {
        let replayed = send(&server, "pay", arguments(), with(&state, &named("payee", name))).await;
        assert_eq!(replayed.text(), "the answers of this call were used before");
    }
    let stateless = json!({ "inputResponses": named("payee", "Eve") });
    let reply = send(&server, "pay", arguments(), stateless).await;
    assert!(reply.text().starts_with("the answers came without `requestState`"), "{reply}");
    // a function that does not care can be replayed until the state expires
    let state = asked(&server, "tip", arguments()).await;
    for _ in 0..2 {
        send(&server, "tip", arguments(), with(&state, &named("payee", "A"))).await.expect_text("tipped A");
    }
}

#[tokio::test]
async fn once_keeps_successes_only() {
    let (server, runs) = server();
    let server = server.answering(json!({ "elicitation": {} }), |_, _| {
        Ok(json!({ "action": "accept", "content": { "value": true } }))
    });
    server.call("flaky", json!({})).await.expect_failure("try again");
    server.call("flaky", json!({})).await.expect_text("1 true");
    assert_eq!(runs.so_far(), 2, "one for the failure, one for both rounds of the second call");
}

#[tokio::test]
async fn rounds_and_memory_are_bounded() {
    let (server, _) = server();
    let mut more = json!({});
    for round in 1..=17 {
        let reply = send(&server, "endless", json!({}), more).await;
        if round == 17 {
            let (code, message) = refusal(&reply);
            assert_eq!((code, &*message), (-32603, "`endless` took more than 16 round trips to its client"));
            break;
        }
        let key = format!("q{}", round - 1);
        let yes = json!({ key: { "action": "accept", "content": { "value": true } } });
        more = with(&reply.value()["requestState"], &yes);
    }
    let (code, message) = refusal(&send(&server, "hoarder", json!({}), json!({})).await);
    assert!(code == -32603 && message.ends_with("the largest is `heap`"), "{message}");
}

#[tokio::test]
async fn a_question_ends_the_call_whatever_else_is_pending() {
    let (server, runs) = server();
    asked(&server, "beside", json!({})).await;
    assert_eq!(runs.so_far(), 0, "the slow half was dropped");
}
