//! What arguments and descriptions that mean harm cannot do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, http::Response};
use mcp_runtime::{
    Principal,
    serde_json::{self, Value, json},
    testing::TestServer,
    transform::ItemChanges,
};
use mcp_runtime_openapi::{OpenApi, Route};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Recorder, listening, one, response, serve, with_components};

#[tokio::test]
async fn no_argument_leads_to_another_path() {
    let recorder = Recorder::start().await;
    let parameters =
        json!({ "parameters": [{ "name": "id", "in": "path", "required": true, "schema": {} }] });
    let server = recorder.serve(&one("GET /users/{id}/orders", &parameters));
    for attack in [
        json!(".."),
        json!("."),
        json!(""),
        json!("../admin"),
        json!("a/../../admin"),
        json!("..\\admin"),
        json!("%2e%2e"),
        json!("%2e%2e/admin"),
        json!("..%2fadmin"),
        json!("%2E."),
        json!("..;a=b"),
        json!("a/..%3b/admin"),
        json!("..?x"),
        json!("..#x"),
        json!("%2e%2e%3fx"),
        json!("a/.%2E%23/admin"),
        json!(".?x/admin"),
        json!("a\u{0}b"),
        json!("a\r\nb"),
        json!([]),
        json!(["..", "a/.."]),
        json!(null),
        json!({}),
    ] {
        let reply = server.call("call", json!({ "id": attack })).await;
        assert!(reply.is_error(), "{attack}: {reply:?}");
    }
    assert_eq!(recorder.count(), 0);
    for (harmless, target) in [
        ("a/b", "/users/a%2Fb/orders"),
        ("//evil.example/x", "/users/%2F%2Fevil.example%2Fx/orders"),
        ("a?admin=1#x", "/users/a%3Fadmin%3D1%23x/orders"),
        ("a..b", "/users/a..b/orders"),
        ("...", "/users/.../orders"),
        ("@evil.example", "/users/%40evil.example/orders"),
        ("%00", "/users/%2500/orders"),
        ("a;b", "/users/a%3Bb/orders"),
        ("\u{2025}\u{ff0f}", "/users/%E2%80%A5%EF%BC%8F/orders"),
    ] {
        server.call("call", json!({ "id": harmless })).await.expect_ok();
        assert_eq!(recorder.last().target, target);
    }
}

#[tokio::test]
async fn parts_of_a_segment_do_not_become_one_that_leads_out() {
    let recorder = Recorder::start().await;
    let of =
        |name: &str| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
    let server = recorder.serve(&one("GET /x/.{a}", &json!({ "parameters": [of("a")] })));
    server.call("call", json!({ "a": "." })).await.expect_failure("leads to another path");
    server.call("call", json!({ "a": ".?x" })).await.expect_failure("leads to another path");
    let two = json!({ "parameters": [of("a"), of("b")] });
    let server = recorder.serve(&one("GET /x/{a}{b}", &two));
    server.call("call", json!({ "a": ".", "b": "." })).await.expect_failure("leads to another path");
    let server = recorder.serve(&one("GET /x/.{a}{b}", &two));
    server.call("call", json!({ "a": "%2e", "b": "?y" })).await.expect_failure("to another path");
    assert_eq!(recorder.count(), 0);
    // what a query may keep begins another part of a path
    let reserved = json!({ "name": "a", "in": "path", "required": true, "style": "matrix", "allowReserved": true, "schema": {} });
    let server = recorder.serve(&one("GET /x/{a}", &json!({ "parameters": [reserved] })));
    server.call("call", json!({ "a": ["y/../../admin?z"] })).await.expect_failure("leads to another path");
    server.call("call", json!({ "a": "y/z?a;b" })).await.expect_ok();
    assert_eq!(recorder.last().target, "/x/;a=y%2Fz%3Fa%3Bb");
}

