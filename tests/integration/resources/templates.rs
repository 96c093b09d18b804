//! URI templates: every form of expression, decoding, precedence between templates, and path traversal.

use crate::prelude::*;

#[mcp_resource(uri = "path://{+path}")]
fn path(path: String) -> String {
    path
}

#[mcp_resource(uri = "files:///{+path}")]
fn files(path: String) -> String {
    path
}

#[mcp_resource(uri = "list://h{/parts*}")]
fn parts(parts: Vec<String>) -> String {
    parts.join("|")
}

#[mcp_resource(uri = "slash://h{/a}")]
fn slash(a: String) -> String {
    a
}

#[mcp_resource(uri = "query://h{?a,b}")]
fn query(a: Option<String>, #[mcp(default = 7)] b: u32) -> String {
    format!("{a:?} {b}")
}

#[mcp_resource(uri = "tags://h{?tag,n}")]
fn tags(tag: Option<Vec<String>>, n: Option<u8>) -> String {
    format!("{tag:?} {n:?}")
}

#[mcp_resource(uri = "mixed://{name}.json{?pretty}")]
fn mixed(name: String, pretty: Option<bool>) -> String {
    format!("{name} {pretty:?}")
}

#[mcp_resource(uri = "two://{a}/x/{b}")]
fn two(a: u8, b: String) -> String {
    format!("{a} {b}")
}

fn all() -> TestServer {
    let first = mcp_runtime::server!().resource::<path>().resource::<files>().resource::<parts>();
    let more = first.resource::<slash>().resource::<query>().resource::<tags>().resource::<mixed>();
    serve(more.resource::<two>())
}

#[tokio::test]
async fn every_form_of_expression_binds() {
    let server = all();
    for (uri, seen) in [
        ("path://a/b/c.txt", "a/b/c.txt"),
        ("path://a%20b/%C3%A9", "a b/é"),
        ("path://100%2525", "100%25"),
        ("files:///src/lib.rs", "src/lib.rs"),
        ("FILES:///src/lib.rs", "src/lib.rs"),
        ("list://h/a/b/c", "a|b|c"),
        ("slash://h/x%3Fy", "x?y"),
        ("query://h", "None 7"),
        ("query://h?b=3&a=x%26y", "Some(\"x&y\") 3"),
        ("query://h?a=&b=1", "Some(\"\") 1"),
        ("query://h?unknown=1&b=2", "None 2"),
        ("query://h?a=a+b", "Some(\"a b\") 7"),
        ("tags://h?tag=a&tag=b", "Some([\"a\", \"b\"]) None"),
        ("mixed://a.b.json", "a.b None"),
        ("mixed://a.json?pretty=true", "a Some(true)"),
        ("two://7/x/tail", "7 tail"),
    ] {
        let reply = server.read(uri).await;
        assert!(!reply.is_error(), "{uri}: {reply}");
        assert_eq!(reply.text(), seen, "{uri}");
    }
}

#[tokio::test]
async fn a_variable_that_a_query_has_twice_is_refused_unless_its_parameter_is_a_list() {
    let server = all();
    for (uri, name) in [
        ("query://h?a=1&a=2", "a"),
        ("query://h?b=1&b=2", "b"),
        ("query://h?b=1&a=x&b=1&b=1", "b"),
        ("tags://h?tag=a&n=1&tag=b&n=2", "n"),
        ("mixed://x.json?pretty=true&pretty=true", "pretty"),
    ] {
        let (code, message) = refusal(&server.read(uri).await);
        assert_eq!(code, -32602, "{uri}");
        assert!(message.contains(&format!("`{name}`: was given more than once")), "{uri}: {message}");
    }
}

#[tokio::test]
async fn a_uri_that_matches_no_template_is_not_found() {
    let server = all();
    for uri in [
        "path://",
        "slash://h",
        "slash://h/a/b",
        "slash://h/a%2Fb",
        "slash://h/a%2fb",
        "slash://h/a%5Cb",
        "two://7/y/tail",
        "two://7/x/",
        "two://7/X/tail",
        "mixed://a.xml",
        "mixed://.json",
        "query://h/extra",
        "slash://h/%zz",
        "slash://h/%ff",
        "slash://h/%",
        "path://a%00b",
    ] {
        let (code, message) = refusal(&server.read(uri).await);
        assert_eq!(code, -32602, "{uri}");
        let encoded = message.contains("`%2F` is a slash, which only `{+x}` in a template matches");
        assert_eq!(encoded, uri.to_lowercase().contains("a%2f"), "{message}");
    }
}

