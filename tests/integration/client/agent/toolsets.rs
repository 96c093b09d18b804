//! Names, filters, rules and formats of a toolset, and servers that are not there.

use std::sync::{Arc, Mutex};

use mcp_runtime::{
    Server,
    client::{Client, Error, agent::Toolset},
    tool::{ToolCall, ToolDef},
};
use mcp_tests::support::HttpServer;
use serde_json::{Value, json};

use super::{call, names, scripted, text};
use crate::client::{Transport, builder, connect, pinned, within};

const SHOP: [&str; 7] = [
    "shop.echo",
    "shop.fails",
    "shop.mirror",
    "shop.steps",
    "shop.resources_list",
    "shop.resources_read",
    "shop.resources_templates_list",
];

/// A server without resources.
fn plain(tools: &[&'static str]) -> Server {
    let mut builder = Server::builder("plain", "1");
    for &name in tools {
        builder = builder.add(ToolDef::builder(name).handler(move |_: ToolCall| async move { name }));
    }
    builder.build().unwrap()
}

async fn client(server: &Server) -> Client {
    within(pinned(None).connect(server)).await.unwrap()
}

#[tokio::test]
async fn tools_have_the_namespace_of_their_server_and_so_have_functions_for_its_resources() {
    let server = builder().build().unwrap();
    for way in [Transport::Memory, Transport::Http] {
        let connected = connect(&server, way, pinned(None)).await.unwrap();
        let shop = connected.client.toolset("shop");
        assert_eq!(names(&within(shop.tools()).await.unwrap()), SHOP, "{way:?}");

        assert_eq!(text(&shop, "shop.echo", json!({ "message": "tea" })).await, "tea");
        let failed = call(&shop, "shop.fails", json!({})).await.unwrap();
        assert!(failed.is_error && failed.text().contains("it does not work"));
        let mirrored = call(&shop, "shop.mirror", json!({ "x": 1, "y": 2 })).await.unwrap();
        assert_eq!(mirrored.structured, Some(json!({ "x": 2, "y": 1 })));

        let listed = text(&shop, "shop.resources_list", json!({})).await;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed["resources"][0]["uri"], "note://one");
        assert_eq!(text(&shop, "shop.resources_read", json!({ "uri": "note://one" })).await, "noted");
        let templates = text(&shop, "shop.resources_templates_list", Value::Null).await;
        assert!(templates.contains("picture://{name}"), "{templates}");
        let missing = call(&shop, "shop.resources_read", json!({ "uri": "note://two" })).await;
        assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
        for wrong in ["shop.unknown", "echo", "other.echo", "shop."] {
            let refused = call(&shop, wrong, json!({})).await;
            assert!(matches!(&refused, Err(Error::Invalid { what }) if what.contains(wrong)), "{refused:?}");
        }
    }
}

#[tokio::test]
async fn a_server_without_resources_has_no_functions_for_them() {
    let toolset = client(&plain(&["buy"])).await.toolset("plain");
    assert_eq!(names(&toolset.tools().await.unwrap()), ["plain.buy"]);
    assert!(call(&toolset, "plain.resources_list", json!({})).await.is_err());
}

#[tokio::test]
async fn a_long_list_of_resources_is_read_in_parts() {
    let client = scripted(|method, _| {
        assert_eq!(method, "resources/list");
        let entry =
            |number| json!({ "uri": format!("note://{number:03}"), "name": format!("Note {number}") });
        json!({ "resources": (0..500).map(entry).collect::<Vec<_>>() })
    });
    let toolset = client.await.toolset("many");
    let (mut offset, mut seen, mut parts) = (json!(0), Vec::new(), 0);
    while !offset.is_null() {
        let part = text(&toolset, "many.resources_list", json!({ "offset": offset })).await;
        assert!(part.chars().count() <= 10_000);
        let mut part: Value = serde_json::from_str(&part).unwrap();
        offset = part["next_offset"].take();
        let uris = part["resources"].as_array().unwrap();
        seen.extend(uris.iter().map(|resource| resource["uri"].as_str().unwrap().to_owned()));
        parts += 1;
    }
    let expected: Vec<_> = (0..500).map(|number| format!("note://{number:03}")).collect();
    assert_eq!(seen, expected);
    assert!(parts > 1);
}