#[tokio::test]
async fn no_argument_injects_a_header_or_is_one_of_the_connection() {
    let recorder = Recorder::start().await;
    let header = |name: &str| json!({ "name": name, "in": "header", "schema": { "type": "string" } });
    let names = [
        "X-Note",
        "Host",
        "host",
        "Authorization",
        "Cookie",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "X-Forwarded",
        "X-Forwarded-Host",
        "X-Real-IP",
        "True-Client-IP",
        "CF-Connecting-IP",
        "X-Rewrite-URL",
        "X-HTTP-Method-Override",
        "Proxy-Authorization",
        "Content-Type",
        "Forwarded",
        "X_Forwarded_For",
        "Remote-User",
        "X-Remote-User",
        "x_remote_group",
        "X-WebAuth-User",
        "X-Authenticated-User",
        "Client-IP",
        "Client_Ip",
        "X-Originating-IP",
        "Ssl-Client-S-Dn",
        "X-Envoy-Original-Path",
        "X-Goog-Iap-Jwt-Assertion",
        "User-Agent",
    ];
    let mut parameters: Vec<_> = names.map(header).into();
    parameters.push(json!({ "name": "c", "in": "cookie", "schema": { "type": "string" } }));
    let server = recorder.serve(&one("GET /", &json!({ "parameters": parameters })));
    let tools = server.list_tools().await;
    assert_eq!(
        tools[0]["inputSchema"]["properties"],
        json!({ "X-Note": { "type": "string" }, "c": { "type": "string" } })
    );
    for attack in ["a\r\nHost: evil.example", "a\nb", "a\rb", "a\u{0}b"] {
        server
            .call("call", json!({ "X-Note": attack }))
            .await
            .expect_failure("characters that a header cannot have");
    }
    assert_eq!(recorder.count(), 0);
    let reserved = json!({ "X-Note": "n", "Host": "evil.example" });
    server.call("call", reserved).await.expect_failure("Host");
    assert_eq!(recorder.count(), 0);
    server.call("call", json!({ "X-Note": "n", "c": "a; admin=1\r\nX: y" })).await.expect_ok();
    let arrived = recorder.last();
    assert_eq!(arrived.header("host"), Some(recorder.url.trim_start_matches("http://")));
    assert_eq!(arrived.header("authorization"), None);
    assert_eq!(arrived.header("cookie"), Some("c=a%3B%20admin%3D1%0D%0AX%3A%20y"));
}

#[tokio::test]
async fn a_member_of_an_object_does_not_become_another_parameter() {
    let recorder = Recorder::start().await;
    for (place, sent) in [("query", "?k=v&tenant=own"), ("cookie", "k=v; tenant=own")] {
        let parameters = json!({ "parameters": [
            { "name": "filter", "in": place, "schema": { "type": "object" } },
            { "name": "tenant", "in": place, "schema": { "type": "string" } },
        ] });
        let api = OpenApi::parse(one("GET /", &parameters)).expect("a description").server(&recorder.url);
        // the program says whose data are found
        let fixed = mcp_runtime::server!().add(api).transform(|item| item.fix("tenant", "own"));
        let server = TestServer::new(fixed).expect("a server");
        server
            .call("call", json!({ "filter": { "tenant": "other" } }))
            .await
            .expect_failure("`filter.tenant` is a parameter of its own");
        server.call("call", json!({ "filter": { "k": "v" } })).await.expect_ok();
        let arrived = recorder.last();
        assert!(
            arrived.target == format!("/{sent}") || arrived.header("cookie") == Some(sent),
            "{arrived:?}"
        );
    }
    assert_eq!(recorder.count(), 2);
}

#[tokio::test]
async fn a_name_that_a_model_chooses_is_not_that_of_another_parameter_however_servers_read_it() {
    let recorder = Recorder::start().await;
    let object = |name: &str, style: &str| json!({ "name": name, "in": "query", "style": style, "explode": true, "schema": { "type": "object" } });
    let fixed = |name: &str| json!({ "name": name, "in": "query", "schema": {} });
    for (parameters, fix, arguments, refused) in [
        (
            json!([object("filter", "deepObject"), fixed("filter[tenant]")]),
            ("filter_tenant", json!("own")),
            json!({ "filter": { "tenant": "other" } }),
            "`filter[tenant]` is a parameter of its own",
        ),
        (
            json!([object("filter", "deepObject"), fixed("filter[tenant_id]")]),
            ("filter_tenant_id", json!("own")),
            json!({ "filter": { "Tenant-Id": "other" } }),
            "`filter[Tenant-Id]`",
        ),
        (
            json!([object("filter", "deepObject"), fixed("filter[a][tenant]")]),
            ("filter_a__tenant", json!("own")),
            json!({ "filter": { "a][tenant": "other" } }),
            "`filter[a][tenant]`",
        ),
        (
            json!([object("filter", "form"), fixed("tenant-id")]),
            ("tenant-id", json!("own")),
            json!({ "filter": { "TENANT_ID": "other" } }),
            "`filter.TENANT_ID`",
        ),
        (
            json!([object("filter", "form"), fixed("tenant")]),
            ("tenant", json!("own")),
            json!({ "filter": { "tenant[]": "other" } }),
            "`filter.tenant[]`",
        ),
        (
            json!([object("a", "deepObject"), object("filter", "form")]),
            ("a", json!({ "tenant": "own" })),
            json!({ "filter": { "a[tenant]": "other" } }),
            "`filter.a[tenant]`",
        ),
        (
            json!([object("filter", "form"), object("own", "form")]),
            ("own", json!({ "tenant": "own" })),
            json!({ "filter": { "Tenant": "other" } }),
            "`own.tenant`",
        ),
    ] {
        let api = OpenApi::parse(one("GET /", &json!({ "parameters": parameters }))).expect("a description");
        let (name, value) = fix.clone();
        let builder = mcp_runtime::server!().add(api.server(&recorder.url));
        let builder = builder.transform(move |item| item.fix(name, value.clone()));
        let server = TestServer::new(builder).expect("a server");
        server.call("call", arguments).await.expect_failure(refused);
        server.call("call", json!({ "filter": { "k": { "x-y": 1, "x_y": 2 } } })).await.expect_ok();
    }
    assert_eq!(recorder.count(), 7);
    // in the path and in a form
    let own = json!([
        { "name": "filter", "in": "path", "required": true, "style": "matrix", "explode": true, "schema": {} },
        { "name": "tenant", "in": "path", "required": true, "style": "matrix", "schema": {} },
    ]);
    let server = recorder.serve(&one("GET /x{filter}{tenant}", &json!({ "parameters": own })));
    let arguments = json!({ "filter": { "Tenant": "other" }, "tenant": "own" });
    server.call("call", arguments).await.expect_failure("`filter.Tenant` is a parameter of its own");
    let schema =
        json!({ "type": "object", "properties": { "filter": { "type": "object" }, "filter[tenant]": {} } });
    let encoding = json!({ "filter": { "style": "deepObject", "explode": true } });
    let content = json!({ "application/x-www-form-urlencoded": { "schema": schema, "encoding": encoding } });
    let body = json!({ "requestBody": { "required": true, "content": content } });
    let arguments = json!({ "filter": { "tenant": "other" }, "filter_tenant": "own" });
    let reply = recorder.serve(&one("POST /", &body)).call("call", arguments).await;
    reply.expect_failure("`filter[tenant]` is a parameter of its own");
    // one header by two names
    let headers = ["X-Tenant", "x-tenant"].map(|name| json!({ "name": name, "in": "header", "schema": {} }));
    let server = recorder.serve(&one("GET /", &json!({ "parameters": headers })));
    let arguments = json!({ "X-Tenant": "own", "x-tenant": "other" });
    server.call("call", arguments).await.expect_failure("is the header of another argument");
    assert_eq!(recorder.count(), 7);
}

