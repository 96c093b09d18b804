use std::{
    future::IntoFuture as _,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    http::HeaderMap,
    routing::{get, post},
};
use mcp_runtime::{Principal, config::Secret};

use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/exchange.rs"]
mod example;

#[tokio::test]
async fn the_drive_gets_a_token_of_its_own_and_never_that_of_the_caller() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let metadata = json!({ "issuer": url, "token_endpoint": format!("{url}/token") });
    let issued = json!({ "access_token": "of-the-drive", "token_type": "Bearer", "expires_in": 600 });
    let at_drive = seen.clone();
    let files = move |headers: HeaderMap| async move {
        at_drive.lock().unwrap().push(headers["authorization"].to_str().unwrap().to_owned());
        Json(json!(["a.txt"]))
    };
    let app = Router::new()
        .route("/.well-known/oauth-authorization-server", get(|| async { Json(metadata) }))
        .route("/token", post(|| async { Json(issued) }))
        .route("/files", get(files));
    tokio::spawn(axum::serve(listener, app).into_future());

    let server = example::server(&url, &url, Secret::new("secret".to_owned())).unwrap();
    let server = TestServer::new(server).unwrap().caller(Principal::new(url.as_str(), "ada"));
    let server = server.header("authorization", "Bearer of-the-caller");
    server.call("list_files", json!({})).await.expect_json(&json!(["a.txt"]));
    server.call("token_length", json!({})).await.expect_text("12");
    assert_eq!(*seen.lock().unwrap(), ["Bearer of-the-drive"]);
}
