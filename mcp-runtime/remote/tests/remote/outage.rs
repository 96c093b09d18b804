//! Other servers that are dead, slow, or come and go.

use mcp_runtime::{
    prelude::*,
    tool::{ToolCall, ToolDef},
};
use mcp_runtime_remote::Remote;
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::{Served, built, names, test_server, until};

/// Answers.
#[mcp_tool]
fn answer() -> &'static str {
    "here"
}

/// The tool of the server itself.
#[mcp_tool]
fn own() -> &'static str {
    "own"
}

/// A port where nothing listens.
async fn dead_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("an address").port()
}

#[tokio::test]
async fn a_dead_and_a_slow_server_delay_no_other() {
    let slow = ToolDef::builder("wait").handler(|_: ToolCall| async {
        std::future::pending::<()>().await;
        "never"
    });
    let slow = Served::new(&built(mcp_runtime::server!().add(slow))).await;
    let good = Served::new(&built(mcp_runtime::server!().tool::<answer>())).await;
    let server = test_server(
        mcp_runtime::server!()
            .add(Remote::new("dead", format!("http://127.0.0.1:{}/mcp", dead_port().await)))
            .add(
                Remote::new("slow", slow.url())
                    .max_concurrency(1)
                    .timeout(std::time::Duration::from_millis(300)),
            )
            .add(Remote::new("good", good.url())),
    );
    assert_eq!(names(&server.list_tools().await), ["slow_wait", "good_answer"]);
    let calls = async {
        for _ in 0..20 {
            server.call("good_answer", json!({})).await.expect_text("here");
        }
    };
    let (stuck, waiting, ()) =
        tokio::join!(server.call("slow_wait", json!({})), server.call("slow_wait", json!({})), calls);
    let texts = [stuck.text(), waiting.text()];
    for text in &texts {
        assert!(
            text.contains("`slow` has not answered within 300ms") || text.contains("`slow` is busy"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn items_stay_while_the_server_is_away_and_calls_fail_until_it_is_back() {
    let upstream = built(mcp_runtime::server!().tool::<answer>());
    let served = Served::new(&upstream).await;
    let address = served.address;
    let server = test_server(mcp_runtime::server!().add(Remote::new("up", served.url())));
    assert_eq!(names(&server.list_tools().await), ["up_answer"]);
    server.call("up_answer", json!({})).await.expect_text("here");

    drop(served);
    until(|| async { server.call("up_answer", json!({})).await.is_error() }).await;
    let failed = server.call("up_answer", json!({})).await;
    failed.expect_failure("`up` cannot be reached");
    assert_eq!(names(&server.list_tools().await), ["up_answer"]);

    let listener = TcpListener::bind(address).await.expect("the same port");
    let _served = Served::at(listener, &upstream);
    until(|| async { !server.call("up_answer", json!({})).await.is_error() }).await;
}

#[tokio::test]
async fn it_is_connected_when_a_client_first_needs_it() {
    let served = Served::new(&built(mcp_runtime::server!().tool::<answer>())).await;
    let server = test_server(mcp_runtime::server!().add(Remote::new("up", served.url())).tool::<own>());
    server.call("own", json!({})).await.expect_text("own");
    assert!(served.all().is_empty());
    // the call waits for the items as a list does
    server.call("up_answer", json!({})).await.expect_text("here");
    server.call("up_nothing", json!({})).await.expect_code(-32602);
}

/// The status of the probe for readiness.
async fn readiness(served: &Served) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(served.address).await.expect("a connection");
    stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").await.expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).await.expect("a response");
    response.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_server_is_not_ready_without_the_remote_servers_that_it_requires() {
    let upstream = built(mcp_runtime::server!().tool::<answer>());
    let served = Served::new(&upstream).await;
    let address = served.address;
    let optional = Remote::new("dead", format!("http://127.0.0.1:{}/mcp", dead_port().await));
    let mounted = mcp_runtime::server!().add(Remote::new("up", served.url()).required());
    let relay = Served::new(&built(mcp_runtime::server!().mount("team", mounted).add(optional))).await;
    // no client has asked for anything
    until(|| async { readiness(&relay).await == "200" }).await;
    drop(served);
    let client = relay.client().await;
    until(|| async { client.call("team_up_answer", json!({})).await.is_ok_and(|result| result.is_error) })
        .await;
    until(|| async { readiness(&relay).await == "503" }).await;
    let listener = TcpListener::bind(address).await.expect("the same port");
    let _served = Served::at(listener, &upstream);
    until(|| async { readiness(&relay).await == "200" }).await;
}

#[tokio::test]
async fn a_list_without_the_items_of_a_slow_server_must_not_be_kept() {
    // it accepts connections, and answers nothing
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", silent.local_addr().expect("an address"));
    let builder = mcp_runtime::server!().tool::<answer>().add(Remote::new("silent", url));
    let server = test_server(builder.lists(|lists| lists.ttl(std::time::Duration::from_secs(60))));
    let reply = server.request("tools/list", json!({})).await;
    let list = reply.value();
    assert_eq!(list["tools"].as_array().map(Vec::len), Some(1));
    assert_eq!((&list["ttlMs"], &list["cacheScope"]), (&json!(0), &json!("private")));
}