#[cfg(feature = "routes")]
#[tokio::test]
async fn a_header_that_is_forwarded_is_never_an_argument() {
    let recorder = Recorder::start().await;
    let header = |name: &str| json!({ "name": name, "in": "header", "schema": { "type": "string" } });
    let cookie = json!({ "name": "seen", "in": "cookie", "schema": { "type": "string" } });
    let parameters =
        json!({ "parameters": [header("X-Tenant"), header("x_tenant"), header("X-Note"), cookie] });
    let description: Value = serde_json::from_str(&one("GET /", &parameters)).expect("JSON");
    let api = OpenApi::routes(recorder.routes.clone(), &description).expect("a description");
    let server = serve(api.forward_headers(["x-tenant", "cookie"]));
    let arguments = server.list_tools().await[0]["inputSchema"]["properties"].clone();
    assert_eq!(arguments, json!({ "X-Note": { "type": "string" } }));
    // the client has not sent it
    server.call("call", json!({ "X-Tenant": "other" })).await.expect_failure("X-Tenant");
    server.call("call", json!({ "seen": "all" })).await.expect_failure("seen");
    server.call("call", json!({ "X-Note": "n" })).await.expect_ok();
    let arrived = recorder.last();
    assert_eq!((recorder.count(), arrived.header("x-tenant"), arrived.header("cookie")), (1, None, None));
}

