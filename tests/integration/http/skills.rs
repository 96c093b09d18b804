//! Skills over HTTP: they need no `Mcp-Name` header, and are cached only where callers are not distinguished.

use mcp_runtime::skill::SkillsDir;

use crate::{prelude::*, skills::FIXTURE};

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
    let builder = Server::builder("skills", "1").add(SkillsDir::new(FIXTURE));
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
}

#[tokio::test]
async fn skills_are_private_where_callers_are_distinguished() {
    let builder = Server::builder("skills", "1")
        .add(SkillsDir::new(FIXTURE))
        .lists(|lists| lists.ttl(Duration::from_secs(60)));
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
}

#[tokio::test]
async fn skills_with_scopes_are_hidden_from_callers_without_them() {
    fn builder() -> ServerBuilder {
        let internal =
            Server::builder("internal", "1").add(SkillsDir::new(FIXTURE).scopes(["staff", "read"]));
        Server::builder("skills", "1").add(SkillsDir::new(FIXTURE)).mount("internal", internal)
    }
    const FOLDER: &str = "skill://internal/fixture-skill";
    let manifest = format!("{FOLDER}/SKILL.md");
    let asks = [
        ("skills/get", json!({ "uri": manifest })),
        ("resources/directory/read", json!({ "uri": FOLDER })),
        ("resources/read", json!({ "uri": manifest })),
        ("resources/read", json!({ "uri": format!("{FOLDER}/scripts/check.sh") })),
    ];
    for (scopes, sees) in [(vec!["staff", "read"], true), (vec!["staff"], false), (vec![], false)] {
        let caller = Principal::new("test", "ada").with_scopes(scopes);
        let served =
            HttpServer::start(builder().http(|http| http.caller(move |_| Some(caller.clone())))).await;
        let ask = async |method: &str, params: Value| {
            HttpRequest::modern(1, method, params).send(served.address).await.json()
        };
        for method in ["skills/list", "resources/list"] {
            let list = ask(method, json!({})).await.to_string();
            assert!(list.contains(MANIFEST), "{list}");
            assert_eq!(list.contains(FOLDER), sees, "{list}");
        }
        for (method, params) in &asks {
            let reply = ask(method, params.clone()).await;
            assert_eq!(reply.get("result").is_some(), sees, "{method}: {reply}");
            let other = ask(method, json!({ "uri": "skill://internal/none/SKILL.md" })).await;
            assert!(sees || reply["error"]["code"] == other["error"]["code"], "{method}: {reply}");
        }
        assert!(ask("resources/read", json!({ "uri": MANIFEST })).await.get("result").is_some());
    }
    let refused = builder().build().expect("a server").into_service().expect_err("refused").to_string();
    assert!(refused.contains(&format!("skill `{manifest}`")), "{refused}");
}
