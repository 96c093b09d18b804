//! What belongs to a principal is of no use to another: sessions, the state of calls, tasks, cursors and streams.

use super::{RESOURCE, bearing, oauth};
use crate::prelude::*;

/// Asks whether to go on
#[mcp_tool]
async fn ask(ctx: &Context) -> Result<String, ToolError> {
    Ok(ctx.elicit::<bool>("more", "More?").await?.to_string())
}

/// Takes its time
#[mcp_tool(task)]
async fn slow() -> &'static str {
    tokio::time::sleep(Duration::from_secs(20)).await;
    "done"
}

/// For everyone
#[mcp_tool]
fn one() {}

fn builder(issuer: &Issuer) -> ServerBuilder {
    let builder = mcp_runtime::server!().tool::<ask>().tool::<slow>().tool::<one>().with_handle(drop);
    builder.lists(|lists| lists.page_size(1)).auth(oauth(issuer))
}

#[tokio::test]
async fn sessions_state_tasks_and_cursors_of_a_principal_are_of_no_use_to_another() {
    let issuer = Issuer::start().await;
    let served = HttpServer::start(builder(&issuer)).await;
    let [ada, bob] = ["ada", "bob"].map(|name| issuer.token(name, RESOURCE, ""));
    // another token of the same principal
    let again = {
        let mut claims = issuer.claims("ada", RESOURCE, "notes:read");
        claims["client_id"] = json!("other");
        issuer.key().sign(&claims)
    };
    let send = async |method: &str, params: Value, token: &str| {
        bearing(HttpRequest::modern(1, method, params), token).send(served.address).await
    };
    // sessions
    let session = bearing(HttpRequest::initialize("2025-11-25"), &ada).send(served.address).await.session();
    let list = HttpRequest::legacy(&session, 1, "tools/list", &json!({}));
    for (token, status) in [(&ada, 200), (&again, 200), (&bob, 404)] {
        assert_eq!(bearing(list.clone(), token).send(served.address).await.status, status);
    }
    for foreign in [HttpRequest::new("DELETE").session(&session), HttpRequest::standalone_stream(&session)] {
        assert_eq!(bearing(foreign, &bob).send(served.address).await.status, 404);
    }
    // the state of a call
    let capabilities =
        json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } } });
    let call = json!({ "name": "ask", "_meta": capabilities });
    let asked = send("tools/call", call.clone(), &ada).await.json();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let mut retry = call;
    retry["requestState"] = asked["result"]["requestState"].clone();
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    retry["inputResponses"] = json!({ key: { "action": "accept", "content": { "value": true } } });
    assert_eq!(error_code(&send("tools/call", retry.clone(), &bob).await.json()), -32602);
    assert!(send("tools/call", retry, &again).await.json()["result"]["content"].is_array());
    // tasks
    let tasks = json!({ "io.modelcontextprotocol/clientCapabilities": {
        "extensions": { "io.modelcontextprotocol/tasks": {} }
    } });
    let started = send("tools/call", json!({ "name": "slow", "_meta": tasks }), &ada).await.json();
    let task = json!({ "taskId": started["result"]["taskId"], "_meta": tasks });
    assert!(task["taskId"].is_string(), "{started}");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let mut task = task.clone();
        task["inputResponses"] = json!({});
        let foreign = send(method, task, &bob).await.json();
        assert_eq!(error_code(&foreign), -32602, "{method}: {foreign}");
    }
    assert_eq!(send("tasks/get", task, &again).await.json()["result"]["status"], "working");
    // cursors
    let page = send("tools/list", json!({}), &ada).await.json();
    let cursor = json!({ "cursor": page["result"]["nextCursor"] });
    assert!(cursor["cursor"].is_string(), "{page}");
    assert_eq!(error_code(&send("tools/list", cursor.clone(), &bob).await.json()), -32602);
    assert!(send("tools/list", cursor, &ada).await.json()["result"].is_object());
}

#[tokio::test]
async fn the_token_of_a_principal_whose_streams_are_ended_is_asked_about_again() {
    let issuer = Issuer::start().await;
    let builder = mcp_runtime::server!().tool::<one>().with_handle(drop);
    let server = builder.auth(oauth(&issuer).introspection("mcp", "s&cret")).build().unwrap();
    let served = HttpServer::of(&server).await;
    let mut claims = issuer.claims("ada", RESOURCE, "");
    claims["active"] = true.into();
    issuer.set_token("opaque", claims);
    let list = bearing(HttpRequest::modern(1, "tools/list", json!({})), "opaque");
    assert_eq!(list.send(served.address).await.status, 200);
    issuer.set_token("opaque", json!({ "active": false }));
    assert_eq!(list.send(served.address).await.status, 200, "what was said of it is kept");
    server.handle().end_streams_of(&Principal::new(&issuer.url, "ada"));
    assert_eq!(list.send(served.address).await.status, 401);
}

#[tokio::test]
async fn a_stream_ends_when_the_token_expires_that_opened_it_which_is_refused_from_then_on() {
    let issuer = Issuer::start().await;
    let builder = mcp_runtime::server!().tool::<one>().with_handle(drop);
    let config = oauth(&issuer).clock_skew(Duration::ZERO);
    let served = HttpServer::start(builder.auth(config)).await;
    let mut claims = issuer.claims("ada", RESOURCE, "");
    claims["exp"] = json!(unix_now() + 2);
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let listen =
        bearing(HttpRequest::modern("s", "subscriptions/listen", filter), &issuer.key().sign(&claims));
    let mut stream = EventStream::open(&listen, served.address).await.expect("a stream");
    assert_eq!(stream.message().await["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(stream.message().await["result"]["resultType"], "complete");
    assert_eq!(listen.send(served.address).await.status, 401);
}
