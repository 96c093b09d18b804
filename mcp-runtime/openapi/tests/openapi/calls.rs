//! Where arguments go.

use mcp_runtime::{
    serde_json::{Value, json},
    testing::TestServer,
};
use mcp_runtime_openapi::OpenApi;

use crate::support::{Recorder, one, serve, with_components};

/// A description of a `GET` with one parameter of any type.
fn with_parameter(place: &str, style: Option<&str>, explode: Option<bool>) -> String {
    let mut parameter = json!({ "name": "p", "in": place, "required": true, "schema": {} });
    if let Some(style) = style {
        parameter["style"] = style.into();
    }
    if let Some(explode) = explode {
        parameter["explode"] = explode.into();
    }
    one(if place == "path" { "GET /{p}" } else { "GET /" }, &json!({ "parameters": [parameter] }))
}

#[tokio::test]
async fn parameters_of_every_place_style_and_type_arrive_as_openapi_says() {
    let recorder = Recorder::start().await;
    let text = || json!("a b/ü&=");
    let list = || json!(["x y", 2, true]);
    let object = || json!({ "k": "v w", "n": 1 });
    for (place, style, explode, value, expected) in [
        ("path", None, None, text(), "/a%20b%2F%C3%BC%26%3D"),
        ("path", None, None, json!(7), "/7"),
        ("path", None, None, json!(true), "/true"),
        ("path", None, None, list(), "/x%20y,2,true"),
        ("path", None, None, object(), "/k,v%20w,n,1"),
        ("path", None, Some(true), object(), "/k=v%20w,n=1"),
        ("path", Some("label"), None, text(), "/.a%20b%2F%C3%BC%26%3D"),
        ("path", Some("label"), None, list(), "/.x%20y,2,true"),
        ("path", Some("label"), Some(true), list(), "/.x%20y.2.true"),
        ("path", Some("label"), None, object(), "/.k,v%20w,n,1"),
        ("path", Some("label"), Some(true), object(), "/.k=v%20w.n=1"),
        ("path", Some("matrix"), None, text(), "/;p=a%20b%2F%C3%BC%26%3D"),
        ("path", Some("matrix"), None, list(), "/;p=x%20y,2,true"),
        ("path", Some("matrix"), Some(true), list(), "/;p=x%20y;p=2;p=true"),
        ("path", Some("matrix"), None, object(), "/;p=k,v%20w,n,1"),
        ("path", Some("matrix"), Some(true), object(), "/;k=v%20w;n=1"),
        ("query", None, None, text(), "?p=a%20b%2F%C3%BC%26%3D"),
        ("query", None, None, json!(false), "?p=false"),
        ("query", None, None, json!(1.5), "?p=1.5"),
        ("query", None, None, list(), "?p=x%20y&p=2&p=true"),
        ("query", None, Some(false), list(), "?p=x%20y,2,true"),
        ("query", None, None, json!([]), ""),
        ("query", None, None, object(), "?k=v%20w&n=1"),
        ("query", None, Some(false), object(), "?p=k,v%20w,n,1"),
        ("query", Some("spaceDelimited"), Some(false), list(), "?p=x%20y%202%20true"),
        ("query", Some("spaceDelimited"), Some(true), list(), "?p=x%20y&p=2&p=true"),
        ("query", Some("pipeDelimited"), Some(false), list(), "?p=x%20y%7C2%7Ctrue"),
        ("query", Some("pipeDelimited"), Some(true), list(), "?p=x%20y&p=2&p=true"),
        ("query", Some("deepObject"), Some(true), object(), "?p%5Bk%5D=v%20w&p%5Bn%5D=1"),
        (
            "query",
            Some("deepObject"),
            Some(true),
            json!({ "a": { "b": [1, 2] } }),
            "?p%5Ba%5D%5Bb%5D%5B0%5D=1&p%5Ba%5D%5Bb%5D%5B1%5D=2",
        ),
        ("header", None, None, json!("a b,c"), "a b,c"),
        ("header", None, None, list(), "x y,2,true"),
        ("header", None, None, object(), "k,v w,n,1"),
        ("header", None, Some(true), object(), "k=v w,n=1"),
        ("cookie", None, None, text(), "p=a%20b%2F%C3%BC%26%3D"),
        ("cookie", None, Some(false), list(), "p=x%20y,2,true"),
        ("cookie", None, Some(true), list(), "p=x%20y; p=2; p=true"),
        ("cookie", None, Some(false), object(), "p=k,v%20w,n,1"),
    ] {
        let what = format!("{:?} {value} {expected}", json!([place, style, explode]));
        let description = with_parameter(place, style, explode);
        let by_http = OpenApi::parse(&*description).expect("a description");
        let ways = [
            by_http.server(&recorder.url),
            #[cfg(feature = "routes")]
            OpenApi::routes(
                recorder.routes.clone(),
                &serde_json::from_str::<Value>(&description).expect("JSON"),
            )
            .expect("a description"),
        ];
        for api in ways {
            serve(api).call("call", json!({ "p": value })).await.expect_ok();
            let arrived = recorder.last();
            match place {
                "path" => assert_eq!(arrived.target, expected, "{what}"),
                "query" => assert_eq!(arrived.target, format!("/{expected}"), "{what}"),
                "header" => assert_eq!(arrived.header("p"), Some(expected), "{what}"),
                _ => assert_eq!(arrived.header("cookie"), Some(expected), "{what}"),
            }
        }
    }
}