#[tokio::test]
async fn a_value_that_is_fixed_holds_for_tools_and_resources_and_no_uri_leads_to_another_one() {
    let recorder = Recorder::start().await;
    let parameters = json!([
        { "name": "tenant-id", "in": "path", "required": true, "schema": { "type": "string" } },
        { "name": "id", "in": "path", "required": true, "schema": { "type": "integer", "minimum": 1 } },
        { "name": "tags", "in": "query", "schema": { "type": "array", "items": { "type": "string" } } },
        { "name": "scope", "in": "query", "schema": { "type": "string" } },
        { "name": "page-size", "in": "query", "schema": { "type": "integer", "maximum": 9 } },
        { "name": "page_size", "in": "query", "schema": { "type": "string" } },
    ]);
    let description = json!({ "openapi": "3.1.0", "paths": {
        "/{tenant-id}/notes/{id}": { "get": { "operationId": "note", "parameters": parameters } },
        "/{tenant-id}/all/{id}": { "get": { "operationId": "all", "parameters": parameters } },
    } });
    let api = || {
        let api = OpenApi::parse(description.to_string()).expect("a description").server(&recorder.url);
        mcp_runtime::server!().add(api.resource(Route::operation("note")))
    };
    let fixed = api().transform(|item| item.fix("tenant-id", "own").fix("scope", "a b"));
    let server = TestServer::new(fixed).expect("a server");
    let templates = server.list_templates().await;
    assert_eq!(templates[0]["uriTemplate"], "api:///own/notes/{id}{?tags,page_size_2,page_size}");
    server.read("api:///own/notes/7?tags=x&tags=y&scope=all&page_size_2=3").await.expect_ok();
    assert_eq!(recorder.last().target, "/own/notes/7?tags=x&tags=y&scope=a%20b&page-size=3");
    server.read("api:///own/notes/7?tags=x,y").await.expect_ok();
    assert_eq!(recorder.last().target, "/own/notes/7?tags=x&tags=y&scope=a%20b");
    server.call("all", json!({ "id": 7 })).await.expect_ok();
    assert_eq!(recorder.last().target, "/own/all/7?scope=a%20b");
    // no one reads another tenant's, and variables are held to their schemas
    for uri in [
        "api:///other/notes/7",
        "api:///own/notes/x",
        "api:///own/notes/0",
        "api:///own/notes/7?page_size_2=10",
    ] {
        assert!(server.read(uri).await.error().is_some(), "{uri}");
    }
    assert_eq!(recorder.count(), 3);
    let mistakes: [(_, &str); 2] = [
        (api().transform(|item| item.hide("id")), "`id` is in the path of its URI, so it cannot be hidden"),
        (
            api().transform(|item| item.fix("tenent", "x")),
            "the argument `tenent`, which nothing that it changes has",
        ),
    ];
    for (builder, part) in mistakes {
        let error = builder.build().expect_err(part).to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[tokio::test]
async fn a_change_of_an_argument_is_one_of_what_has_this_name_in_the_description_however_it_is_offered() {
    let recorder = Recorder::start().await;
    let of = |name: &str, place: &str| json!({ "name": name, "in": place, "required": place == "path", "schema": { "type": "string" } });
    let of_query = |names: &[&str]| names.iter().map(|name| of(name, "query")).collect::<Value>();
    let both = json!([of("tenant", "path"), of("tenant", "query"), of("X-Tenant", "header")]);
    let description = json!({ "openapi": "3.1.0", "paths": {
        "/a": { "get": { "operationId": "a", "parameters": of_query(&["page-size", "page_size"]) } },
        "/b": { "get": { "operationId": "b", "parameters": of_query(&["page size", "page_size"]) } },
        "/c": { "get": { "operationId": "c", "parameters": of_query(&["page_size", ".size", "size"]) } },
        "/d/{tenant}": { "get": { "operationId": "d", "parameters": both } },
    } })
    .to_string();
    let served = |as_resources: bool, change: fn(ItemChanges) -> ItemChanges| {
        let api = OpenApi::parse(description.as_str()).expect("a description").server(&recorder.url);
        let api = if as_resources { api.resource(Route::method("GET")) } else { api };
        TestServer::new(mcp_runtime::server!().add(api).transform(change)).map_err(|error| error.to_string())
    };
    let fixed: fn(ItemChanges) -> ItemChanges = |item| {
        item.fix("page-size", "1")
            .fix("page size", "2")
            .fix(".size", "3")
            .fix("tenant", "own")
            .fix("X-Tenant", "own")
    };
    let targets = ["/a?page-size=1", "/b?page%20size=2", "/c?.size=3", "/d/own?tenant=own"];
    let tools = served(false, fixed).expect("a server");
    let resources = served(true, fixed).expect("a server");
    let mut templates: Vec<_> =
        resources.list_templates().await.iter().map(|template| template["uriTemplate"].to_string()).collect();
    templates.sort();
    let of_b = templates[1].split_once('?').expect("a query").1;
    assert!(of_b.starts_with("page_size_query"), "{of_b}");
    assert_eq!(templates[0], "\"api:///a{?page_size}\"");
    assert_eq!(templates[2], "\"api:///c{?page_size,size}\"");
    for (name, target) in ["a", "b", "c", "d"].into_iter().zip(targets) {
        tools.call(name, json!({})).await.expect_ok();
        assert_eq!(recorder.last().target, target);
        resources.read(&format!("api:///{}", if name == "d" { "d/own" } else { name })).await.expect_ok();
        assert_eq!(recorder.last().target, target);
    }
    assert_eq!(recorder.last().header("x-tenant"), Some("own"));
    assert!(resources.read("api:///d/other").await.error().is_some());
    // the same names hide and have defaults
    for as_resources in [false, true] {
        let changed = served(as_resources, |item| item.default("page size", "4").hide("page-size"));
        let server = changed.expect("a server");
        let called = async |name: &str| match as_resources {
            false => server.call(name, json!({})).await.expect_ok().clone(),
            true => server.read(&format!("api:///{name}")).await.expect_ok().clone(),
        };
        drop(called("b").await);
        assert_eq!(recorder.last().target, "/b?page%20size=4");
        drop(called("a").await);
        assert_eq!(recorder.last().target, "/a");
        let error = served(as_resources, |item| item.hide("tenant")).map(drop).expect_err("it is required");
        assert!(error.contains("cannot be hidden"), "{error}");
    }
}

#[tokio::test]
async fn a_name_that_is_neither_a_parameter_nor_a_member_of_the_body_is_refused() {
    let recorder = Recorder::start().await;
    let filter =
        json!({ "parameters": [{ "name": "olderThan", "in": "query", "schema": { "type": "string" } }] });
    let server = recorder.serve(&one("DELETE /orders", &filter));
    assert_eq!(server.list_tools().await[0]["inputSchema"]["additionalProperties"], false);
    // without its filter, it would delete all orders
    server.call("call", json!({ "older_than": "2020-01-01" })).await.expect_failure("older_than");
    server.call("call", json!({ "olderThan": "2020-01-01" })).await.expect_ok();
    let object = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let closed = json!({ "type": "object", "properties": { "name": {} }, "additionalProperties": false });
    for schema in [object, closed, json!(true)] {
        let body = json!({ "requestBody": { "content": { "application/json": { "schema": schema } } } });
        let server = recorder.serve(&one("PATCH /", &body));
        server.call("call", json!({ "nmae": "x" })).await.expect_failure("nmae");
    }
    assert_eq!(recorder.count(), 1);
}

#[tokio::test]
async fn a_request_is_at_most_as_large_as_its_limits_whatever_the_arguments_become() {
    let recorder = Recorder::start().await;
    let list = || json!(vec!["x".repeat(10); 7000]);
    // each of the values has the whole name
    let deep = || json!({ "k".repeat(1000): vec![1; 1000] });
    let object = || (0..7000).map(|n| (format!("key{n}"), json!("value"))).collect::<Value>();
    for (place, style, explode, value, part) in [
        ("path", "simple", false, list(), "URL"),
        ("path", "label", true, list(), "URL"),
        ("path", "matrix", true, list(), "URL"),
        ("path", "matrix", false, object(), "URL"),
        ("query", "form", true, list(), "URL"),
        ("query", "form", false, object(), "URL"),
        ("query", "pipeDelimited", false, list(), "URL"),
        ("query", "deepObject", true, deep(), "URL"),
        ("header", "simple", false, list(), "headers"),
        ("header", "simple", true, object(), "headers"),
        ("cookie", "form", true, list(), "headers"),
    ] {
        let parameter = json!({ "name": "p", "in": place, "required": true, "style": style, "explode": explode, "schema": {} });
        let path = if place == "path" { "GET /{p}" } else { "GET /" };
        let server = recorder.serve(&one(path, &json!({ "parameters": [parameter] })));
        let reply = server.call("call", json!({ "p": value })).await;
        reply.expect_failure(&format!("the {part} of the request would have more than 6"));
    }
    let several = ["a", "b", "c"].map(|name| json!({ "name": name, "in": "header", "schema": {} }));
    let server = recorder.serve(&one("GET /", &json!({ "parameters": several })));
    let arguments = json!({ "a": "x".repeat(30_000), "b": "x".repeat(30_000), "c": "x".repeat(30_000) });
    server.call("call", arguments).await.expect_failure("the headers of the request would have more than");

    let schema = json!({ "type": "object", "properties": { "p": { "type": ["object", "array"] } } });
    let deep_fields = json!({ "p": { "style": "deepObject", "explode": true } });
    for (media, encoding, value) in [
        ("application/x-www-form-urlencoded", deep_fields, json!({ "k".repeat(1000): vec![1; 6000] })),
        ("multipart/form-data", json!({}), json!(vec![1; 60_000])),
    ] {
        let content = json!({ media: { "schema": schema, "encoding": encoding } });
        let body = json!({ "requestBody": { "required": true, "content": content } });
        let reply = recorder.serve(&one("POST /", &body)).call("call", json!({ "p": value })).await;
        reply.expect_failure("the body of the request would have more than 4194304 bytes: send less");
    }
    assert_eq!(recorder.count(), 0);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = Recorder::start().await;
    for (status, location) in [
        (301, format!("{}/secret", other.url)),
        (302, "http://169.254.169.254/secret".to_owned()),
        (303, "/secret".to_owned()),
        (307, "//evil.example/secret".to_owned()),
        (308, "file:///secret".to_owned()),
    ] {
        let answer = move || {
            let response = Response::builder().status(status).header("location", &location);
            response.body(Body::from("moved to /secret")).expect("a response")
        };
        let recorder = Recorder::answering(answer).await;
        let reply = recorder.serve(&one("GET /", &json!({}))).call("call", json!({})).await;
        reply.expect_failure(&format!("the API answered {status} "));
        reply.expect_failure(", and redirects are not followed");
        assert!(!reply.value().to_string().contains("secret"), "{reply:?}");
        assert_eq!((recorder.count(), other.count()), (1, 0));
    }
}

#[tokio::test]
async fn the_servers_of_a_description_are_not_used() {
    let (recorder, other) = (Recorder::start().await, Recorder::start().await);
    let mut description: Value =
        serde_json::from_str(&one("GET /x", &json!({ "servers": [{ "url": other.url }] }))).expect("JSON");
    description["servers"] =
        json!([{ "url": format!("{}/v9", other.url) }, { "url": "//evil.example" }, { "url": "../v8" }]);
    let server = recorder.serve(&description.to_string());
    server.call("call", json!({})).await.expect_ok();
    assert_eq!((recorder.last().target.as_str(), other.count()), ("/x", 0));
    let error =
        mcp_runtime::server!().add(OpenApi::parse(description.to_string()).expect("a description")).build();
    let error = error.expect_err("no server").to_string();
    assert!(error.contains("write `.server(\"https://..\")`") && error.contains("/v9"), "{error}");
}

#[tokio::test]
async fn paths_of_a_description_that_lead_elsewhere_are_refused() {
    for path in [
        "/../x",
        "/a/%2e%2e/x",
        "/a/..;x/b",
        "/a/..%3bx/b",
        "/a/%2e%2e%3fx/b",
        "/a/b%2f..%23x",
        "/a/%252e%252e/x",
        "/a?b={c}",
        "/a?b c",
        "/a b",
        "/a#b",
        "/a\\..\\b",
        "/a\r\nHost: x",
        "/{a",
        "/\u{1b}[2J",
    ] {
        let api = OpenApi::parse(one(&format!("GET {path}"), &json!({}))).expect("a description");
        let error =
            mcp_runtime::server!().add(api.server("http://127.0.0.1:1")).build().expect_err(path).to_string();
        assert!(error.contains("the path `"), "{path}: {error}");
        assert!(!error.contains(['\u{1b}', '\r']), "{error:?}");
    }
}

#[test]
fn references_to_files_and_urls_are_refused() {
    for reference in
        ["other.yaml#/X", "file:///etc/passwd", "http://169.254.169.254/x", "//evil.example/x", "#/nowhere"]
    {
        let parameters = json!({ "parameters": [{ "$ref": reference }] });
        let schema = json!({ "requestBody": { "content": { "application/json": { "schema": { "$ref": reference } } } } });
        for operation in [parameters, schema] {
            let api = OpenApi::parse(one("POST /", &operation)).expect("a description");
            let error =
                mcp_runtime::server!().add(api.server("http://127.0.0.1:1")).build().expect_err(reference);
            let error = error.to_string();
            assert!(
                error.contains("to another document") || error.contains("to nothing"),
                "{reference}: {error}"
            );
        }
    }
}

#[test]
fn what_a_description_says_is_escaped_in_errors() {
    let operation = json!({ "tags": ["\u{1b}]0;x\u{7}\u{202e}"], "parameters": [{ "name": "\u{1b}[2J", "in": "\u{1b}[31m" }] });
    let api =
        || OpenApi::parse(one("GET /", &operation)).expect("a description").server("http://127.0.0.1:1");
    let unknown = Route::tag("\u{1b}[1m");
    for api in [api(), api().include(unknown)] {
        let error = mcp_runtime::server!().add(api).build().expect_err("an error").to_string();
        let is_obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!error.contains(is_obeyed), "{error:?}");
    }
}

#[test]
fn a_server_is_a_url_without_credentials() {
    for url in [
        "shop",
        "ftp://x.example",
        "https://u:p@x.example",
        "https://x.example/?a=b",
        "https://x.example/#a",
        "file:///x",
    ] {
        let api = OpenApi::parse(one("GET /", &json!({}))).expect("a description").server(url);
        let error = mcp_runtime::server!().add(api).build().expect_err(url).to_string();
        assert!(error.contains("URL"), "{url}: {error}");
    }
}

#[test]
fn operations_that_repeat_a_large_part_are_not_a_large_server() {
    let large = json!({ "p": { "type": "string", "description": "x".repeat(400_000) } });
    let operation = json!({ "post": { "requestBody": { "$ref": "#/components/requestBodies/Large" } } });
    let paths: serde_json::Map<String, Value> =
        (0..100).map(|number| (format!("/p{number}"), operation.clone())).collect();
    let body =
        json!({ "content": { "application/json": { "schema": { "type": "object", "properties": large } } } });
    let description =
        json!({ "openapi": "3.1.0", "paths": paths, "components": { "requestBodies": { "Large": body } } });
    let api = OpenApi::parse(description.to_string()).expect("a description").server("http://127.0.0.1:1");
    let error = mcp_runtime::server!().add(api.allow_all()).build().expect_err("too large").to_string();
    assert!(error.contains("bytes of schemas"), "{error}");
}

#[tokio::test]
async fn long_references_and_lists_of_media_take_no_time_that_grows_with_their_square() {
    let deep =
        |levels: usize| (0..levels).fold(json!({ "type": "string" }), |inner, _| json!({ "a": inner }));
    for (levels, is_found) in [(90, true), (110, false)] {
        let reference = json!({ "$ref": format!("#/components/x{}", "/a".repeat(levels)) });
        let parameters = json!({ "parameters": [{ "name": "p", "in": "query", "schema": reference }] });
        let description = with_components("3.1.0", "GET /", &parameters, &json!({ "x": deep(levels) }));
        let api = OpenApi::parse(description).expect("a description").server("http://127.0.0.1:1");
        let found = mcp_runtime::server!().add(api).build();
        let is_missing = |error: mcp_runtime::Error| error.to_string().contains("leads to nothing");
        assert_eq!(found.err().map(is_missing), (!is_found).then_some(true), "{levels}");
    }
    let recorder = Recorder::start().await;
    let media: serde_json::Map<String, Value> =
        (0..1000).map(|number| (format!("text/x{number}"), json!({}))).collect();
    let server = recorder.serve(&one("GET /", &json!({ "responses": { "200": { "content": media } } })));
    server.call("call", json!({})).await.expect_ok();
    assert_eq!(recorder.last().header("accept").map(|accept| accept.split(", ").count()), Some(50));
}

#[tokio::test]
async fn no_walk_over_a_description_goes_round_in_circles_or_deeper_than_the_stack() {
    let of = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let list = |items: Value| json!({ "type": "array", "items": items });
    let nested = (0..60).fold(json!({}), |inner, _| json!({ "properties": { "a": inner } }));
    let mut schemas = json!({
        "Itself": list(of("Itself")),
        "One": list(of("Two")), "Two": { "type": "array", "items": of("One"), "allOf": [of("One")] },
        "All": { "allOf": [of("All"), { "type": "object", "properties": { "a": of("All") } }] },
        "Any": { "anyOf": [of("Any"), { "type": "array", "prefixItems": [of("Any")] }], "not": of("Any") },
        "Deep": nested,
    });
    // deeper than the references that are replaced
    for level in 0..24 {
        let next = if level == 23 { "Deep".to_owned() } else { format!("M{}", level + 1) };
        schemas[format!("M{level}")] = json!({ "properties": { "a": of(&next) } });
    }
    // a chain that is longer than the stack is
    let mut chain = json!({ "L8000": { "type": "string", "format": "binary" } });
    for level in 0..8_000 {
        chain[format!("L{level}")] = list(of(&format!("L{}", level + 1)));
    }
    for (name, schemas) in
        ["Itself", "One", "All", "Any", "M0"].map(|name| (name, &schemas)).into_iter().chain([("L0", &chain)])
    {
        let schemas = json!({ "schemas": schemas });
        for media in ["multipart/form-data", "application/json"] {
            let content =
                json!({ media: { "schema": { "type": "object", "properties": { "p": of(name) } } } });
            let whole = json!({ media: { "schema": of(name) } });
            for content in [content, whole] {
                let operation = json!({
                    "parameters": [{ "name": "q", "in": "query", "schema": of(name) }],
                    "requestBody": { "required": true, "content": content },
                    "responses": { "200": { "content": { "application/json": { "schema": of(name) } } } },
                });
                let description = with_components("3.1.0", "POST /", &operation, &schemas);
                let api = OpenApi::parse(description).expect("a description").server("http://127.0.0.1:1");
                let server = serve(api);
                assert_eq!(server.list_tools().await.len(), 1, "{name} {media}");
                server.call("call", json!({ "q": [[[]]], "p": [[["%%"]]] })).await.expect_failure("");
            }
        }
    }
    for cycle in [
        json!({ "paths": { "/a": { "$ref": "#/paths/~1b" }, "/b": { "$ref": "#/paths/~1a" } } }),
        json!({ "paths": { "/a": { "get": { "parameters": [{ "$ref": "#/paths/~1a/get/parameters/0" }] } } } }),
        json!({ "paths": { "/a": { "get": { "responses": { "200": { "$ref": "#/paths/~1a/get/responses/200" } } } } } }),
        json!({ "paths": { "/a": { "put": { "requestBody": { "$ref": "#/paths/~1a/put/requestBody" } } } } }),
    ] {
        let mut description = cycle.clone();
        description["openapi"] = "3.1.0".into();
        let built = OpenApi::parse(description.to_string())
            .and_then(|api| mcp_runtime::server!().add(api.server("http://127.0.0.1:1")).build());
        let error = built.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("without an end"), "{cycle}: {error}");
    }
}

