//! Streams end when their caller's authentication expires or is withdrawn, and at their maximum age; changes are sent to
//! callers that still have the scopes for them.

use std::time::SystemTime;

use crate::prelude::*;

/// A secret
#[mcp_resource(uri = "test://secret", scopes("admin"))]
fn secret() -> &'static str {
    "hidden"
}

/// No secret
#[mcp_resource(uri = "test://news")]
fn news() -> &'static str {
    "news"
}

/// For administrators
#[mcp_tool(scopes("admin"))]
fn rule() -> &'static str {
    "ruled"
}

/// Reports progress, and waits until it is released
#[mcp_tool]
async fn wait(ctx: &Context, gate: &Gate) -> &'static str {
    ctx.progress(1).message("waiting").send();
    gate.pass().await
}

/// A server whose callers say in headers who they are, what they may do, and for how many milliseconds.
fn builder(gate: &Gate) -> ServerBuilder {
    let builder =
        mcp_runtime::server!().resource::<secret>().resource::<news>().tool::<rule>().tool::<wait>();
    builder.state(gate.clone()).with_handle(drop).http(|http| {
        http.legacy_sse("/sse").caller(|parts| {
            let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
            let principal = Principal::new("test", header("x-user")?).with_scopes(header("x-scopes"));
            Some(match header("x-millis").and_then(|millis| millis.parse().ok()) {
                Some(millis) => principal.with_expiry(SystemTime::now() + Duration::from_millis(millis)),
                None => principal,
            })
        })
    })
}

async fn serve(builder: ServerBuilder) -> (Server, HttpServer) {
    let server = builder.build().expect("a server");
    let served = HttpServer::of(&server).await;
    (server, served)
}

fn listen(user: &str) -> HttpRequest {
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    HttpRequest::modern("s", "subscriptions/listen", filter).header("x-user", user)
}

/// Reads the messages of a stream up to its end.
async fn rest(mut stream: EventStream) -> Vec<Value> {
    within(async {
        let mut messages = Vec::new();
        while let Some(message) = stream.next().await {
            messages.push(message);
        }
        messages
    })
    .await
}

/// A session of a user.
async fn session(user: &str, served: &HttpServer) -> String {
    let session = HttpRequest::initialize("2025-11-25").header("x-user", user).send(served.address).await;
    let session = session.session();
    let initialized = HttpRequest::notification("notifications/initialized", &json!({}));
    let initialized = initialized.session(&session).header("x-user", user);
    assert_eq!(initialized.send(served.address).await.status, 202);
    session
}