#[tokio::test]
async fn reserved_characters_stay_in_a_query_that_allows_them_but_add_no_parameter() {
    let recorder = Recorder::start().await;
    let parameters = json!([
        { "name": "p", "in": "query", "allowReserved": true, "schema": { "type": "string" } },
        { "name": "filter", "in": "query", "content": { "application/json": { "schema": { "type": "object" } } } },
    ]);
    let server = recorder.serve(&one("GET /", &json!({ "parameters": parameters })));
    server.call("call", json!({ "p": "a:/?@!$'()*,;&q=1#x+[]", "filter": { "a": [1] } })).await.expect_ok();
    assert_eq!(
        recorder.last().target,
        "/?p=a:/?@!$%27()*,;%26q%3D1%23x%2B%5B%5D&filter=%7B%22a%22%3A%5B1%5D%7D"
    );
}

fn body(media: &str, schema: &Value, encoding: &Value) -> Value {
    let mut content = json!({ media: { "schema": schema } });
    if !encoding.is_null() {
        content[media]["encoding"] = encoding.clone();
    }
    json!({ "requestBody": { "required": true, "content": content } })
}

#[tokio::test]
async fn bodies_of_every_kind_are_made_of_arguments() {
    let recorder = Recorder::start().await;
    let object = json!({ "type": "object", "properties": {
        "a": { "type": "string" }, "b": { "type": "array", "items": { "type": "integer" } },
        "c": { "type": "object", "properties": { "d": { "type": "integer" } } },
    } });
    let given = || json!({ "a": "x & y", "b": [1, 2], "c": { "d": 3 } });
    let text = json!({ "type": "string" });
    let form = "application/x-www-form-urlencoded";
    let deep = json!({ "c": { "style": "deepObject", "explode": true }, "b": { "explode": false } });
    for (media, schema, encoding, arguments, content_type, expected) in [
        (
            "application/json",
            &object,
            json!(null),
            given(),
            "application/json",
            r#"{"a":"x & y","b":[1,2],"c":{"d":3}}"#,
        ),
        ("application/json", &object, json!(null), json!({}), "application/json", "{}"),
        (
            "application/vnd.x+json",
            &text,
            json!(null),
            json!({ "body": "x" }),
            "application/vnd.x+json",
            r#""x""#,
        ),
        (form, &object, json!(null), given(), form, "a=x%20%26%20y&b=1&b=2&c=%7B%22d%22%3A3%7D"),
        (form, &object, deep, given(), form, "a=x%20%26%20y&b=1,2&c%5Bd%5D=3"),
        ("text/markdown", &text, json!(null), json!({ "body": "# x" }), "text/markdown", "# x"),
        ("application/zip", &text, json!(null), json!({ "body": "aGk=" }), "application/zip", "hi"),
    ] {
        let server = recorder.serve(&one("POST /", &body(media, schema, &encoding)));
        server.call("call", arguments).await.expect_ok();
        let arrived = recorder.last();
        assert_eq!((arrived.header("content-type"), &*arrived.body), (Some(content_type), expected));
        assert_eq!(arrived.method, "POST");
    }
}

