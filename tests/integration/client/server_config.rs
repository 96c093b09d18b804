//! Files of servers as hosts have them: every server of them is a client, or all are one toolset.

use std::future::IntoFuture as _;

use mcp_runtime::client::{Error, McpServers};
use mcp_tests::support::HttpServer;
use serde_json::json;

use super::{builder, within};

#[tokio::test]
async fn servers_of_every_host_are_connected_and_broken_ones_cost_no_other() {
    let server = HttpServer::start(builder()).await;
    let (url, program) = (format!("http://{}/mcp", server.address), env!("CARGO_BIN_EXE_fixture"));
    for key in ["mcpServers", "servers", "context_servers"] {
        let text = json!({ key: {
            "local": { "command": "${PROGRAM}", "args": [], "env": { "GREETING": "${input:words}", "N": 1 }, "timeout": 5 },
            "shop": { "type": "http", "url": url, "headers": { "X-Key": "${MCP_NOT_SET:-none}" } },
            "windsurf": { "serverUrl": url },
            "off": { "command": "nothing", "disabled": true },
            "off too": { "command": "nothing", "enabled": false },
            "empty": {},
            "secret": { "url": url, "headers": { "X-Key": "${MCP_NOT_SET}" } },
            "gone": { "command": "/nonexistent/program" },
        } });
        let servers = McpServers::parse(&format!("// servers\n{text}"))
            .unwrap()
            .variable("PROGRAM", program)
            .variable("input:words", "hello")
            .configure(|name, builder| builder.info(name, "1"));
        let names = ["empty", "gone", "local", "secret", "shop", "windsurf"];
        assert_eq!(servers.names().collect::<Vec<_>>(), names);
        assert!(!format!("{servers:?}").contains("X-Key"));

        let clients = within(servers.connect()).await;
        assert_eq!(clients.keys().collect::<Vec<_>>(), names);
        for (name, connected) in &clients {
            let says = |text: &str| connected.as_ref().is_err_and(|error| error.to_string().contains(text));
            match name.as_str() {
                "empty" => assert!(says("`empty`: it has neither a `command` nor a `url`")),
                "secret" => assert!(says("`secret`: the variable `${MCP_NOT_SET}` is not set")),
                "gone" => assert!(matches!(connected, Err(Error::NotConnected { .. }))),
                _ => drop(within(connected.as_ref().unwrap().tools().into_future()).await.unwrap()),
            }
        }

        let toolset = servers.toolset().unwrap();
        let tools = within(toolset.tools()).await.unwrap();
        for prefix in ["local.", "shop.", "windsurf."] {
            assert!(tools.iter().any(|tool| tool.name().starts_with(prefix)), "{prefix}");
        }
        let echoed = within(toolset.call("shop.echo", json!({ "message": "tea" }))).await.unwrap();
        assert_eq!(echoed.text(), "tea");
        let missing: Vec<_> = toolset.unavailable().into_iter().map(|(name, _)| name).collect();
        assert_eq!(missing, ["empty", "gone", "secret"]);
    }
}

#[test]
fn files_without_servers_say_where_they_are_expected() {
    for (text, says) in [
        ("{}", "mcpServers"),
        ("[]", "mcpServers"),
        ("{\"mcpServers\": []}", "mcpServers"),
        ("{\n \"mcpServers\" {}\n}", "line 2"),
    ] {
        let error = McpServers::parse(text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
    let empty = McpServers::parse("{\"mcp\": {\"servers\": {}}}").unwrap();
    assert!(empty.toolset().is_err());
    assert!(
        McpServers::read("/nonexistent/mcp.json").unwrap_err().to_string().contains("/nonexistent/mcp.json")
    );
}
