//! Uses each feature that it is built with, alone or beside the default: `.ci/features` builds and runs it with every one. A part
//! names only what its feature adds, so that it compiles without the others; events and settings are declared by attributes.

#[cfg(any(feature = "http", feature = "stdio"))]
use std::io::{Read as _, Write as _};

use mcp_runtime::{
    Server, ServerBuilder,
    serde_json::{self, Value, json},
    tool::{ToolBuilder, ToolCall, ToolDef},
};

#[cfg(all(feature = "config", feature = "macros"))]
mod settings {
    use mcp_runtime::mcp_config;

    #[mcp_config]
    pub(super) struct Settings {
        /// How many are returned at once
        #[mcp(default = 5)]
        pub(super) batch: usize,
    }
}

#[cfg(feature = "macros")]
mod items {
    use mcp_runtime::prelude::*;

    /// Adds two numbers.
    #[mcp_tool]
    pub(super) fn sum(a: i64, b: i64) -> i64 {
        a + b
    }

    /// A version was deployed.
    #[cfg(feature = "events")]
    #[mcp_event]
    pub(super) fn deployed(#[mcp(payload)] version: &Version) -> bool {
        version.number > 0
    }

    #[cfg(feature = "events")]
    #[mcp_type]
    pub(super) struct Version {
        pub(super) number: u32,
    }
}

fn add() -> ToolBuilder {
    ToolDef::builder("add")
}

async fn sum(call: ToolCall) -> String {
    let number = |name: &str| call.arguments[name].as_i64().unwrap_or(0);
    (number("a") + number("b")).to_string()
}

fn server() -> ServerBuilder {
    Server::builder("feature", "1.0.0").add(add().handler(sum))
}

fn call(tool: &str) -> Value {
    json!({ "name": tool, "arguments": { "a": 1, "b": 2 } })
}

fn message(method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

/// The reply to a request over streams of bytes, which every server has.
async fn reply(server: &Server, method: &str, params: Value) -> Value {
    let (request, mut written) = (message(method, params) + "\n", Vec::new());
    server.serve(request.as_bytes(), &mut written).await.expect("it is served");
    serde_json::from_slice(&written).expect("one reply")
}

/// Calls `add`, and checks the sum.
async fn check(builder: ServerBuilder) -> Server {
    let server = builder.build().expect("a server");
    let reply = reply(&server, "tools/call", call("add")).await;
    assert_eq!(reply["result"]["content"][0]["text"], "3", "{reply}");
    server
}

/// A call of `add` over HTTP.
#[cfg(feature = "http")]
fn post() -> String {
    let body = message("tools/call", call("add"));
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: tools/call\r\nmcp-name: add\r\ncontent-length: {}\r\n\r\n{body}",
        body.len(),
    )
}

/// The response to a request over HTTP.
#[cfg(feature = "http")]
async fn send(address: std::net::SocketAddr, request: String) -> String {
    let exchange = move || -> std::io::Result<String> {
        let mut stream = std::net::TcpStream::connect(address)?;
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60)))?;
        stream.write_all(request.as_bytes())?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        Ok(response)
    };
    tokio::task::spawn_blocking(exchange).await.expect("no panic").expect("a response")
}

/// The response of a server with these options to a request over HTTP.
#[cfg(feature = "http")]
async fn serve_http(builder: ServerBuilder, request: String) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = builder.build().expect("a server");
    tokio::select! {
        served = server.serve_http_on(listener) => panic!("{served:?}"),
        response = send(address, request) => response,
    }
}

