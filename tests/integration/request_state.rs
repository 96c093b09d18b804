//! Multi-round-trip requests: what `requestState` carries between the requests, and what happens when it is changed,
//! lost, replayed, or sent to another server.

use crate::prelude::*;

#[derive(Default)]
pub(crate) struct Runs(AtomicUsize);

impl Runs {
    fn next(&self) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn so_far(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Pays someone, once the user agrees
#[mcp_tool]
async fn pay(amount: f64, ctx: &Context, runs: &Runs) -> Result<String, ToolError> {
    runs.next();
    let Name { name } = ctx.elicit("payee", format!("Whom do you pay {amount}?")).await?;
    ctx.consume_once().await?;
    Ok(format!("paid {amount} to {name}"))
}

/// Tips someone
#[mcp_tool]
async fn tip(amount: f64, ctx: &Context, runs: &Runs) -> Result<String, ToolError> {
    runs.next();
    let Name { name } = ctx.elicit("payee", format!("Whom do you pay {amount}?")).await?;
    Ok(format!("tipped {name}"))
}

/// Elicits something else after a few runs
#[mcp_tool]
async fn changeable(ctx: &Context, runs: &Runs) -> Result<String, ToolError> {
    let run = runs.next();
    let first: Name = ctx.elicit("first", "A name?").await?;
    let second: Name = ctx.elicit("second", format!("Name {}?", run / 2)).await?;
    Ok(format!("{} {}", first.name, second.name))
}

/// Never has enough input
#[mcp_tool]
async fn endless(ctx: &Context) -> Result<String, ToolError> {
    for n in 0..100 {
        ctx.elicit::<bool>(format!("q{n}"), "More?").await?;
    }
    Ok("enough".into())
}

/// Keeps too much in its request state
#[mcp_tool]
async fn hoarder(ctx: &Context) -> Result<String, ToolError> {
    let _small: String = ctx.once("small", || async { Ok("x".into()) }).await?;
    let _large: String = ctx.once("heap", || async { Ok("x".repeat(70_000)) }).await?;
    let sure: bool = ctx.elicit("sure", "Really?").await?;
    Ok(sure.to_string())
}

/// Fails at first, then elicits
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

/// Runs something slow concurrently with an elicitation
#[mcp_tool]
async fn concurrently(ctx: &Context, runs: &Runs) -> Result<String, ToolError> {
    let slow = async {
        std::future::pending::<()>().await;
        runs.next();
    };
    let ((), name) = tokio::join!(slow, ctx.elicit::<Name>("name", "Who?"));
    Ok(name?.name)
}

pub(crate) fn builder(runs: &Arc<Runs>) -> ServerBuilder {
    mcp_runtime::server!().discover_in(module_path!()).state(Arc::clone(runs))
}

fn server() -> (TestServer, Arc<Runs>) {
    let runs = Arc::<Runs>::default();
    (serve(builder(&runs)), runs)
}

/// Sends one request of a client that supports forms.
async fn send(server: &TestServer, tool: &str, arguments: Value, more: Value) -> Reply {
    let mut params = json!({ "name": tool, "arguments": arguments });
    params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
    for (key, value) in more.as_object().expect("members") {
        params[key] = value.clone();
    }
    server.request("tools/call", params).await
}

/// The `requestState` of a call that requires input.
async fn request_state(server: &TestServer, tool: &str, arguments: Value) -> Value {
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
async fn request_state_is_valid_only_on_servers_that_share_a_key() {
    let arguments = || json!({ "amount": 1 });
    let serve_with = |keys: &[u8]| {
        serve(builder(&Arc::default()).stores(|stores| stores.keys(keys.iter().map(|key| server_key(*key)))))
    };
    let (one, twin, other) = (serve_with(&[1]), serve_with(&[1]), serve_with(&[2]));
    let whole = with(&request_state(&one, "tip", arguments()).await, &named("payee", "A"));
    send(&twin, "tip", arguments(), whole.clone()).await.expect_text("tipped A");
    assert_eq!(refusal(&send(&other, "tip", arguments(), whole.clone()).await).0, -32602);
    // a key that is only used for opening still opens
    send(&serve_with(&[3, 1]), "tip", arguments(), whole).await.expect_text("tipped A");
}

#[tokio::test]
async fn an_elicitation_that_changes_between_runs_is_sent_again() {
    let (server, _) = server();
    let first = send(&server, "changeable", json!({}), json!({})).await;
    assert_eq!(first.value()["inputRequests"]["first"]["params"]["message"], "A name?");
    let more = with(&first.value()["requestState"], &named("first", "Ada"));
    let second = send(&server, "changeable", json!({}), more).await;
    assert_eq!(second.value()["inputRequests"]["second"]["params"]["message"], "Name 0?");
    // the third run elicits another name: the old response is not used for it, but the first one still is
    let more = with(&second.value()["requestState"], &named("second", "Bob"));
    let third = send(&server, "changeable", json!({}), more).await;
    let requests = third.value()["inputRequests"].as_object().unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["second"]);
    assert_eq!(requests["second"]["params"]["message"], "Name 1?");
    let more = with(&third.value()["requestState"], &named("second", "Cy"));
    send(&server, "changeable", json!({}), more).await.expect_text("Ada Cy");
}

#[tokio::test]
async fn missing_unknown_and_malformed_responses_are_handled() {
    let (server, _) = server();
    let arguments = || json!({ "amount": 1 });
    let state = request_state(&server, "tip", arguments()).await;
    let unknown = with(&state, &json!({ "unknown": { "action": "accept" } }));
    let again = send(&server, "tip", arguments(), unknown).await;
    assert!(again.value()["inputRequests"]["payee"].is_object(), "{again}");
    for shapeless in [json!([]), json!("payee")] {
        let reply = send(&server, "tip", arguments(), with(&state, &shapeless)).await;
        assert_eq!(refusal(&reply).0, -32602, "{reply}");
    }
    // responses to the first requests are found by key, even without state
    let stateless = json!({ "inputResponses": named("payee", "Eve") });
    send(&server, "tip", arguments(), stateless).await.expect_text("tipped Eve");
}

#[tokio::test]
async fn responses_are_not_used_again_after_a_restart() {
    let arguments = || json!({ "amount": 10 });
    let start = || serve(builder(&Arc::default()).stores(|stores| stores.keys([server_key(1)])));
    let before = start();
    let states =
        [request_state(&before, "pay", arguments()).await, request_state(&before, "pay", arguments()).await];
    let [used, unused] = states.map(|state| with(&state, &named("payee", "Bob")));
    send(&before, "pay", arguments(), used.clone()).await.expect_text("paid 10 to Bob");
    let refused = "the answers of this call were used before, or it cannot be told whether they were";
    tokio::time::sleep(Duration::from_millis(5)).await;
    let after = start();
    // what the earlier process has recorded is lost, so all of its calls are refused
    for responses in [&used, &unused] {
        assert_eq!(send(&after, "pay", arguments(), responses.clone()).await.text(), refused);
    }
    // another round trip does not make it a new call
    let again = json!({ "requestState": used["requestState"], "inputResponses": {} });
    let asked = send(&after, "pay", arguments(), again).await;
    assert_eq!(asked.value()["resultType"], "input_required", "{asked}");
    let renewed = with(&asked.value()["requestState"], &named("payee", "Bob"));
    assert_eq!(send(&after, "pay", arguments(), renewed).await.text(), refused);
    let new = with(&request_state(&after, "pay", arguments()).await, &named("payee", "Bob"));
    send(&after, "pay", arguments(), new).await.expect_text("paid 10 to Bob");
}

#[tokio::test]
async fn once_allows_responses_to_be_used_once() {
    let (server, _) = server();
    let arguments = || json!({ "amount": 10 });
    let state = request_state(&server, "pay", arguments()).await;
    send(&server, "pay", arguments(), with(&state, &named("payee", "Bob")))
        .await
        .expect_text("paid 10 to Bob");
    // with the same response and with another one: it is the same call
    for name in ["Bob", "Eve"] {
        let replayed = send(&server, "pay", arguments(), with(&state, &named("payee", name))).await;
        assert_eq!(
            replayed.text(),
            "the answers of this call were used before, or it cannot be told whether they were"
        );
    }
    let stateless = json!({ "inputResponses": named("payee", "Eve") });
    let reply = send(&server, "pay", arguments(), stateless).await;
    assert!(reply.text().starts_with("the answers came without `requestState`"), "{reply}");
    // without `once`, a call can be replayed until its state expires
    let state = request_state(&server, "tip", arguments()).await;
    for _ in 0..2 {
        send(&server, "tip", arguments(), with(&state, &named("payee", "A"))).await.expect_text("tipped A");
    }
}

#[tokio::test]
async fn once_keeps_only_successes() {
    let (server, runs) = server();
    let server = server.answering(json!({ "elicitation": {} }), |_, _| {
        Ok(json!({ "action": "accept", "content": { "value": true } }))
    });
    server.call("flaky", json!({})).await.expect_failure("try again");
    server.call("flaky", json!({})).await.expect_text("1 true");
    assert_eq!(runs.so_far(), 2, "one for the failure, one for both round trips of the second call");
}

#[tokio::test]
async fn round_trips_and_request_state_are_bounded() {
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
async fn an_elicitation_ends_the_run_even_if_other_futures_are_pending() {
    let (server, runs) = server();
    request_state(&server, "concurrently", json!({})).await;
    assert_eq!(runs.so_far(), 0, "the slow half was dropped");
}
