//! Items that are hidden from callers without their scopes.

use mcp_runtime::skill::SkillsDir;

use crate::{
    prelude::*,
    skills::{FIXTURE, MANIFEST},
};

/// For everyone
#[mcp_tool]
fn open() -> &'static str {
    "open"
}

/// For administrators
#[mcp_tool(scopes("admin"))]
fn purge() -> &'static str {
    "purged"
}

/// For administrators, with an argument that is mirrored in a header
#[mcp_tool(scopes("admin"))]
fn route(#[mcp(header = "Region")] region: String) -> String {
    region
}

/// For administrators
#[mcp_resource(uri = "test://secrets", scopes("admin"))]
fn secrets() -> &'static str {
    "secret"
}

/// The administrators' page of the handbook
#[mcp_resource(uri = "book://Rules", scopes("admin"), cache(ttl = "60s"))]
fn admin_rules() -> &'static str {
    "for administrators"
}

/// The administrators' pages of the handbook
#[mcp_resource(uri = "book://Admin{page}", scopes("admin"))]
fn admin_page(page: String) -> String {
    format!("{page} for administrators")
}

/// A page of the handbook
#[mcp_resource(uri = "book://{page}", cache(ttl = "1s", public))]
fn page(page: String) -> String {
    page
}

fn server() -> Server {
    Server::builder("scopes", "1")
        .discover_in(module_path!())
        .http(|http| {
            http.caller(|parts| {
                let user = parts.headers.get("x-user")?.to_str().ok()?;
                let scopes: &[&str] = if user == "root" { &["admin"] } else { &[] };
                Some(Principal::new("test", user).with_scopes(scopes.iter().copied()))
            })
        })
        .build()
        .expect("a server")
}

/// Scopes hide items from lists and refuse calls, also for an anonymous caller.
#[tokio::test]
async fn scopes_hide_items_from_callers_without_them() {
    let served = HttpServer::of(&server()).await;
    let at = served.address;
    let list = || HttpRequest::modern(1, "tools/list", json!({}));
    let call = || HttpRequest::modern(2, "tools/call", json!({"name": "purge"}));
    let read = || HttpRequest::modern(3, "resources/read", json!({"uri": "test://secrets"}));

    let reply = list().header("X-User", "root").send(at).await.json();
    assert_eq!(tool_names(&reply), ["open", "purge", "route"]);
    assert_eq!(reply["result"]["cacheScope"], "private");
    assert_eq!(text_of(&call().header("X-User", "root").send(at).await.json()), "purged");

    for user in [Some("ada"), None] {
        let from = |request: HttpRequest| match user {
            Some(user) => request.header("X-User", user),
            None => request,
        };
        assert_eq!(tool_names(&from(list()).send(at).await.json()), ["open"], "{user:?}");
        // without the header, since the error for it would reveal a hidden tool
        let route = json!({"name": "route", "arguments": {"region": "eu"}});
        for refused in [from(call()), from(read()), from(HttpRequest::modern(4, "tools/call", route))] {
            let reply = refused.send(at).await;
            assert_eq!(reply.code(), -32602, "{user:?}: {}", reply.text());
            assert!(!reply.text().contains("did you mean `purge`"), "a hidden name is not suggested");
        }
    }
}

#[tokio::test]
async fn a_template_answers_for_a_resource_that_is_hidden_from_the_caller() {
    let served = HttpServer::of(&server()).await;
    let read = async |uri: &str, user: &str| {
        let request = HttpRequest::modern(1, "resources/read", json!({ "uri": uri }));
        request.header("X-User", user).send(served.address).await.json()["result"].clone()
    };
    let text = |result: &Value| result["contents"][0]["text"].clone();
    for (user, rules, other) in
        [("root", "for administrators", "s for administrators"), ("ada", "Rules", "Admins")]
    {
        let [exact, template] = [read("book://Rules", user).await, read("book://Admins", user).await];
        assert_eq!((text(&exact), text(&template)), (json!(rules), json!(other)), "{user}");
    }
}

#[tokio::test]
async fn nothing_is_cached_for_all_callers_where_they_are_told_apart() {
    #[derive(Clone)]
    struct User;
    impl mcp_runtime::http::IntoPrincipal for User {
        fn into_principal(self) -> Option<Principal> {
            None
        }
    }
    #[derive(Clone)]
    struct Tenant;
    let builder = || {
        let builder = Server::builder("caches", "1").tool::<open>().resource::<page>();
        builder.add(SkillsDir::new(FIXTURE)).lists(|lists| lists.ttl(Duration::from_secs(1)))
    };
    for (builder, scope) in [
        (builder(), "public"),
        (builder().http(|http| http.trust_all_callers()), "public"),
        (builder().http(|http| http.caller(|_| None)), "private"),
        (builder().http(|http| http.caller_from::<User>()), "private"),
        (builder().http(|http| http.from_request::<Tenant>()), "private"),
    ] {
        let served = HttpServer::start(builder).await;
        for (method, params) in [
            ("tools/list", json!({})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("server/discover", json!({})),
            ("resources/read", json!({ "uri": "book://x" })),
            ("skills/list", json!({})),
            ("skills/get", json!({ "uri": MANIFEST })),
            ("resources/directory/read", json!({ "uri": "skill://fixture-skill" })),
            ("resources/read", json!({ "uri": MANIFEST })),
        ] {
            let reply = HttpRequest::modern(1, method, params).send(served.address).await.json();
            let result = &reply["result"];
            assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(1000), &json!(scope)), "{method}");
        }
    }
}
