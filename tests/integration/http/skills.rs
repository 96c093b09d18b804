//! Skills over HTTP: they need no `Mcp-Name` header, and are cached only where callers are not distinguished.

use std::time::Duration;

use mcp_runtime::{Principal, Server, ServerBuilder};
use mcp_tests::support::{HttpRequest, HttpServer, within};
use serde_json::{Value, json};

use crate::skills::FIXTURE;

const MANIFEST: &str = "skill://fixture-skill/SKILL.md";

/// The results of these requests.
async fn results(builder: ServerBuilder, asks: &[(&str, Value)]) -> Vec<Value> {
    let server = HttpServer::start(builder).await;
    let mut replies = Vec::new();
    for (method, params) in asks {
        let reply = HttpRequest::modern(1, method, params.clone()).send(server.address).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        replies.push(reply.json());
    }
    replies
}

#[tokio::test]
async fn skills_are_served_over_http() {
    within(async {
        let builder = Server::builder("skills", "1").skills(FIXTURE);
        let replies = results(
            builder,
            &[
                ("server/discover", json!({})),
                ("skills/list", json!({})),
                ("skills/get", json!({ "uri": MANIFEST })),
                ("resources/directory/read", json!({ "uri": "skill://fixture-skill" })),
                ("resources/read", json!({ "uri": MANIFEST })),
                ("skills/get", json!({ "uri": "skill://other/SKILL.md" })),
            ],
        )
        .await;
        let [discovered, list, got, folder, read, missing] = replies.try_into().expect("six replies");
        let extensions = &discovered["result"]["capabilities"]["extensions"];
        assert_eq!(extensions, &json!({ "io.modelcontextprotocol/skills": { "directoryRead": true } }));
        assert_eq!(list["result"]["skills"][0], got["result"]["skill"]);
        assert_eq!(folder["result"]["resources"][1]["mimeType"], "inode/directory");
        assert_eq!(read["result"]["contents"][0]["mimeType"], "text/markdown");
        assert_eq!(missing["error"]["code"], -32602);
    })
    .await;
}

#[tokio::test]
async fn skills_are_private_where_callers_are_distinguished() {
    within(async {
        let builder =
            Server::builder("skills", "1").skills(FIXTURE).lists(|lists| lists.ttl(Duration::from_secs(60)));
        let builder = builder.http(|http| http.caller(|_| Some(Principal::new("test", "ada"))));
        let asks = [
            ("skills/list", json!({})),
            ("skills/get", json!({ "uri": MANIFEST })),
            ("resources/directory/read", json!({ "uri": "skill://fixture-skill" })),
            ("resources/read", json!({ "uri": MANIFEST })),
        ];
        for reply in results(builder, &asks).await {
            assert_eq!(reply["result"]["cacheScope"], "private", "{reply}");
        }
    })
    .await;
}