#[tokio::test]
async fn a_path_without_segments_matches_a_variable_of_segments() {
    #[mcp_resource(uri = "tree://top{/path*}")]
    fn tree(path: Vec<String>) -> String {
        format!("{path:?}")
    }
    #[mcp_resource(uri = "text://top{/path*}")]
    fn text(path: String) -> String {
        format!("{path:?}")
    }
    let server = serve(mcp_runtime::server!().resource::<tree>().resource::<text>());
    for (uri, seen) in [
        ("tree://top", "[]"),
        ("tree://top/a/b", r#"["a", "b"]"#),
        ("text://top", r#""""#),
        ("text://top/a/b", r#""a/b""#),
    ] {
        server.read(uri).await.expect_text(seen);
    }
    assert_eq!(refusal(&server.read("tree://toped").await).0, -32602);
}

#[tokio::test]
async fn dot_segments_are_refused() {
    let server = all();
    let secrets = [
        "..",
        "../x",
        "a/../x",
        "a/./x",
        "%2e%2e",
        "a/%2e%2e/x",
        "..%2fx",
        "..%5cx",
        "/etc/passwd",
        "%2fetc/passwd",
        "\\x",
        "C%3A/x",
        "C:x",
    ];
    for secret in secrets {
        for base in ["files:///", "path://", "list://h/", "slash://h/", "query://h?a="] {
            let uri = format!("{base}{secret}");
            let reply = server.read(&uri).await;
            assert_eq!(refusal(&reply).0, -32602, "{uri}: {reply}");
        }
    }
    // harmless one by one, but not when joined
    for uri in ["query://h?a=&a=etc", "query://h?a=%2Fetc", "list://h//etc", "list://h/a//../b"] {
        assert_eq!(refusal(&server.read(uri).await).0, -32602, "{uri}");
    }
    // dots inside of names, and double encoding, which stays encoded
    for (uri, seen) in [
        ("files:///...", "..."),
        ("files:///a..b/.hidden", "a..b/.hidden"),
        ("files:///%252e%252e/x", "%2e%2e/x"),
        ("query://h?a=1.2", "Some(\"1.2\") 7"),
    ] {
        server.read(uri).await.expect_text(seen);
    }
}

#[tokio::test]
async fn raw_parameters_get_the_encoded_value() {
    #[mcp_resource(uri = "raw:///{+path}{?next}")]
    fn raw(#[mcp(raw)] path: String, next: Option<String>) -> String {
        format!("{path} {next:?}")
    }
    let server = serve(mcp_runtime::server!().resource::<raw>());
    server.read("raw:///../%2e%2e/x").await.expect_text("../../x None");
    server.read("raw:////etc").await.expect_text("/etc None");
    assert_eq!(refusal(&server.read("raw:///a?next=..").await).0, -32602, "the other one is not raw");
}

macro_rules! templates {
    ($($name:ident $uri:literal ($($param:ident)*);)*) => {$(
        #[mcp_resource(uri = $uri)]
        fn $name($($param: String),*) -> String {
            let bound: &[&str] = &[$(&$param),*];
            format!("{} {}", stringify!($name), bound.join(" "))
        }
    )*};
}
templates! {
    exact "pick://a/b" ();
    second "pick://a/{x}" (x);
    whole "pick://{y}/b" (y);
    any "pick://{+rest}" (rest);
    any_again "pick://{+other}" (other);
    two_again "TWO://{b}/X/{a}" (a b);
    query_again "query://h{?c,a}" (c a);
    query_of_fewer "query://h{?a}" (a);
    page "doc://{id}" (id);
    page_with_query "doc://{id}{?v}" (id v);
    parts_again "list://h/{path*}" (path);
    upper "Docs://A/Page" ();
    lower "docs://a/page" ();
}

#[tokio::test]
async fn the_most_specific_template_wins_in_any_order() {
    let forward = mcp_runtime::server!().resource::<exact>().resource::<second>().resource::<any>();
    let backward = mcp_runtime::server!().resource::<any>().resource::<second>().resource::<exact>();
    for builder in [forward, backward] {
        let server = serve(builder);
        for _ in 0..3 {
            server.read("pick://a/b").await.expect_text("exact ");
            server.read("PICK://A/b").await.expect_text("exact ");
            server.read("pick://a/c").await.expect_text("second c");
            server.read("pick://z/c/d").await.expect_text("any z/c/d");
        }
    }
}

#[tokio::test]
async fn registration_order_decides_between_equal_templates() {
    let server = serve(mcp_runtime::server!().resource::<second>().resource::<whole>());
    server.read("pick://a/b").await.expect_text("second b");
    server.read("pick://z/b").await.expect_text("whole z");
    let server = serve(mcp_runtime::server!().resource::<whole>().resource::<second>());
    server.read("pick://a/b").await.expect_text("whole a");
}

#[test]
fn templates_that_differ_only_in_names_of_variables_or_in_case_are_errors_of_the_build() {
    type Pair = fn(ServerBuilder) -> ServerBuilder;
    let pairs: [(Pair, [&str; 2]); 6] = [
        (|b| b.resource::<upper>().resource::<lower>(), ["Docs://A/Page", "docs://a/page"]),
        (|b| b.resource::<any>().resource::<any_again>(), ["pick://{+rest}", "pick://{+other}"]),
        (|b| b.resource::<two>().resource::<two_again>(), ["two://{a}/x/{b}", "TWO://{b}/X/{a}"]),
        (|b| b.resource::<query>().resource::<query_again>(), ["query://h{?a,b}", "query://h{?c,a}"]),
        (|b| b.resource::<query_of_fewer>().resource::<query>(), ["query://h{?a}", "query://h{?a,b}"]),
        (|b| b.resource::<parts>().resource::<parts_again>(), ["list://h{/parts*}", "list://h/{path*}"]),
    ];
    for (pair, [first, second]) in pairs {
        let error = build_error(pair(mcp_runtime::server!()));
        let names = format!("two resources are `{first}` and `{second}`, which match the same URIs");
        assert!(error.contains(&names), "{names}: {error}");
        assert_eq!(error.matches("templates.rs:").count(), 2, "{error}");
        let says_query = error.contains("let one of them have all variables of the query");
        assert_eq!(says_query, first.contains('?'), "{error}");
    }
    // these match others as well
    serve(mcp_runtime::server!().resource::<any>().resource::<whole>().resource::<second>());
}

#[tokio::test]
async fn a_template_without_a_query_is_another_than_one_with_it() {
    let server = serve(mcp_runtime::server!().resource::<page_with_query>().resource::<page>());
    server.read("doc://a").await.expect_text("page a");
    server.read("doc://a?v=2").await.expect_text("page_with_query a 2");
}

#[tokio::test]
async fn a_value_that_does_not_parse_does_not_fall_through_to_another_template() {
    #[mcp_resource(uri = "num://{n}")]
    fn number(n: u8) -> String {
        n.to_string()
    }
    #[mcp_resource(uri = "num://{+all}")]
    fn rest(all: String) -> String {
        all
    }
    let server = serve(mcp_runtime::server!().resource::<number>().resource::<rest>());
    server.read("num://7").await.expect_text("7");
    let refused = server.read("num://x").await;
    assert!(refusal(&refused).1.contains("`n`"), "{refused}");
    server.read("num://x/y").await.expect_text("x/y");
}

#[mcp_type]
struct Id {
    a: u32,
}

#[test]
fn a_variable_that_cannot_be_an_object_or_absent_is_a_build_error() {
    #[mcp_resource(uri = "a://{id}")]
    fn of_struct(id: Id) -> String {
        id.a.to_string()
    }
    #[mcp_resource(uri = "b://{?id}")]
    fn of_map(id: Option<BTreeMap<String, u8>>) -> String {
        format!("{id:?}")
    }
    #[mcp_resource(uri = "c://x/{id}")]
    fn optional(id: Option<u32>) -> String {
        format!("{id:?}")
    }
    #[mcp_resource(uri = "d://x{/id*}")]
    fn with_default(#[mcp(default)] id: Vec<u32>) -> String {
        format!("{id:?}")
    }
    let error = build_error(mcp_runtime::server!().resource::<of_struct>().resource::<of_map>());
    for name in ["of_struct", "of_map"] {
        let line = format!("resource `{name}`: `id` is an object, and a variable of a URI is text");
        assert!(error.contains(&line), "{error}");
    }
    let error = build_error(mcp_runtime::server!().resource::<optional>().resource::<with_default>());
    for name in ["optional", "with_default"] {
        let line =
            format!("resource `{name}`: `id` may be absent, and `{{id}}` in the path of a URI never is");
        assert!(error.contains(&line) && error.contains("`{?id}`"), "{error}");
    }
}
