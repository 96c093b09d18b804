//! Which operations become tools, and how they are named.

use mcp_runtime::{
    serde_json::{self, Value, json},
    testing::TestServer,
};
use mcp_runtime_openapi::{OpenApi, Route};

use crate::support::serve;

const SHOP: &str = r#"
openapi: 3.0.3
info: { title: Shop, version: "1" }
paths:
  /orders:
    get: { operationId: listOrders, tags: [orders], summary: All orders }
    post: { operationId: createOrder, tags: [orders] }
  /orders/{id}:
    parameters: [{ name: id, in: path, required: true, schema: { type: string } }]
    get: { operationId: getOrder, tags: [orders], description: One order., summary: Order }
    put: { operationId: putOrder, tags: [orders] }
    delete: { operationId: deleteOrder, tags: [orders, dangerous] }
  /users:
    get: { tags: [users], deprecated: true }
    patch: { operationId: users/update-all }
"#;

fn shop() -> OpenApi {
    OpenApi::parse(SHOP).expect("a description").server("https://shop.example")
}

async fn names(api: OpenApi) -> Vec<String> {
    let tools = serve(api).list_tools().await;
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

fn error(api: OpenApi) -> String {
    mcp_runtime::server!().add(api).build().expect_err("an error").to_string()
}

#[tokio::test]
async fn rules_choose_by_tag_method_path_and_id() {
    let all = [
        "list_orders",
        "create_order",
        "get_order",
        "put_order",
        "delete_order",
        "get_users",
        "users_update_all",
    ];
    assert_eq!(names(shop()).await, all);
    for (route, expected) in [
        (Route::tag("dangerous"), &["delete_order"][..]),
        (Route::method("patch"), &["users_update_all"]),
        (Route::path("/orders"), &["list_orders", "create_order"]),
        (Route::path("/orders/*"), &["get_order", "put_order", "delete_order"]),
        (Route::get("/orders*"), &["list_orders", "get_order"]),
        (Route::put("/orders/{id}"), &["put_order"]),
        (Route::operation("createOrder"), &["create_order"]),
        (Route::deprecated(), &["get_users"]),
    ] {
        assert_eq!(names(shop().include(route.clone())).await, expected, "{route:?}");
        let others: Vec<_> = all.iter().filter(|name| !expected.contains(name)).copied().collect();
        assert_eq!(names(shop().exclude(route.clone())).await, others, "without {route:?}");
    }
    let several =
        shop().include(Route::tag("orders")).include(Route::tag("users")).exclude(Route::method("DELETE"));
    assert_eq!(names(several).await.len(), 5);
}

#[tokio::test]
async fn tools_have_the_texts_and_the_hints_of_their_operations() {
    let renamed = shop().rename("getOrder", "order").rename("GET /users", "people");
    let tools = serve(renamed).list_tools().await;
    let of = |name: &str| tools.iter().find(|tool| tool["name"] == name).cloned().expect(name);
    assert_eq!(
        of("order"),
        json!({
            "name": "order", "title": "Order", "description": "Order\n\nOne order.",
            "inputSchema": { "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"], "additionalProperties": false },
            "annotations": { "readOnlyHint": true },
        })
    );
    assert_eq!(of("list_orders")["description"], "All orders");
    assert_eq!(of("create_order")["description"], "POST /orders");
    assert_eq!(of("create_order").get("annotations"), None);
    assert_eq!(of("put_order")["annotations"], json!({ "idempotentHint": true }));
    assert_eq!(of("delete_order")["annotations"], json!({ "destructiveHint": true, "idempotentHint": true }));
    assert_eq!(of("people")["annotations"], json!({ "readOnlyHint": true }));
}