#[track_caller]
fn assert_ended(messages: &[Value]) {
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(messages[0]["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(messages[1]["result"]["resultType"], "complete");
}

#[tokio::test]
async fn streams_end_when_their_caller_expires() {
    let (_server, served) = serve(builder(&Gate::default())).await;
    let at = served.address;
    let short = listen("ada").header("x-millis", "300");
    assert_ended(&rest(EventStream::open(&short, at).await.expect("a stream")).await);
    let session = session("ada", &served).await;
    let get = HttpRequest::standalone_stream(&session).header("x-user", "ada").header("x-millis", "300");
    assert_eq!(rest(EventStream::open(&get, at).await.expect("a stream")).await, [] as [Value; 0]);
    let headers = [("x-user", "ada"), ("x-millis", "300")];
    let mut sse = HttpSse::open(at, "/sse", &headers).await;
    assert_eq!(within(sse.next()).await, None);
}

#[tokio::test]
async fn an_expired_caller_is_anonymous() {
    let (_server, served) = serve(builder(&Gate::default())).await;
    let call = HttpRequest::modern(1, "tools/call", json!({ "name": "rule" }));
    let call = call.header("x-user", "ada").header("x-scopes", "admin");
    let valid = call.clone().header("x-millis", "60000").send(served.address).await;
    assert_eq!(text_of(&valid.json()), "ruled");
    let expired = call.header("x-millis", "0").send(served.address).await;
    assert_eq!(error_code(&expired.json()), -32602, "the tool is hidden from anonymous callers");
    let session = session("ada", &served).await;
    let list = HttpRequest::legacy(&session, 1, "tools/list", &json!({})).header("x-user", "ada");
    assert_eq!(list.clone().send(served.address).await.status, 200);
    assert_eq!(list.header("x-millis", "0").send(served.address).await.status, 404);
}

#[tokio::test]
async fn the_call_of_an_expired_caller_goes_on_and_its_stream_is_resumed_by_the_same_principal() {
    let gate = Gate::default();
    let (_server, served) = serve(builder(&gate)).await;
    let at = served.address;
    let session = session("ada", &served).await;
    let params = json!({ "name": "wait", "_meta": { "progressToken": 1 } });
    let call = HttpRequest::legacy(&session, 1, "tools/call", &params).header("x-user", "ada");
    let mut stream = EventStream::open(&call.header("x-millis", "300"), at).await.expect("a stream");
    let mut last = String::new();
    within(async {
        while let Some(event) = stream.next_event().await {
            assert!(event.message().is_none_or(|message| message.get("id").is_none()));
            last = event.id.unwrap_or(last.clone());
        }
    })
    .await;
    let resume = HttpRequest::standalone_stream(&session).header("Last-Event-ID", &last);
    let expired = resume.clone().header("x-user", "ada").header("x-millis", "0").send(at).await;
    assert_eq!(expired.status, 404);
    let resumed = EventStream::open(&resume.header("x-user", "ada"), at).await.expect("a stream");
    gate.open(1);
    let messages = rest(resumed).await;
    assert_eq!(text_of(messages.last().expect("the result")), "let go");
}

#[tokio::test]
async fn the_streams_of_one_principal_can_be_ended() {
    let (server, served) = serve(builder(&Gate::default())).await;
    let at = served.address;
    let session = session("ada", &served).await;
    let ada = EventStream::open(&listen("ada"), at).await.expect("a stream");
    let get = HttpRequest::standalone_stream(&session).header("x-user", "ada");
    let standalone = EventStream::open(&get, at).await.expect("a stream");
    let mut sse = HttpSse::open(at, "/sse", &[("x-user", "ada")]).await;
    let mut bob = EventStream::open(&listen("bob"), at).await.expect("a stream");
    assert_eq!(bob.message().await["method"], "notifications/subscriptions/acknowledged");
    server.handle().end_streams_of(&Principal::new("test", "ada"));
    assert_ended(&rest(ada).await);
    assert_eq!(rest(standalone).await, [] as [Value; 0]);
    assert_eq!(within(sse.next()).await, None);
    server.handle().tools_changed();
    assert_eq!(within(bob.message()).await["method"], "notifications/tools/list_changed");
    assert!(EventStream::open(&listen("ada"), at).await.is_ok(), "it is still authenticated");
}

#[tokio::test]
async fn updates_are_sent_only_to_callers_that_still_have_the_scopes() {
    let (server, served) = serve(builder(&Gate::default())).await;
    let at = served.address;
    let session = session("ada", &served).await;
    for uri in ["test://secret", "test://news"] {
        let subscribe = HttpRequest::legacy(&session, 1, "resources/subscribe", &json!({ "uri": uri }));
        let reply = subscribe.header("x-user", "ada").header("x-scopes", "admin").send(at).await.json();
        assert_eq!(reply["result"], json!({}), "{reply}");
    }
    let get = HttpRequest::standalone_stream(&session).header("x-user", "ada");
    let update = async |stream: &mut EventStream| {
        server.handle().resource_updated("test://secret");
        server.handle().resource_updated("test://news");
        within(stream.message()).await["params"]["uri"].clone()
    };
    let mut admin = EventStream::open(&get.clone().header("x-scopes", "admin"), at).await.expect("a stream");
    assert_eq!(update(&mut admin).await, "test://secret");
    assert_eq!(within(admin.message()).await["params"]["uri"], "test://news");
    // the same principal, without the scope
    let mut user = EventStream::open(&get, at).await.expect("a stream");
    assert_eq!(update(&mut user).await, "test://news");
}
