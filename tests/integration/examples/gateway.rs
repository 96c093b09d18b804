//! The `gateway` example, over HTTP.

use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/gateway/main.rs"]
mod example;

fn signed(request: HttpRequest, token: &str) -> HttpRequest {
    request.path("/api/mcp").header("Authorization", &format!("Bearer {token}"))
}

async fn request(to: SocketAddr, token: &str, method: &str, params: Value) -> HttpResponse {
    signed(HttpRequest::modern(1, method, params), token).send(to).await
}

async fn call(to: SocketAddr, token: &str, tool: &str, arguments: Value) -> HttpResponse {
    request(to, token, "tools/call", json!({ "name": tool, "arguments": arguments })).await
}

async fn start() -> SocketAddr {
    serve_router(example::app(example::mcp(None).unwrap(), example::Companies::default())).await
}

#[tokio::test]
async fn without_a_token_neither_the_api_nor_the_endpoint_answers() {
    let address = start().await;
    let list = HttpRequest::modern(1, "tools/list", json!({})).path("/api/mcp");
    let bad = signed(HttpRequest::modern(1, "tools/list", json!({})), "ada-of-acm");
    for request in [list, bad, HttpRequest::new("GET").path("/api/orders")] {
        let response = request.send(address).await;
        assert_eq!((response.status, response.header("www-authenticate")), (401, Some("Bearer")));
    }
    assert_eq!(HttpRequest::new("GET").path("/health").send(address).await.text(), "ok");
}

#[tokio::test]
async fn the_api_and_the_tools_show_the_orders_of_the_callers_company() {
    let address = start().await;
    for (token, articles) in [("bob-of-acme", ["rope", "anvil"].as_slice()), ("ada-of-zenith", &["lens"])] {
        let reply = call(address, token, "list_orders", json!({})).await.json();
        let orders: Vec<Value> = serde_json::from_str(text_of(&reply)).unwrap();
        let listed: Vec<_> = orders.iter().map(|order| order["article"].as_str().unwrap()).collect();
        assert_eq!(listed, articles);
        let api = signed(HttpRequest::new("GET"), token).path("/api/orders").send(address).await;
        assert!(articles.iter().all(|article| api.text().contains(article)), "{}", api.text());
        assert_eq!(api.text().lines().count(), articles.len());
    }
    let foreign = request(address, "ada-of-zenith", "resources/read", json!({ "uri": "orders://1" })).await;
    assert_eq!(foreign.code(), -32602);
    let own = request(address, "ada-of-acme", "resources/read", json!({ "uri": "orders://1" })).await;
    assert!(own.text().contains("rope"), "{}", own.text());
}

#[tokio::test]
async fn scopes_decide_what_a_caller_may_see_and_call() {
    let address = start().await;
    for (token, tools) in
        [("bob-of-acme", ["list_orders"].as_slice()), ("ada-of-acme", &["list_orders", "ship"])]
    {
        let reply = request(address, token, "tools/list", json!({})).await.json();
        let listed =
            reply["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
        assert_eq!(listed.collect::<Vec<_>>(), tools);
    }
    assert_eq!(call(address, "bob-of-acme", "ship", json!({ "id": 1 })).await.code(), -32602);
    let shipped = call(address, "ada-of-acme", "ship", json!({ "id": 1 })).await.json();
    assert_eq!(text_of(&shipped), "order 1 (rope) was shipped by ada");
    let again = call(address, "ada-of-acme", "ship", json!({ "id": 1 })).await.json();
    assert_eq!(text_of(&again), "order 1 has been shipped before");
}

#[tokio::test]
async fn a_session_belongs_to_the_user_of_one_company() {
    let address = start().await;
    let session = signed(HttpRequest::initialize("2025-11-25"), "ada-of-acme").send(address).await.session();
    // bob is a colleague, and the other ada has the same name in another company
    for (token, status) in [("ada-of-acme", 200), ("bob-of-acme", 404), ("ada-of-zenith", 404)] {
        let list = HttpRequest::legacy(&session, 1, "tools/list", &json!({}));
        assert_eq!(signed(list, token).send(address).await.status, status, "{token}");
    }
}

#[tokio::test]
async fn changes_of_an_order_reach_its_company_only() {
    let address = start().await;
    let wanted = json!({ "notifications": { "resourceSubscriptions": ["orders://1", "orders://3"] } });
    let listen = HttpRequest::modern("listen", "subscriptions/listen", wanted);
    for (token, own) in [("bob-of-acme", "orders://1"), ("ada-of-zenith", "orders://3")] {
        let mut stream = EventStream::open(&signed(listen.clone(), token), address).await.unwrap();
        let acknowledged = stream.message().await;
        assert_eq!(
            acknowledged["params"]["notifications"]["resourceSubscriptions"],
            json!([own]),
            "{acknowledged}"
        );
    }
}

#[tokio::test]
async fn only_the_public_host_reaches_the_endpoint_of_a_public_server() {
    let mcp = example::mcp(Some("shop.example.com")).unwrap();
    let address = serve_router(example::app(mcp, example::Companies::default())).await;
    let list = signed(HttpRequest::modern(1, "tools/list", json!({})), "ada-of-acme");
    assert_eq!(list.clone().with("Host", "shop.example.com").send(address).await.status, 200);
    assert_eq!(list.with("Host", "other.example.com").send(address).await.status, 403);
}