#[tokio::test]
async fn files_are_parts_of_a_body_and_no_part_can_know_its_boundary() {
    let recorder = Recorder::start().await;
    let schema = json!({ "type": "object", "required": ["file"], "properties": {
        "file": { "type": "string", "format": "binary", "description": "A picture." },
        "note": { "type": "string" },
        "more": { "type": "array", "items": { "type": "string", "format": "binary" } },
        "meta": { "type": "object" },
    } });
    let encoding = json!({ "file": { "contentType": "image/png, image/jpeg" } });
    let server = recorder.serve(&one("POST /", &body("multipart/form-data", &schema, &encoding)));
    let tools = server.list_tools().await;
    assert_eq!(
        tools[0]["inputSchema"]["properties"]["file"],
        json!({ "type": "string", "contentEncoding": "base64", "description": "A picture. In base64." })
    );
    let note = "--mcp-runtime-";
    let arguments = json!({ "file": "aGk=", "note": note, "more": ["YQ==", "Yg=="], "meta": { "k": 1 } });
    let boundary = async || {
        server.call("call", arguments.clone()).await.expect_ok();
        let content_type = recorder.last().header("content-type").map(str::to_owned).expect("a content type");
        content_type.strip_prefix("multipart/form-data; boundary=").map(str::to_owned).expect("a boundary")
    };
    let before = boundary().await;
    let boundary = boundary().await;
    assert!(boundary != before && boundary.len() <= 70, "{boundary}");
    let part = |head: &str, body: &str| {
        format!("--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n{body}\r\n")
    };
    let expected = [
        part("name=\"file\"; filename=\"file\"\r\nContent-Type: image/png", "hi"),
        part("name=\"meta\"\r\nContent-Type: application/json", "{\"k\":1}"),
        part("name=\"more\"; filename=\"more\"\r\nContent-Type: application/octet-stream", "a"),
        part("name=\"more\"; filename=\"more\"\r\nContent-Type: application/octet-stream", "b"),
        part("name=\"note\"", note),
        format!("--{boundary}--\r\n"),
    ];
    assert_eq!(recorder.last().body, expected.concat());
    server.call("call", json!({ "file": "%%" })).await.expect_failure("`file` is not base64");
}

#[tokio::test]
async fn names_that_clash_get_their_place_and_others_stay() {
    let recorder = Recorder::start().await;
    let mut operation = body(
        "application/json",
        &json!({ "type": "object", "properties": { "id": {}, "name": {}, "filter[x]": {} } }),
        &json!(null),
    );
    operation["parameters"] = json!([
        { "name": "id", "in": "path", "required": true },
        { "name": "id", "in": "query" },
        { "name": "filter[x]", "in": "query" },
        { "name": "$top", "in": "query" },
    ]);
    let server = recorder.serve(&one("PUT /{id}", &operation));
    let properties = server.list_tools().await[0]["inputSchema"]["properties"].clone();
    let names: Vec<_> = properties.as_object().expect("properties").keys().cloned().collect();
    assert_eq!(names, ["filter_x_body", "filter_x_query", "id_body", "id_path", "id_query", "name", "top"]);
    let arguments = json!({
        "id_path": "a", "id_query": "b", "id_body": "c", "name": "n", "filter_x_body": 1, "filter_x_query": "2", "top": "3",
    });
    server.call("call", arguments).await.expect_ok();
    let arrived = recorder.last();
    assert_eq!(arrived.target, "/a?id=b&filter%5Bx%5D=2&%24top=3");
    assert_eq!(arrived.body, r#"{"filter[x]":1,"id":"c","name":"n"}"#);
}

#[tokio::test]
async fn an_absent_member_is_not_sent_whatever_its_default_is() {
    let recorder = Recorder::start().await;
    let schema = json!({ "type": "object", "properties": {
        "private": { "type": "boolean", "default": false, "description": "Who sees it" }, "name": { "type": "string" },
    } });
    let server = recorder.serve(&one("PATCH /", &body("application/json", &schema, &json!(null))));
    let private = server.list_tools().await[0]["inputSchema"]["properties"]["private"].clone();
    assert_eq!(private, json!({ "type": "boolean", "description": "Who sees it. Default: false" }));
    server.call("call", json!({ "name": "x" })).await.expect_ok();
    assert_eq!(recorder.last().body, r#"{"name":"x"}"#);
}

#[tokio::test]
async fn a_body_that_may_be_absent_is_one_argument_if_its_members_are_required() {
    let recorder = Recorder::start().await;
    let schema = json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "string" } } });
    let operation = json!({ "requestBody": { "content": { "application/json": { "schema": schema } } } });
    let server = recorder.serve(&one("POST /", &operation));
    server.call("call", json!({ "body": { "a": "x" } })).await.expect_ok();
    assert_eq!(recorder.last().body, r#"{"a":"x"}"#);
    server.call("call", json!({})).await.expect_ok();
    assert_eq!((recorder.last().body.as_str(), recorder.last().header("content-type")), ("", None));
    server.call("call", json!({ "body": {} })).await.expect_failure("a: is missing");
}