#[test]
fn a_rule_or_a_name_that_no_operation_has_is_an_error() {
    assert!(error(shop().own_headers(["X Tenant"])).contains("`X Tenant` is not the name of a header"));
    let api = shop().include(Route::tag("ordres")).exclude(Route::get("/x")).rename("getOrders", "x");
    let error = error(api);
    for part in [
        "`.include(Route::tag(\"ordres\"))` matches no operation\nthe tags are `dangerous`, `orders`, `users`",
        "`.exclude(Route::get(\"/x\"))` matches no operation",
        "`.rename(\"getOrders\", ..)` names no operation",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[tokio::test]
async fn names_of_tools_are_in_snake_case_and_not_too_long() {
    let named = async |path: &str, operation: Value| {
        let description = json!({ "openapi": "3.1.0", "paths": { path: { "get": operation } } }).to_string();
        names(OpenApi::parse(description).expect("a description").server("https://x.example")).await.remove(0)
    };
    for (id, name) in [
        ("getOrdersById", "get_orders_by_id"),
        ("repos/list-for-org", "repos_list_for_org"),
        ("HTTPServer2Get", "http_server2_get"),
        ("__x__", "x"),
        ("a\u{1b}[31mb\r\n", "a_31mb"),
    ] {
        assert_eq!(named("/", json!({ "operationId": id })).await, name);
    }
    let by_id = json!({ "parameters": [{ "name": "orderId", "in": "path", "required": true }] });
    assert_eq!(named("/orders/{orderId}.json", by_id).await, "get_orders_order_id_json");
    assert_eq!(named("/", json!({ "operationId": "x".repeat(100) })).await.len(), 63);
}

#[test]
fn two_operations_of_one_name_are_an_error_that_says_what_to_write() {
    let error = error(shop().rename("getOrder", "list_orders"));
    let expected = "`GET /orders` and `GET /orders/{id}` are both named `list_orders`\n\
                    write `.rename(\"GET /orders/{id}\", \"..\")`";
    assert!(error.contains(expected), "{error}");
}

fn many(count: usize) -> String {
    let path = |number: usize| {
        let tag = if number.is_multiple_of(3) { json!([]) } else { json!([format!("t{}", number % 3)]) };
        (format!("/p{number}"), json!({ "get": { "operationId": format!("get{number}"), "tags": tag } }))
    };
    json!({ "openapi": "3.1.0", "paths": (0..count).map(path).collect::<serde_json::Map<String, Value>>() })
        .to_string()
}

#[tokio::test]
async fn more_than_fifty_operations_have_to_be_chosen() {
    let api = |count| OpenApi::parse(many(count)).expect("a description").server("https://x.example");
    assert_eq!(names(api(50)).await.len(), 50);
    let error = error(api(51));
    for part in ["51 operations", "tokens\n", "`t1`: 17, `t2`: 17, without a tag: 17", "`.allow_all()`"] {
        let parts: Vec<_> = part.split(", ").collect();
        assert!(parts.iter().all(|part| error.contains(part)), "{part}: {error}");
    }
    assert_eq!(names(api(51).allow_all()).await.len(), 51);
    assert_eq!(names(api(51).include(Route::path("/*"))).await.len(), 51);
    assert_eq!(names(api(80).exclude(Route::tag("t1")).exclude(Route::tag("t2"))).await.len(), 27);
    assert!(self::error(api(80).exclude(Route::tag("t1"))).contains("53 operations"));
}

#[tokio::test]
async fn several_descriptions_are_one_server_by_mounting_them() {
    let inner = mcp_runtime::server!().add(shop().include(Route::operation("getOrder")));
    let server = mcp_runtime::server!().add(shop().include(Route::operation("getOrder"))).mount("old", inner);
    let tools = TestServer::new(server).expect("a server").list_tools().await;
    assert_eq!(tools.iter().map(|tool| &tool["name"]).collect::<Vec<_>>(), ["get_order", "old_get_order"]);
}

#[test]
fn other_documents_are_refused() {
    for (text, why) in [
        ("swagger: '2.0'\npaths: {}", "convert descriptions of Swagger 2.0 first"),
        ("openapi: 4.0.0", "`openapi` is not 3.0, 3.1 or 3.2"),
        ("{\"openapi\": \"3.1.0\", \"paths\": []}", "not an object"),
        ("{\"openapi\"", "it is not JSON"),
        ("a: [", "it is not YAML"),
        ("", "empty"),
    ] {
        let error = OpenApi::parse(text).expect_err(text).to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn all_operations_that_cannot_be_called_are_named_at_once_with_what_to_write() {
    let paths: serde_json::Map<String, Value> = (0..30)
        .flat_map(|number| [format!("/good{number}"), format!("/bad{number}#x")])
        .map(|path| (path, json!({ "delete": {} })))
        .collect();
    let description = json!({ "openapi": "3.1.0", "paths": paths }).to_string();
    let api =
        || OpenApi::parse(&*description).expect("a description").server("https://x.example").allow_all();
    let error = error(api());
    let rules: Vec<_> = error.lines().filter(|line| line.starts_with(".exclude(Route::delete(")).collect();
    assert_eq!(rules.len(), 30, "{error}");
    assert!(rules.contains(&".exclude(Route::delete(\"/bad7#x\"))") && !error.contains("good"), "{error}");
    assert!(error.contains("`DELETE /bad0#x`: the path `/bad0#x` has characters"), "{error}");
    let without = (0..30).fold(api(), |api, number| api.exclude(Route::delete(format!("/bad{number}#x"))));
    assert!(mcp_runtime::server!().add(without).build().is_ok());
}

#[tokio::test]
async fn an_id_without_a_letter_of_ascii_is_an_error_that_says_what_to_write() {
    let description =
        json!({ "openapi": "3.1.0", "paths": { "/a": { "get": { "operationId": "取得" } } } }).to_string();
    let api = || OpenApi::parse(&*description).expect("a description").server("https://x.example");
    let error = error(api());
    assert!(error.contains("`GET /a` has no name in ASCII\nwrite `.rename(\"GET /a\", \"..\")`"), "{error}");
    assert_eq!(names(api().rename("取得", "take")).await, ["take"]);
}

#[tokio::test]
async fn a_description_of_version_3_2_is_read_as_one_of_3_1() {
    let schema = "{ type: [integer, 'null'], exclusiveMinimum: 1 }";
    let yaml = format!(
        "openapi: 3.2.0\npaths: {{ /: {{ get: {{ parameters: [{{ name: p, in: query, schema: {schema} }}] }} }} }}"
    );
    let tools =
        serve(OpenApi::parse(yaml).expect("a description").server("https://x.example")).list_tools().await;
    assert_eq!(tools[0]["inputSchema"]["properties"]["p"]["anyOf"][0]["exclusiveMinimum"], 1);
}
