//! Resources, templates and prompts that are added, replaced and removed while the server runs, as tools are.

use mcp_runtime::{
    Completion,
    content::ResourceContents,
    prompt::{PromptArgument, PromptCall, PromptDef},
    resource::{ListedPage, PageRequest, ResourceCall, ResourceDef},
};

use super::{Protocol, capable, cells, connect_to, no_requests};
use crate::prelude::*;

/// The words that the server's state holds.
struct Words(Vec<&'static str>);

fn fixed(text: &'static str) -> ResourceDef {
    ResourceDef::builder("note://fixed").name("fixed").handler(move |_: ResourceCall| async move { text })
}

/// A template that lists its instances, completes, and decides on subscriptions.
fn words() -> ResourceDef {
    ResourceDef::builder("word://{number}{?upper}")
        .name("word")
        .title("Words")
        .description("A word")
        .mime("text/x-word")
        .annotated(|hints| hints.priority(0.5))
        .meta("kind", "word")
        .list(|page: PageRequest, ctx: Context| async move {
            let words = ctx.state::<Words>().ok_or("no words")?;
            let start: usize = page.cursor.as_deref().unwrap_or("0").parse()?;
            let end = (start + page.limit).min(words.0.len());
            let next = (end < words.0.len()).then(|| end.to_string());
            let uris = (start..end).map(|number| format!("word://{number}"));
            Ok::<_, ToolError>(ListedPage::new(uris).next_cursor(next))
        })
        .complete("upper", ["true", "false"])
        .complete_with("number", |typed: Completion, _| async move { [format!("{}0", typed.value)] })
        .subscribe(|wanted, _| wanted.variables["number"] == "0")
        .handler(|call: ResourceCall| async move {
            let number: usize = call.variable("number")?;
            let upper: Option<bool> = call.variable("upper")?;
            let words = call.context.state::<Words>().ok_or("no words")?;
            let Some(word) = words.0.get(number) else { return Ok(None) };
            let word = if upper == Some(true) { word.to_uppercase() } else { (*word).to_owned() };
            Ok::<_, ToolError>(Some(ResourceContents::text(word)))
        })
}

fn greeting(word: &'static str) -> PromptDef {
    PromptDef::builder("greet")
        .title("Greeting")
        .description("Greets someone")
        .argument(PromptArgument::new("name").title("Name").description("Who").required())
        .argument(PromptArgument::new("times").complete(["1", "2"]))
        .argument(PromptArgument::new("tone").complete_with(|typed: Completion, _| async move {
            if typed.value.is_empty() { Err(ToolError::new("type something")) } else { Ok([typed.value]) }
        }))
        .handler(move |call: PromptCall| async move {
            let times: Option<usize> = call.arg("times")?;
            Ok::<_, ToolError>(format!("{word} {}", call.arguments["name"]).repeat(times.unwrap_or(1)))
        })
}

/// The methods and URIs of the notifications that arrive until that of the list of tools, in any order.
async fn changes(client: &mut Client, handle: &ServerHandle) -> Vec<String> {
    handle.tools_changed();
    let mut found = Vec::new();
    loop {
        let message = client.next_message().await;
        let method = message["method"].as_str().expect("a notification").trim_start_matches("notifications/");
        if method == "tools/list_changed" {
            found.sort();
            return found;
        }
        let uri = message["params"]["uri"].as_str().unwrap_or_default();
        found.push(format!("{method} {uri}").trim_end().to_owned());
    }
}

async fn names(client: &mut Client, method: &str, member: &str, key: &str) -> Vec<Value> {
    client.list(method, member).await.0.iter().map(|entry| entry[key].clone()).collect()
}

async fn text(client: &mut Client, method: &str, params: Value) -> String {
    let reply = client.request(method, params).await.reply;
    let text = match method {
        "resources/read" => &reply["contents"][0]["text"],
        _ => &reply["messages"][0]["content"]["text"],
    };
    text.as_str().unwrap_or_else(|| panic!("no text: {reply}")).to_owned()
}

async fn code(client: &mut Client, method: &str, params: Value) -> Value {
    client.request(method, params).await.reply["error"]["code"].clone()
}

#[tokio::test]
async fn resources_and_prompts_are_added_replaced_and_removed_while_the_server_runs() {
    for cell in cells("run-time items") {
        let server = Server::builder("bare", "1").state(Words(vec!["zero", "one", "two", "three"]));
        let server = server.lists(|lists| lists.page_size(3)).build().unwrap();
        let handle = server.handle();
        // a client that connects before there is any prompt
        handle.add(fixed("first")).unwrap();
        let mut client = connect_to(&server, cell, capable(), no_requests).await;
        let filter = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": ["note://fixed"],
        });
        assert_eq!(client.listen(filter.clone()).await, filter, "{cell:?}");
        assert_eq!(names(&mut client, "prompts/list", "prompts", "name").await, [] as [Value; 0]);

        handle
            .update(|items| {
                items.add(words());
                items.add(greeting("Hello"));
            })
            .unwrap();
        let found = changes(&mut client, &handle).await;
        assert_eq!(found, ["prompts/list_changed", "resources/list_changed"], "{cell:?}");

        let (resources, pages) = client.list("resources/list", "resources").await;
        let uris: Vec<_> = resources.iter().map(|entry| entry["uri"].as_str().expect("a URI")).collect();
        assert_eq!(uris, ["note://fixed", "word://0", "word://1", "word://2", "word://3"], "{cell:?}");
        assert_eq!(pages, 2, "{cell:?}");
        let (templates, _) = client.list("resources/templates/list", "resourceTemplates").await;
        assert_eq!(
            templates,
            [json!({
                "uriTemplate": "word://{number}{?upper}", "name": "word", "title": "Words", "description": "A word",
                "mimeType": "text/x-word", "annotations": { "priority": 0.5 }, "_meta": { "kind": "word" },
            })],
            "{cell:?}"
        );
        let (prompts, _) = client.list("prompts/list", "prompts").await;
        assert_eq!(
            prompts,
            [json!({
                "name": "greet", "title": "Greeting", "description": "Greets someone",
                "arguments": [
                    { "name": "name", "title": "Name", "description": "Who", "required": true },
                    { "name": "times", "required": false },
                    { "name": "tone", "required": false },
                ],
            })],
            "{cell:?}"
        );

        let read = async |client: &mut Client, uri: &str| {
            text(client, "resources/read", json!({ "uri": uri })).await
        };
        assert_eq!(read(&mut client, "note://fixed").await, "first", "{cell:?}");
        assert_eq!(read(&mut client, "word://2").await, "two", "{cell:?}");
        assert_eq!(read(&mut client, "word://2?upper=true").await, "TWO", "{cell:?}");
        let missing = if cell.1 == Protocol::Modern { -32602 } else { -32002 };
        for (uri, expected) in
            [("word://9", missing), ("word://x", -32602), ("word://1?upper=perhaps", -32602)]
        {
            assert_eq!(
                code(&mut client, "resources/read", json!({ "uri": uri })).await,
                expected,
                "{cell:?} {uri}"
            );
        }
        let get = async |client: &mut Client, arguments: Value| {
            text(client, "prompts/get", json!({ "name": "greet", "arguments": arguments })).await
        };
        assert_eq!(get(&mut client, json!({ "name": "Ada", "times": "2" })).await, "Hello AdaHello Ada");
        for arguments in [json!({ "times": "2" }), json!({ "name": "Ada", "times": "x" })] {
            let params = json!({ "name": "greet", "arguments": arguments });
            assert_eq!(code(&mut client, "prompts/get", params).await, -32602, "{cell:?}");
        }
        let complete = async |client: &mut Client, of: Value, name: &str, value: &str| {
            let params = json!({ "ref": of, "argument": { "name": name, "value": value } });
            client.request("completion/complete", params).await.reply
        };
        let word = json!({ "type": "ref/resource", "uri": "word://{number}{?upper}" });
        let greet = json!({ "type": "ref/prompt", "name": "greet" });
        for (of, name, value, values) in [
            (&word, "number", "1", json!(["10"])),
            (&word, "upper", "T", json!(["true"])),
            (&greet, "times", "", json!(["1", "2"])),
            (&greet, "tone", "kind", json!(["kind"])),
            (&greet, "name", "", json!([])),
        ] {
            let reply = complete(&mut client, of.clone(), name, value).await;
            assert_eq!(reply["completion"]["values"], values, "{cell:?} {name}: {reply}");
        }
        let failed = complete(&mut client, greet, "tone", "").await;
        assert_eq!(failed["error"], json!({ "code": -32603, "message": "type something" }), "{cell:?}");

        handle.add(fixed("second")).unwrap();
        handle.add(greeting("Bye")).unwrap();
        let found = changes(&mut client, &handle).await;
        let updated = ["prompts/list_changed", "resources/list_changed", "resources/updated note://fixed"];
        assert_eq!(found, updated, "{cell:?}");
        assert_eq!(read(&mut client, "note://fixed").await, "second", "{cell:?}");
        assert_eq!(get(&mut client, json!({ "name": "Ada" })).await, "Bye Ada", "{cell:?}");
        handle.resource_updated("note://fixed");
        assert_eq!(changes(&mut client, &handle).await, ["resources/updated note://fixed"], "{cell:?}");

        assert!(handle.remove_prompt("greet").unwrap() && !handle.remove_prompt("greet").unwrap());
        assert!(handle.remove_resource("note://fixed").unwrap());
        assert!(handle.remove_resource("word://{number}{?upper}").unwrap());
        assert!(!handle.remove_resource("word://0").unwrap(), "an instance is not an item");
        let found = changes(&mut client, &handle).await;
        assert_eq!(found, ["prompts/list_changed", "resources/list_changed"], "{cell:?}");
        assert_eq!(names(&mut client, "resources/list", "resources", "uri").await, [] as [Value; 0]);
        for uri in ["note://fixed", "word://0"] {
            assert_eq!(code(&mut client, "resources/read", json!({ "uri": uri })).await, missing, "{cell:?}");
        }
        let params = json!({ "name": "greet", "arguments": { "name": "Ada" } });
        assert_eq!(code(&mut client, "prompts/get", params).await, -32602, "{cell:?}");

        handle.add(ToolDef::builder("made").handler(|_| async { "replaced" })).unwrap();
        handle.add(ToolDef::builder("made").handler(|_| async { "replacement" })).unwrap();
        assert_eq!(client.call("made", json!({})).await.text(), "replacement", "{cell:?}");
        assert!(handle.remove_tool("made").unwrap() && !handle.remove_tool("made").unwrap());
        let gone = json!({ "name": "made", "arguments": {} });
        assert_eq!(code(&mut client, "tools/call", gone).await, -32602, "{cell:?}");
    }
}

#[tokio::test]
async fn a_subscription_to_a_template_made_at_run_time_passes_its_check() {
    for cell in cells("run-time items") {
        let server = Server::builder("bare", "1").state(Words(vec!["zero", "one"])).build().unwrap();
        let handle = server.handle();
        handle.add(words()).unwrap();
        let mut client = connect_to(&server, cell, capable(), no_requests).await;
        let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["word://0"] });
        assert_eq!(client.listen(filter.clone()).await, filter, "{cell:?}");
        for uri in ["word://1", "word://0"] {
            handle.resource_updated(uri);
        }
        assert_eq!(changes(&mut client, &handle).await, ["resources/updated word://0"], "{cell:?}");
    }
}