#[tokio::test]
async fn the_path_of_the_server_comes_before_that_of_the_operation() {
    let recorder = Recorder::start().await;
    for (base, expected) in [("/v1", "/v1/x"), ("/v1/", "/v1/x"), ("", "/x")] {
        let api = OpenApi::parse(one("GET /x", &json!({}))).expect("a description");
        let server = serve(api.server(format!("{}{base}", recorder.url)));
        server.call("call", json!({})).await.expect_ok();
        assert_eq!(recorder.last().target, expected);
    }
}

#[tokio::test]
async fn a_header_that_the_program_sets_is_never_an_argument() {
    struct Key(&'static str);
    let recorder = Recorder::start().await;
    let header =
        |name: &str| json!({ "name": name, "in": "header", "required": name == "X-Tenant", "schema": {} });
    let cookie = json!({ "name": "seen", "in": "cookie", "schema": { "type": "string" } });
    let parameters =
        json!({ "parameters": [header("X-Tenant"), header("x_tenant"), header("X-Note"), cookie] });
    let api = || {
        let api = OpenApi::parse(one("GET /", &parameters)).expect("a description").server(&recorder.url);
        api.headers(|context| async move {
            let key = context.state::<Key>().map(|key| key.0).unwrap_or_default();
            let mut headers = vec![("authorization", format!("Bearer {key}"))];
            // of some callers only
            if let Some(caller) = context.caller() {
                headers
                    .extend([("x-tenant", caller.subject().to_owned()), ("cookie", "seen=all".to_owned())]);
            }
            Ok(headers)
        })
    };
    let serve = |api: OpenApi| {
        let server = TestServer::new(mcp_runtime::server!().state(Key("secret")).add(api));
        server.expect("a server").caller(mcp_runtime::Principal::new("issuer", "ada"))
    };
    // what is not known before the call is refused, by whatever name servers read alike
    let server = serve(api());
    for (arguments, refused) in [
        (json!({ "X-Tenant": "bob" }), "`X-Tenant` cannot be given: the server sets the header `x-tenant`"),
        (json!({ "X-Tenant": "bob", "x_tenant": "bob" }), "`X-Tenant` cannot be given"),
    ] {
        server.call("call", arguments).await.expect_failure(refused);
    }
    let optional = one("GET /", &json!({ "parameters": [header("x_tenant"), cookie] }));
    let optional = OpenApi::parse(optional).expect("a description").server(&recorder.url);
    let optional =
        serve(optional.headers(|_| async {
            Ok(vec![("x-tenant", "own".to_owned()), ("cookie", "seen=all".to_owned())])
        }));
    for (arguments, refused) in [
        (json!({ "x_tenant": "bob" }), "the server sets the header `x-tenant`"),
        (json!({ "seen": "none" }), "`seen` cannot be given: the server sets the header `cookie`"),
    ] {
        optional.call("call", arguments).await.expect_failure(refused);
    }
    assert_eq!(recorder.count(), 0);
    optional.call("call", json!({})).await.expect_ok();
    // what is known is not offered, also for callers without it
    let server = serve(api().own_headers(["X-Tenant", "Cookie"]));
    let tools = server.list_tools().await;
    assert_eq!(
        (&tools[0]["inputSchema"]["properties"], tools[0]["inputSchema"].get("required")),
        (&json!({ "X-Note": {} }), None)
    );
    server.call("call", json!({ "X-Tenant": "bob" })).await.expect_failure("X-Tenant");
    server.call("call", json!({ "seen": "none" })).await.expect_failure("seen");
    assert_eq!(recorder.count(), 1);
    server.call("call", json!({ "X-Note": "n" })).await.expect_ok();
    let arrived = recorder.last();
    let headers = ["authorization", "x-tenant", "x-note", "cookie"].map(|name| arrived.header(name));
    assert_eq!(headers, [Some("Bearer secret"), Some("ada"), Some("n"), Some("seen=all")]);
}

#[tokio::test]
async fn a_key_for_repeated_requests_is_sent_only_where_the_operation_has_one() {
    let recorder = Recorder::start().await;
    let key = json!({ "parameters": [{ "name": "Idempotency-Key", "in": "header", "schema": { "type": "string" } }] });
    let server = recorder.serve(&one("POST /", &key));
    server.call("call", json!({ "Idempotency-Key": "k1" })).await.expect_ok();
    assert_eq!(recorder.last().header("idempotency-key"), Some("k1"));
    let without = recorder.serve(&one("POST /", &json!({})));
    without.call("call", json!({ "Idempotency-Key": "k1" })).await.expect_failure("Idempotency-Key");
    without.call("call", json!({})).await.expect_ok();
    assert_eq!(recorder.last().header("idempotency-key"), None);
}

#[tokio::test]
async fn a_request_names_the_server_and_has_a_length_where_apis_want_one() {
    let recorder = Recorder::start().await;
    for (method, length) in
        [("POST", Some("0")), ("PUT", Some("0")), ("PATCH", Some("0")), ("GET", None), ("DELETE", None)]
    {
        let api = OpenApi::parse(one(&format!("{method} /"), &json!({}))).expect("a description");
        let builder = mcp_runtime::server!().info(|info| info.name("The shop").version("1.2"));
        let server = TestServer::new(builder.add(api.server(&recorder.url))).expect("a server");
        server.call("call", json!({})).await.expect_ok();
        let arrived = recorder.last();
        let agent = concat!("The-shop/1.2 mcp-runtime/", env!("CARGO_PKG_VERSION"));
        assert_eq!((arrived.header("user-agent"), arrived.header("content-length")), (Some(agent), length));
    }
    let api = OpenApi::parse(one("GET /", &json!({}))).expect("a description").server(&recorder.url);
    let server = serve(api.headers(|_| async { Ok(vec![("user-agent", "mine".to_owned())]) }));
    server.call("call", json!({})).await.expect_ok();
    assert_eq!(recorder.last().header("user-agent"), Some("mine"));
}

#[tokio::test]
async fn a_path_may_have_a_query_of_its_own_and_characters_that_are_encoded() {
    let recorder = Recorder::start().await;
    let parameters = json!({ "parameters": [
        { "name": "action", "in": "query", "schema": { "type": "string" } },
        { "name": "id", "in": "query", "schema": { "type": "string" } },
    ] });
    let server = recorder.serve(&one("GET /größe/{x}.json?action=größe&v=2", &parameters));
    let properties = server.list_tools().await[0]["inputSchema"]["properties"].clone();
    assert_eq!(properties, json!({ "x": { "type": "string" }, "id": { "type": "string" } }));
    server.call("call", json!({ "x": "ä", "id": "7" })).await.expect_ok();
    assert_eq!(recorder.last().target, "/gr%C3%B6%C3%9Fe/%C3%A4.json?action=gr%C3%B6%C3%9Fe&v=2&id=7");
    let parameters =
        json!({ "parameters": [{ "name": "filter", "in": "query", "schema": { "type": "object" } }] });
    let server = recorder.serve(&one("GET /?action=list", &parameters));
    let fixed = server.call("call", json!({ "filter": { "action": "delete" } })).await;
    fixed.expect_failure("`filter.action` is a parameter of its own");
}

#[tokio::test]
async fn a_body_of_several_objects_is_one_of_their_members() {
    let recorder = Recorder::start().await;
    let components = json!({ "schemas": {
        "Base": { "type": "object", "required": ["id", "name"], "properties": {
            "id": { "type": "string", "readOnly": true }, "name": { "type": "string" }, "size": { "type": "integer" },
        } },
        "Both": { "allOf": [{ "$ref": "#/components/schemas/Base" }, { "$ref": "#/components/schemas/Base" }] },
    } });
    let schema = json!({ "allOf": [
        { "$ref": "#/components/schemas/Both" },
        { "type": "object", "required": ["color"], "properties": { "color": { "type": "string" }, "size": { "minimum": 2 } } },
    ] });
    let mut operation = body("application/json", &schema, &json!(null));
    operation["parameters"] = json!([{ "name": "id", "in": "path", "required": true }]);
    let server = recorder.serve(&with_components("3.0.3", "PUT /{id}", &operation, &components));
    let input = server.list_tools().await[0]["inputSchema"].clone();
    assert_eq!(
        input["required"],
        json!(["id", "color", "name"]),
        "no `id_path` beside a member that is read only"
    );
    let names: Vec<_> = input["properties"].as_object().expect("properties").keys().collect();
    assert_eq!(names, ["color", "id", "name", "size"]);
    server
        .call("call", json!({ "id": "7", "name": "n", "color": "red", "size": 1 }))
        .await
        .expect_failure("size: ");
    server.call("call", json!({ "id": "7", "name": "n", "color": "red", "size": 2 })).await.expect_ok();
    assert_eq!(recorder.last().target, "/7");
    assert_eq!(recorder.last().body, r#"{"color":"red","name":"n","size":2}"#);
    // one that is not an object, or refuses the members of others, stays a value of its own
    for part in [
        json!({ "type": "string" }),
        json!({ "type": "object", "additionalProperties": false, "properties": { "b": {} } }),
        json!({ "anyOf": [{ "required": ["a"] }] }),
    ] {
        let schema = json!({ "allOf": [{ "type": "object", "properties": { "a": {} } }, part] });
        let server = recorder.serve(&one("PUT /", &body("application/json", &schema, &json!(null))));
        let input = server.list_tools().await[0]["inputSchema"].clone();
        assert!(input["properties"]["body"].is_object(), "{input}");
    }
}

#[tokio::test]
async fn a_change_of_nothing_is_refused_where_the_description_refuses_it() {
    let recorder = Recorder::start().await;
    let schema = json!({
        "type": "object", "minProperties": 1, "maxProperties": 2,
        "properties": { "a": { "type": "string" }, "b": { "type": "string" }, "c": { "type": "string" } },
    });
    let mut operation = body("application/json", &schema, &json!(null));
    operation["parameters"] = json!([{ "name": "id", "in": "path", "required": true }]);
    let server = recorder.serve(&one("PATCH /{id}", &operation));
    let tool = server.list_tools().await.remove(0);
    assert_eq!(tool["description"], "PATCH /{id}\n\nGive 1 to 2 of `a`, `b`, `c`.");
    let given = |arguments: Value| server.call("call", arguments);
    given(json!({ "id": "7" })).await.expect_failure("Give 1 to 2 of `a`, `b`, `c`.");
    given(json!({ "id": "7", "a": "x", "b": "x", "c": "x" })).await.expect_failure("Give 1 to 2 of");
    assert_eq!(recorder.count(), 0);
    given(json!({ "id": "7", "b": "x" })).await.expect_ok();
    assert_eq!((recorder.last().target.as_str(), recorder.last().body.as_str()), ("/7", r#"{"b":"x"}"#));
}

#[tokio::test]
async fn names_that_are_not_told_apart_say_what_they_are_sent_as() {
    let recorder = Recorder::start().await;
    let of = |name: &str| json!({ "name": name, "in": "query", "schema": { "type": "string" }, "description": "When" });
    let names = ["DateCreated", "DateCreated<", "DateCreated>", "名前", "filter[x]"];
    let server = recorder.serve(&one("GET /", &json!({ "parameters": names.map(of) })));
    let properties = server.list_tools().await[0]["inputSchema"]["properties"].clone();
    let told: Vec<_> = properties.as_object().expect("properties").iter().collect();
    let told: Vec<_> =
        told.iter().map(|(name, schema)| (name.as_str(), schema["description"].as_str())).collect();
    assert_eq!(
        told,
        [
            ("DateCreated_query", Some("When")),
            ("DateCreated_query_2", Some("When. Sent as \"DateCreated<\".")),
            ("DateCreated_query_3", Some("When. Sent as \"DateCreated>\".")),
            ("argument", Some("When. Sent as \"名前\".")),
            ("filter_x", Some("When")),
        ]
    );
    server.call("call", json!({ "DateCreated_query_2": "a", "argument": "b" })).await.expect_ok();
    assert_eq!(recorder.last().target, "/?DateCreated%3C=a&%E5%90%8D%E5%89%8D=b");
}

#[tokio::test]
async fn the_bytes_of_rust_are_a_file_and_not_a_list_of_files() {
    let recorder = Recorder::start().await;
    // as `utoipa` and `schemars` write `Vec<u8>`
    let bytes = json!({ "type": "array", "items": { "type": "integer", "format": "int32", "minimum": 0 }, "contentMediaType": "application/octet-stream" });
    let other = json!({ "type": "array", "items": { "type": "integer", "format": "uint8", "minimum": 0, "maximum": 255 } });
    let schema = json!({ "type": "object", "properties": { "file": bytes, "other": other } });
    let server = recorder.serve(&one("POST /", &body("multipart/form-data", &schema, &json!(null))));
    let properties = server.list_tools().await[0]["inputSchema"]["properties"].clone();
    let file = json!({ "type": "string", "contentEncoding": "base64", "description": "In base64." });
    assert_eq!((&properties["file"], &properties["other"]), (&file, &file));
    server.call("call", json!({ "file": "aGk=", "other": "aGk=" })).await.expect_ok();
    assert!(recorder.last().body.contains("\r\n\r\nhi\r\n"), "{}", recorder.last().body);
}

#[tokio::test]
async fn files_are_read_as_models_write_them_and_may_have_a_name() {
    let recorder = Recorder::start().await;
    let file = json!({ "type": "string", "format": "binary" });
    let schema = json!({ "type": "object", "properties": { "file": file, "note": { "type": "string" } } });
    let server = recorder.serve(&one("POST /", &body("multipart/form-data", &schema, &json!(null))));
    for text in ["aGk_aGk-", "aGk/aGk+", "aGk_\n aGk-", "data:text/plain;base64,aGk/aGk+"] {
        server.call("call", json!({ "file": text, "file_filename": "a\"b.txt" })).await.expect_ok();
        let arrived = recorder.last();
        assert!(arrived.body.contains("name=\"file\"; filename=\"a%22b.txt\"\r\n"), "{}", arrived.body);
    }
    for (text, content) in [("aGk", "hi"), ("aGk=", "hi"), ("aA==", "h")] {
        server.call("call", json!({ "file": text })).await.expect_ok();
        assert!(recorder.last().body.contains(&format!("\r\n\r\n{content}\r\n--")), "{text}");
    }
    let before = recorder.count();
    let schema = json!({ "type": "object", "properties": { "files": { "type": "array", "items": file } } });
    let several = recorder.serve(&one("POST /", &body("multipart/form-data", &schema, &json!(null))));
    let more = json!({ "files": ["aGk="], "files_filename": ["a.txt", "b.txt"] });
    several.call("call", more).await.expect_failure("`files_filename` has more names than there are files");
    assert_eq!(recorder.count(), before);
    several
        .call("call", json!({ "files": ["aGk=", "aA==", "aGk="], "files_filename": ["a\"b", "c"] }))
        .await
        .expect_ok();
    let arrived = recorder.last();
    let names: Vec<_> =
        arrived.body.split("; filename=").skip(1).filter_map(|rest| rest.lines().next()).collect();
    assert_eq!(names, ["\"a%22b\"", "\"c\"", "\"files\""]);
    let before = recorder.count();
    server.call("call", json!({ "file": "aG=k" })).await.expect_failure("`file` is not base64");
    server.call("call", json!({ "file_filename": "x" })).await.expect_failure("`file` is missing");
    assert_eq!(recorder.count(), before);
}

#[tokio::test]
async fn a_call_that_names_members_is_not_sent_without_a_body() {
    let recorder = Recorder::start().await;
    let schema = json!({ "type": "object", "properties": { "tags": { "type": "array" } } });
    for media in ["application/x-www-form-urlencoded", "multipart/form-data"] {
        let server = recorder.serve(&one("PATCH /", &body(media, &schema, &json!(null))));
        let reply = server.call("call", json!({ "tags": [] })).await;
        reply.expect_failure("the body would be empty: `tags` has no value that can be sent in it");
        server.call("call", json!({})).await.expect_ok();
    }
    assert_eq!(recorder.count(), 2);
}

#[tokio::test]
async fn null_for_what_is_optional_is_its_absence_but_not_in_the_json_of_a_patch() {
    let recorder = Recorder::start().await;
    let schema = json!({ "type": "object", "required": ["must"], "properties": {
        "must": { "type": "string" }, "may": { "type": "string" }, "null": { "type": "string", "nullable": true },
        "in": { "type": "object", "properties": { "deep": { "type": "integer" }, "list": { "type": "array", "items": {
            "type": "object", "properties": { "end": { "type": "string" } },
        } } } },
    } });
    let operation = |media: &str| {
        let mut operation = body(media, &schema, &json!(null));
        operation["parameters"] = json!([{ "name": "q", "in": "query", "schema": { "type": "integer" } }]);
        operation
    };
    let nulls = json!({
        "q": null, "must": "x", "may": null, "null": null, "in": { "deep": null, "list": [{ "end": null }] },
    });
    let server = recorder.serve(&one("POST /", &operation("application/json")));
    server.call("call", nulls.clone()).await.expect_ok();
    assert_eq!(recorder.last().target, "/");
    assert_eq!(recorder.last().body, r#"{"in":{"list":[{}]},"must":"x","null":null}"#);
    server.call("call", json!({ "must": null })).await.expect_failure("must: null is not a string");
    let server = recorder.serve(&one("PATCH /", &operation("application/json")));
    let reply = server.call("call", nulls.clone()).await;
    for path in ["may", "in.deep", "in.list[0].end"] {
        reply.expect_failure(&format!("{path}: null is not a"));
    }
    reply.expect_failure("; leave it out instead");
    server.call("call", json!({ "q": null, "must": "x", "null": null })).await.expect_ok();
    assert_eq!(
        (recorder.last().target.as_str(), recorder.last().body.as_str()),
        ("/", r#"{"must":"x","null":null}"#)
    );
    let server = recorder.serve(&one("PATCH /", &operation("application/x-www-form-urlencoded")));
    server.call("call", nulls).await.expect_ok();
}

#[tokio::test]
async fn a_form_without_fields_gives_no_argument_and_any_object_is_one() {
    let recorder = Recorder::start().await;
    let none = json!({ "type": "object", "properties": {} });
    let form = "application/x-www-form-urlencoded";
    for (media, schema, is_argument) in [
        (form, &none, false),
        ("application/json", &none, true),
        ("application/json", &json!({ "type": "object" }), true),
        (
            "application/json",
            &json!({ "type": "object", "properties": {}, "additionalProperties": false }),
            false,
        ),
    ] {
        let operation = json!({ "requestBody": { "content": { media: { "schema": schema } } } });
        let server = recorder.serve(&one("GET /", &operation));
        let properties = server.list_tools().await[0]["inputSchema"]["properties"].clone();
        assert_eq!(properties.get("body").is_some(), is_argument, "{media} {schema}: {properties}");
        server.call("call", json!({})).await.expect_ok();
        assert_eq!(recorder.last().body, "");
    }
}