#[tokio::test]
async fn several_servers_make_one_toolset_in_which_no_name_is_of_two() {
    let (one, other) = (client(&plain(&["a", "b.c"])).await, client(&plain(&["c", "a"])).await);
    let merged = Toolset::merge([one.toolset("one"), other.toolset("other")]).unwrap();
    assert_eq!(names(&merged.tools().await.unwrap()), ["one.a", "one.b.c", "other.c", "other.a"]);
    assert_eq!(text(&merged, "one.b.c", json!({})).await, "b.c");
    assert_eq!(text(&merged, "other.c", json!({})).await, "c");

    // `x.b.c` could be the tool `b.c` of `x`, or `c` of `x.b`
    for (first, second) in [("x", "x"), ("x", "x.b"), ("x.b", "x"), ("", "x")] {
        let refused = Toolset::merge([one.toolset(first), other.toolset(second)]).unwrap_err();
        assert!(matches!(refused, Error::Invalid { .. }), "{first} {second}");
    }
    assert!(Toolset::merge([]).is_err());

    let underscored = Toolset::merge([one.toolset("x"), other.toolset("y")]).unwrap().separator("__");
    assert_eq!(names(&underscored.tools().await.unwrap()), ["x__a", "x__b.c", "y__c", "y__a"]);
    assert_eq!(text(&underscored, "y__a", json!({})).await, "a");
    let colliding = Toolset::merge([one.toolset("x"), other.toolset("x_y")]).unwrap().separator("_");
    assert!(colliding.tools().await.unwrap_err().to_string().contains("collide"));
    assert!(call(&colliding, "x_a", json!({})).await.is_err());
}

#[tokio::test]
async fn tools_that_are_left_out_are_neither_listed_nor_called() {
    let client = client(&builder().build().unwrap()).await;
    let only = client.toolset("shop").only(["echo", "m*"]);
    assert_eq!(names(&only.tools().await.unwrap()), ["shop.echo", "shop.mirror"]);
    let except = client.toolset("shop").except(["resources_*", "?teps", "fails"]);
    assert_eq!(names(&except.tools().await.unwrap()), ["shop.echo", "shop.mirror"]);
    let read_only = client.toolset("shop").filter(|tool| tool.hint("readOnlyHint") == Some(true));
    assert_eq!(names(&read_only.tools().await.unwrap()), [SHOP[0], SHOP[4], SHOP[5], SHOP[6]]);
    for toolset in [&only, &except, &read_only] {
        // also by those who never list
        assert!(matches!(call(toolset, "shop.fails", json!({})).await, Err(Error::Invalid { .. })));
        assert_eq!(text(toolset, "shop.echo", json!({ "message": "x" })).await, "x");
    }
    assert!(call(&only, "shop.resources_read", json!({ "uri": "note://one" })).await.is_err());
}