#[tokio::main]
async fn main() {
    #[cfg(feature = "stdio")]
    if std::env::args().nth(1).as_deref() == Some("stdio") {
        return server().serve_stdio().await.expect("it is served");
    }
    check(server()).await;

    #[cfg(feature = "audit")]
    {
        use std::sync::{Arc, Mutex};
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let kept = lines.clone();
        let audit =
            mcp_runtime::audit::Audit::to(move |line| kept.lock().expect("no panic").push(line.to_owned()));
        check(server().audit(audit)).await;
        assert!(lines.lock().expect("no panic").iter().any(|line| line.contains("\"add\"")));
    }

    #[cfg(feature = "auth")]
    {
        let keys = mcp_runtime::auth::ApiKeys::new([(
            "a-key-of-32-characters-or-longer",
            mcp_runtime::Principal::new("test", "ada"),
        )]);
        let response = serve_http(server().auth(keys), post()).await;
        assert!(response.starts_with("HTTP/1.1 401"), "{response}");
    }

    #[cfg(feature = "axum")]
    {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let router: axum::Router = server().into_router().expect("a router");
        tokio::select! {
            served = axum::serve(listener, router) => panic!("{served:?}"),
            response = send(address, post()) => assert!(response.contains("\"text\":\"3\""), "{response}"),
        }
    }

    #[cfg(feature = "cli")]
    {
        let run = || server().run_with_args(["call", "add", r#"{ "a": 1, "b": 2 }"#]);
        std::thread::spawn(run).join().expect("no panic").expect("a sum");
    }

    #[cfg(feature = "client")]
    {
        let server = server().build().expect("a server");
        let client = mcp_runtime::client::Client::connect(&server).await.expect("a connection");
        let result = client.call("add", json!({ "a": 1, "b": 2 })).await.expect("a result");
        assert_eq!(result.ok().expect("a sum").text(), "3");
        client.close().await;
        // with TLS and addresses as for any server
        let refused = mcp_runtime::client::Client::connect("https://127.0.0.1:1/mcp").await;
        refused.expect_err("nothing listens there");
    }

    #[cfg(feature = "client-oauth")]
    {
        use mcp_runtime::client::TokenStore as _;
        let path = std::env::temp_dir().join(format!("mcp-feature-{}.json", std::process::id()));
        let tokens = mcp_runtime::client::FileTokens::new(&path);
        tokens.save("https://example.com", &json!({ "access": "a" })).expect("it is saved");
        let loaded = tokens.load("https://example.com").expect("a file");
        std::fs::remove_file(&path).expect("a file");
        assert_eq!(loaded, Some(json!({ "access": "a" })));
    }

    #[cfg(feature = "client-browser")]
    {
        let oauth = mcp_runtime::client::OAuth::loopback(0, |_| {}).expect("a port").open_browser();
        assert!(format!("{oauth:?}").contains("OAuth"));
    }

    #[cfg(feature = "client-keyring")]
    {
        use mcp_runtime::client::TokenStore as _;
        let tokens = mcp_runtime::client::KeyringTokens::new("mcp-feature", std::env::temp_dir());
        tokens.load("https://example.com").expect_err("the program has chosen no keyring");
    }

    #[cfg(feature = "config")]
    {
        let secret = mcp_runtime::config::Secret::<String>::from("planted");
        assert!(!format!("{secret:?}").contains(secret.expose().as_str()));
        #[cfg(feature = "macros")]
        check(server().config::<settings::Settings>()).await;
    }

    #[cfg(feature = "contract")]
    {
        let server = mcp_runtime::testing::TestServer::new(server()).expect("a server");
        assert!(server.contract().read().await.text().contains("\"add\""));
    }

    #[cfg(all(feature = "events", feature = "macros"))]
    {
        let server = check(server().add(mcp_runtime::event::of::<items::deployed>())).await;
        let listed = reply(&server, "events/list", json!({})).await;
        assert_eq!(listed["result"]["events"][0]["name"], "deployed", "{listed}");
        server.handle().emit::<items::deployed>(&items::Version { number: 1 }).await.expect("it is emitted");
        #[cfg(feature = "events-webhook")]
        {
            let delivery = json!({ "mode": "webhook", "url": "https://example.com", "secret": "whsec_" });
            let params = json!({ "name": "deployed", "arguments": {}, "delivery": delivery, "cursor": null });
            let refused = reply(&server, "events/subscribe", params).await;
            assert_eq!(refused["error"]["code"], -32024, "a webhook belongs to a principal: {refused}");
        }
    }

    #[cfg(feature = "http")]
    {
        let response = serve_http(server(), post()).await;
        assert!(response.starts_with("HTTP/1.1 200") && response.contains("\"text\":\"3\""), "{response}");
    }

    #[cfg(feature = "http-sse")]
    {
        let post = "POST /sse?sessionId=none HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        let response = serve_http(server().http(|http| http.legacy_sse("/sse")), post.to_owned()).await;
        assert!(response.contains("the event stream does not exist"), "{response}");
    }

    #[cfg(feature = "install")]
    {
        let arguments = ["cursor", "--print", "--name", "files", "--", "a-server"].map(String::from);
        mcp_runtime::install::run("mcp-feature", arguments).expect("an entry");
    }

    #[cfg(feature = "macros")]
    {
        let server = check(server().tool::<items::sum>()).await;
        let reply = reply(&server, "tools/call", call("sum")).await;
        assert_eq!(reply["result"]["content"][0]["text"], "3", "{reply}");
    }

    #[cfg(feature = "metrics")]
    {
        let server = check(server().telemetry(|telemetry| telemetry.metrics())).await;
        assert!(server.metrics().expect("it has metrics").contains("\"add\""));
    }

    #[cfg(feature = "otel")]
    {
        use tracing_subscriber::{layer::SubscriberExt as _, util::SubscriberInitExt as _};
        let _guard = tracing_subscriber::registry().with(tracing_opentelemetry::layer()).set_default();
        check(server()).await;
    }

    #[cfg(feature = "redis")]
    {
        use mcp_runtime::store::{Redis, Shared as _};
        Redis::at("redis://127.0.0.1:1").publish("topic", b"").await.expect_err("nothing listens there");
        #[cfg(feature = "redis-tls")]
        Redis::at("rediss://127.0.0.1:1").check().expect("TLS is there");
    }

    #[cfg(feature = "server-card")]
    {
        let url = "https://notes.example.com/mcp";
        let named = server().info(|info| info.registry_name("com.example/notes").public_url(url));
        let get = "GET /mcp/server-card HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        let response = serve_http(named, get.to_owned()).await;
        assert!(response.contains(url), "{response}");
    }

    #[cfg(feature = "shared")]
    {
        let keyed = server().stores(|stores| {
            stores.keys([std::array::from_fn(|at| u8::try_from(at * 7).expect("below 256"))])
        });
        check(keyed.shared(mcp_runtime::store::Memory::default())).await;
    }

    #[cfg(feature = "skills")]
    {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/skills");
        let server = check(server().add(mcp_runtime::skill::SkillsDir::new(folder))).await;
        let listed = reply(&server, "resources/list", json!({})).await;
        assert!(listed["result"].to_string().contains("fixture-skill"), "{listed}");
    }

    #[cfg(feature = "stdio")]
    {
        use std::process::{Command, Stdio};
        let mut program = Command::new(std::env::current_exe().expect("this program"));
        let mut child =
            program.arg("stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        writeln!(child.stdin.take().expect("stdin"), "{}", message("tools/call", call("add")))
            .expect("a pipe");
        let mut written = String::new();
        child.stdout.take().expect("stdout").read_to_string(&mut written).expect("a reply");
        assert!(child.wait().expect("its status").success());
        assert!(written.contains("\"text\":\"3\""), "{written}");
    }

    #[cfg(feature = "tasks")]
    {
        let later = ToolDef::builder("later").task(mcp_runtime::tool::TaskMode::Required).handler(sum);
        let server = check(server().add(later)).await;
        let begun = reply(&server, "tools/call", call("later")).await;
        assert_eq!(begun["result"]["resultType"], "task", "{begun}");
    }

    #[cfg(feature = "testing")]
    {
        let server = mcp_runtime::testing::TestServer::new(server()).expect("a server");
        server.call("add", json!({ "a": 1, "b": 2 })).await.expect_text("3");
    }

    #[cfg(feature = "tracing")]
    {
        use tracing_subscriber::{layer::SubscriberExt as _, util::SubscriberInitExt as _};
        let _guard = tracing_subscriber::registry().with(mcp_runtime::context::client_layer()).set_default();
        check(server().telemetry(|telemetry| telemetry.client_logging())).await;
    }
}