#[tokio::test]
async fn an_operation_has_no_more_arguments_than_a_model_could_give() {
    let members = |count: usize| -> serde_json::Map<String, Value> {
        (0..count).map(|number| (format!("p{number}"), json!({ "type": "string" }))).collect()
    };
    let arguments = async |count: usize| {
        let schema = json!({ "type": "object", "properties": members(count) });
        let body = json!({ "requestBody": { "content": { "application/json": { "schema": schema } } } });
        let api = OpenApi::parse(one("POST /", &body)).expect("a description").server("http://127.0.0.1:1");
        let tools = serve(api).list_tools().await;
        tools[0]["inputSchema"]["properties"].as_object().expect("arguments").len()
    };
    assert_eq!((arguments(1000).await, arguments(1001).await), (1000, 1));
    let parameters: Vec<_> =
        (0..1001).map(|number| json!({ "name": format!("p{number}"), "in": "query" })).collect();
    let api = OpenApi::parse(one("GET /", &json!({ "parameters": parameters }))).expect("a description");
    let error = mcp_runtime::server!().add(api.server("http://127.0.0.1:1")).build().expect_err("too many");
    assert!(error.to_string().contains("more than 1000 parameters"), "{error}");
}

#[tokio::test]
async fn time_size_and_number_of_requests_are_limited() {
    let recorder = Recorder::answering(|| response(200, "text/plain", "x".repeat(2000))).await;
    let api = |description: String| OpenApi::parse(description).expect("a description").server(&recorder.url);
    let server = serve(api(one("GET /", &json!({}))).max_response(1000));
    server.call("call", json!({})).await.expect_failure("the API answered more than 1000 bytes");

    // one that is accepted by the system, and by no one else
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let server = serve(api(one("GET /", &json!({}))).server(url).timeout(Duration::from_millis(200)));
    server.call("call", json!({})).await.expect_failure("the API did not answer within 200ms");
    drop(silent);
    server.call("call", json!({})).await.expect_failure("the API cannot be reached");
}

