//! The `protected` example, with the tokens of an authorization server.

use tokio::net::TcpListener;

use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/protected.rs"]
mod example;

#[tokio::test]
async fn the_example_serves_callers_with_tokens_and_says_which_scopes_they_need() {
    let issuer = Issuer::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let origin = format!("http://{address}");
    let app = example::app(&origin, &issuer.url).unwrap();
    spawn(async move { axum::serve(listener, app).await });
    let resource = format!("{origin}/mcp");
    let call = |tool: &str, scope: &str| {
        let call = HttpRequest::modern(1, "tools/call", json!({ "name": tool }));
        call.header("Authorization", &format!("Bearer {}", issuer.token("ada", &resource, scope)))
    };
    assert_eq!(text_of(&call("whoami", "").send(address).await.json()), "ada");
    assert_eq!(call("read_notes", "").send(address).await.status, 403);
    assert_eq!(text_of(&call("read_notes", "notes:read").send(address).await.json()), "buy milk");
    let refused = call("delete_notes", "notes:read").send(address).await;
    assert!(refused.header("www-authenticate").unwrap().contains("scope=\"notes:read notes:write\""));
    let anonymous = HttpRequest::modern(1, "tools/call", json!({ "name": "whoami" })).send(address).await;
    let metadata = format!("{origin}/.well-known/oauth-protected-resource/mcp");
    assert_eq!(anonymous.status, 401);
    assert!(anonymous.header("www-authenticate").unwrap().contains(&metadata));
    let health = HttpRequest::new("GET").path("/health").send(address).await;
    assert_eq!(health.text(), "ok", "the rest of the app is open");
}