#[tokio::test]
async fn calls_and_resources_are_used_only_if_the_program_allows() {
    let client = client(&builder().build().unwrap()).await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = asked.clone();
    let toolset = client
        .toolset("shop")
        .allow_calls(move |tool, arguments| {
            kept.lock().unwrap().push((tool.to_owned(), arguments.clone()));
            arguments["message"] != "secret"
        })
        .allow_resources(|uri| !uri.starts_with("note:"));
    assert_eq!(text(&toolset, "shop.echo", json!({ "message": "tea" })).await, "tea");
    let refused = call(&toolset, "shop_echo", json!(r#"{"message":"secret"}"#)).await.unwrap_err();
    assert!(matches!(&refused, Error::Denied { what } if !what.contains("secret")), "{refused:?}");
    let refused = call(&toolset, "shop.resources_read", json!({ "uri": "note://one" })).await.unwrap_err();
    assert!(
        matches!(&refused, Error::Denied { .. }) && !refused.to_string().contains("note://"),
        "{refused}"
    );
    assert_eq!(toolset.counters().denied, 2);
    assert_eq!(text(&toolset, "shop.resources_list", json!({})).await, r#"{"resources":[]}"#);
    assert!(call(&toolset, "shop.resources_read", json!({ "uri": "picture://cat" })).await.is_ok());
    let asked = asked.lock().unwrap();
    assert_eq!(asked[0], ("shop.echo".to_owned(), json!({ "message": "tea" })));
    assert_eq!(asked[1], ("shop.echo".to_owned(), json!({ "message": "secret" })));
    assert_eq!(asked[2], ("shop.resources_read".to_owned(), json!({ "uri": "note://one" })));
}

fn is_allowed(name: &Value) -> bool {
    let name = name.as_str().unwrap();
    (1..=64).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

#[tokio::test]
async fn exports_are_what_the_apis_of_models_take() {
    let server = builder().build().unwrap();
    let odd = plain(&["a.b", "a_b"]);
    let make = async || {
        let (shop, odd) = (client(&server).await.toolset("shop"), client(&odd).await.toolset("odd"));
        Toolset::merge([shop, odd]).unwrap()
    };
    let toolset = make().await;
    let anthropic = toolset.anthropic().await.unwrap();
    let (openai, chat) = (toolset.openai().await.unwrap(), toolset.openai_chat().await.unwrap());
    assert_eq!(anthropic.len(), SHOP.len() + 2);
    for ((anthropic, openai), chat) in anthropic.iter().zip(&openai).zip(&chat) {
        let (name, schema) = (&anthropic["name"], &anthropic["input_schema"]);
        assert!(is_allowed(name), "{name}");
        assert!(anthropic["description"].is_string());
        assert_eq!(schema["type"], "object");
        assert!(schema["properties"].is_object(), "{schema}");
        assert_eq!(anthropic.as_object().unwrap().len(), 3);
        let function = json!({ "name": name, "description": anthropic["description"], "parameters": schema });
        assert_eq!(*chat, json!({ "type": "function", "function": function }));
        assert_eq!(openai["type"], "function");
        assert_eq!((&openai["name"], &openai["parameters"]), (name, schema));
    }
    assert_eq!(anthropic[0]["name"], "shop_echo");
    assert_eq!(anthropic[0]["input_schema"]["properties"]["message"]["type"], "string");

    // each name leads to its own tool; a program that starts anew knows the names of the last run
    let again = make().await;
    for (exported, expected) in anthropic[SHOP.len()..].iter().zip(["a.b", "a_b"]) {
        let name = exported["name"].as_str().unwrap();
        assert_eq!(text(&toolset, name, json!("{}")).await, expected, "{name}");
        assert_eq!(text(&again, name, json!("{}")).await, expected, "{name}");
    }
    let result = call(&toolset, "shop_echo", json!(r#"{"message":"tea"}"#)).await.unwrap();
    let expected = json!({ "type": "tool_result", "tool_use_id": "1", "content": "tea", "is_error": false });
    assert_eq!(result.anthropic("1"), expected);
    assert_eq!(
        result.openai("2"),
        json!({ "type": "function_call_output", "call_id": "2", "output": "tea" })
    );
    assert_eq!(result.openai_chat("3"), json!({ "role": "tool", "tool_call_id": "3", "content": "tea" }));
}

#[tokio::test]
async fn a_dead_server_hides_its_tools_and_nothing_else_and_comes_back() {
    let (lively, mortal) = (plain(&["lives"]), plain(&["dies"]));
    let mut http = HttpServer::of(&mortal).await;
    let address = http.address;
    let remote = within(Client::connect(format!("http://{address}/mcp"))).await.unwrap();
    let toolset = Toolset::merge([client(&lively).await.toolset("one"), remote.toolset("other")]).unwrap();
    let all = ["one.lives", "other.dies"];
    assert_eq!(names(&within(toolset.tools()).await.unwrap()), all);
    assert_eq!(toolset.unavailable().len(), 0);

    http.stop();
    http.stopped().await;
    assert_eq!(names(&within(toolset.tools()).await.unwrap()), ["one.lives"]);
    let unavailable = toolset.unavailable();
    assert_eq!(unavailable[0].0, "other");
    assert!(call(&toolset, "other.dies", json!({})).await.is_err());
    assert_eq!(text(&toolset, "one.lives", json!({})).await, "lives");

    let _http = HttpServer::at(address, &mortal).await;
    assert_eq!(names(&within(toolset.tools()).await.unwrap()), all);
    assert_eq!(toolset.unavailable().len(), 0);
    assert_eq!(text(&toolset, "other.dies", json!({})).await, "dies");
}

#[tokio::test]
async fn a_server_is_connected_when_it_is_needed_and_again_when_it_has_ended() {
    let lively = client(&plain(&["lives"])).await;
    // whether the other one can be reached, and its connections
    let reachable = Arc::new(Mutex::new((false, Vec::<Client>::new())));
    let state = reachable.clone();
    let mortal = plain(&["dies"]);
    let lazy = Toolset::connecting("other", move || {
        let (state, server) = (state.clone(), mortal.clone());
        async move {
            if !state.lock().unwrap().0 {
                return Err(Error::Timeout { after: std::time::Duration::ZERO, option: None });
            }
            let client = Client::connect(&server).await?;
            state.lock().unwrap().1.push(client.clone());
            Ok(client)
        }
    });
    let toolset = Toolset::merge([lazy, lively.toolset("one")]).unwrap();
    let listed = async || names(&within(toolset.tools()).await.unwrap()).join(" ");
    let until_listed = async |expected: &str| {
        within(async {
            while listed().await != expected {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        })
        .await;
    };
    assert_eq!(listed().await, "one.lives");
    assert!(call(&toolset, "other.dies", json!({})).await.is_err());
    reachable.lock().unwrap().0 = true;
    until_listed("other.dies one.lives").await;
    assert_eq!(text(&toolset, "other.dies", json!({})).await, "dies");

    let connection = reachable.lock().unwrap().1[0].clone();
    within(connection.close()).await;
    until_listed("other.dies one.lives").await;
    assert_eq!(text(&toolset, "other.dies", json!({})).await, "dies");
    assert_eq!(reachable.lock().unwrap().1.len(), 2, "one connection for each life");
}