#[tokio::test]
async fn a_response_that_does_not_end_or_is_deep_ends_its_call_only() {
    // the head, and the beginning of a body
    let endless = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", endless.local_addr().expect("an address"));
    let answer = tokio::spawn(async move {
        let (mut connection, _) = endless.accept().await.expect("a connection");
        connection.read_u8().await.expect("a request");
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
        connection.write_all(head).await.expect("written");
        connection
    });
    let api = |url: &str| OpenApi::parse(one("GET /", &json!({}))).expect("a description").server(url);
    let server = serve(api(&url).timeout(Duration::from_millis(200)));
    server.call("call", json!({})).await.expect_failure("the API did not answer within 200ms");
    drop(answer.await);
    for body in ["[".repeat(500_000), format!("{}{}", "[".repeat(400_000), "]".repeat(400_000))] {
        let is_whole = body.ends_with(']');
        let recorder = Recorder::answering(move || response(200, "application/json", body.clone())).await;
        let schema =
            json!({ "200": { "content": { "application/json": { "schema": { "type": "array" } } } } });
        for members in [json!({}), json!({ "responses": schema })] {
            let reply = recorder.serve(&one("GET /", &members)).call("call", json!({})).await;
            // without a schema, nothing says that it is JSON
            let is_described = members["responses"].is_object();
            assert!(is_whole || reply.is_error() == is_described, "{is_whole} {members}");
        }
    }
}

#[test]
fn methods_that_say_nothing_to_a_model_are_left_out() {
    for method in ["HEAD", "OPTIONS", "TRACE", "CONNECT", "x-get", "query"] {
        let api = OpenApi::parse(one(&format!("{method} /"), &json!({}))).expect("a description");
        let api = api.server("http://127.0.0.1:1").include(Route::path("/"));
        let error = mcp_runtime::server!().add(api).build().expect_err(method).to_string();
        assert!(error.contains("matches no operation"), "{method}: {error}");
    }
}

#[tokio::test]
async fn one_caller_leaves_requests_to_others() {
    let (arrived, answers) = (Arc::<AtomicUsize>::default(), Arc::new(tokio::sync::Semaphore::new(0)));
    let (seen, gate) = (arrived.clone(), answers.clone());
    let routes = Router::new().fallback(move || {
        let (seen, gate) = (seen.clone(), gate.clone());
        async move {
            seen.fetch_add(1, Ordering::SeqCst);
            gate.acquire().await.expect("open").forget();
        }
    });
    let url = listening(routes).await;
    let api = OpenApi::parse(one("GET /", &json!({}))).expect("a description").server(url).max_concurrency(4);
    let built = mcp_runtime::server!().add(api).build().expect("a server");
    let of =
        |name: &str| Arc::new(TestServer::of(&built).caller(Principal::new("https://id.example.com", name)));
    let call = |server: &Arc<TestServer>| {
        let server = server.clone();
        tokio::spawn(async move { server.call("call", json!({})).await.expect_ok().clone() })
    };
    let until = async |requests| {
        while arrived.load(Ordering::SeqCst) < requests {
            tokio::task::yield_now().await;
        }
    };
    let (ada, bob) = (of("ada"), of("bob"));
    let mut calls: Vec<_> = (0..6).map(|_| call(&ada)).collect();
    until(2).await;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(arrived.load(Ordering::SeqCst), 2, "half of them");
    calls.push(call(&bob));
    until(3).await;
    answers.add_permits(7);
    for call in calls {
        assert!(call.await.is_ok());
    }
}

#[tokio::test]
async fn no_more_requests_run_at_once_than_are_allowed() {
    let (running, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let seen = most.clone();
    let routes = Router::new().fallback(move || async move {
        seen.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        running.fetch_sub(1, Ordering::SeqCst);
    });
    let url = listening(routes).await;
    let api = OpenApi::parse(one("GET /", &json!({}))).expect("a description").server(url).max_concurrency(2);
    let server = Arc::new(serve(api));
    let calls = (0..8).map(|_| {
        let server = server.clone();
        tokio::spawn(async move { server.call("call", json!({})).await.expect_ok().clone() })
    });
    for call in calls.collect::<Vec<_>>() {
        assert!(call.await.is_ok());
    }
    assert!((1..=2).contains(&most.load(Ordering::SeqCst)), "{most:?}");
}
