//! The order in which calls are refused: a call with several faults gets the refusal of the first one, so that a client
//! which repairs one fault after the other sees them in this order, and neither a limit nor a function is charged before.

use mcp_runtime::layer::{LayeredCall, Next, Outcome};

use super::{Cell, Protocol, cells, connect_to, no_requests};
use crate::prelude::*;

#[derive(Default)]
struct Runs(AtomicUsize);

/// Passes every check
#[mcp_tool(requires(roots), task = required, rate = "1/1h")]
async fn guarded_tool(#[mcp(header = "Region")] region: String, count: u32, runs: &Arc<Runs>) -> String {
    runs.0.fetch_add(1, Ordering::SeqCst);
    format!("{count} in {region}")
}

/// Passes every check
#[mcp_resource(uri = "guarded://{count}", requires(roots), rate = "1/1h")]
fn guarded_resource(count: u32, runs: &Arc<Runs>) -> String {
    runs.0.fetch_add(1, Ordering::SeqCst);
    count.to_string()
}

/// Passes every check
#[mcp_prompt(requires(roots), rate = "1/1h")]
fn guarded_prompt(count: u32, runs: &Arc<Runs>) -> String {
    runs.0.fetch_add(1, Ordering::SeqCst);
    count.to_string()
}

/// Refuses a call that says so in its `_meta`.
async fn gatekeeper(call: LayeredCall, next: Next) -> Outcome {
    if call.context().meta("refuse").is_some() {
        return Err(ProtocolError::new(-31001, "refused by a layer").into());
    }
    next.run(&call).await
}

/// A call that can have faults.
struct Attempt {
    params: Value,
    roots: bool,
    tasks: bool,
    region: &'static str,
    /// Whether the caller has used up the rate of the item.
    is_limited: bool,
}

/// A fault, and the text of its refusal.
struct Fault {
    refusal: &'static str,
    applies: fn(Cell) -> bool,
    make: fn(&mut Attempt),
}

impl Fault {
    fn new(refusal: &'static str, make: fn(&mut Attempt)) -> Self {
        Self { refusal, applies: |_| true, make }
    }

    /// A fault that only requests since 2026-07-28 can have.
    fn modern(refusal: &'static str, make: fn(&mut Attempt)) -> Self {
        Self { applies: |(_, protocol)| protocol == Protocol::Modern, ..Self::new(refusal, make) }
    }
}

/// A method, the parameters of a call that is accepted, and the faults of others in the order of their refusals.
struct Method {
    name: &'static str,
    params: fn() -> Value,
    faults: Vec<Fault>,
}

fn forge_state(attempt: &mut Attempt) {
    attempt.params["requestState"] = json!("forged");
}

/// A call without the parameter that `Mcp-Name` repeats; the header is missing as well, which is found before the body is read.
fn unnamed(refusal: &'static str, make: fn(&mut Attempt)) -> [Fault; 2] {
    let has_header = |cell| cell == (Transport::Http, Protocol::Modern);
    let header = Fault { applies: has_header, ..Fault::new("`Mcp-Name` is missing", make) };
    [
        header,
        Fault { applies: |cell| cell != (Transport::Http, Protocol::Modern), ..Fault::new(refusal, make) },
    ]
}

fn methods() -> [Method; 3] {
    let remove_name = |attempt: &mut Attempt| {
        attempt.params.as_object_mut().unwrap().remove("name");
    };
    let [tool_header, tool_name] = unnamed("`name` is missing", remove_name);
    let [prompt_header, prompt_name] = unnamed("`name` is missing", remove_name);
    let [resource_header, resource_uri] = unnamed("`uri` is missing", |attempt| {
        attempt.params.as_object_mut().unwrap().remove("uri");
    });
    let token = || {
        Fault::new("`progressToken` is neither", |attempt| {
            attempt.params["_meta"]["progressToken"] = json!({});
        })
    };
    let features = || Fault::new("does not declare `roots`", |attempt| attempt.roots = false);
    let state = || Fault::modern("`requestState` does not belong to this call", forge_state);
    let layer =
        || Fault::new("refused by a layer", |attempt| attempt.params["_meta"]["refuse"] = json!(true));
    let rate = || Fault::new("may be called once in 1 hour", |attempt| attempt.is_limited = true);
    let tool = Method {
        name: "tools/call",
        params: || json!({ "name": "guarded_tool", "arguments": { "region": "eu", "count": 3 } }),
        faults: vec![
            tool_header,
            token(),
            tool_name,
            Fault::new("`arguments` is not an object", |attempt| attempt.params["arguments"] = json!([])),
            Fault::new("unknown tool", |attempt| attempt.params["name"] = json!("nothing")),
            Fault {
                applies: |cell| cell == (Transport::Http, Protocol::Modern),
                ..Fault::new("Mcp-Param-Region", |attempt| attempt.region = "us")
            },
            features(),
            Fault::modern("io.modelcontextprotocol/tasks", |attempt| attempt.tasks = false),
            state(),
            layer(),
            rate(),
            Fault::new("invalid arguments", |attempt| attempt.params["arguments"]["count"] = json!("many")),
        ],
    };
    let resource = Method {
        name: "resources/read",
        params: || json!({ "uri": "guarded://3" }),
        faults: vec![
            resource_header,
            token(),
            resource_uri,
            Fault::new("unknown resource", |attempt| attempt.params["uri"] = json!("guarded:/3")),
            features(),
            state(),
            layer(),
            rate(),
            Fault::new("invalid URI", |attempt| attempt.params["uri"] = json!("guarded://many")),
        ],
    };
    let prompt = Method {
        name: "prompts/get",
        params: || json!({ "name": "guarded_prompt", "arguments": { "count": "3" } }),
        faults: vec![
            prompt_header,
            token(),
            prompt_name,
            Fault::new("`arguments` is not an object", |attempt| attempt.params["arguments"] = json!([])),
            Fault::new("unknown prompt", |attempt| attempt.params["name"] = json!("nothing")),
            features(),
            state(),
            layer(),
            rate(),
            Fault::new("invalid arguments", |attempt| attempt.params["arguments"]["count"] = json!("many")),
        ],
    };
    [tool, resource, prompt]
}

/// The rates are counted by the server, or by the store that it shares with replicas.
fn served(runs: &Arc<Runs>, is_shared: bool) -> Server {
    let mut builder = mcp_runtime::server!()
        .tool::<guarded_tool>()
        .resource::<guarded_resource>()
        .prompt::<guarded_prompt>()
        .layer(gatekeeper)
        .state(Arc::clone(runs));
    if is_shared {
        builder = builder.stores(|stores| stores.keys([server_key(7)])).shared(BreakableStore::default());
    }
    builder.build().unwrap()
}

async fn send(server: &Server, cell: Cell, method: &str, attempt: &Attempt) -> Value {
    let mut capabilities = json!({});
    if attempt.roots {
        capabilities["roots"] = json!({});
    }
    if attempt.tasks {
        capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
    }
    let mut client = connect_to(server, cell, capabilities, no_requests).await;
    client.set_header("Mcp-Param-Region", attempt.region);
    client.reply(method, attempt.params.clone()).await
}

/// The message of an error or of a tool's result that is one.
fn refusal(reply: &Value) -> Option<&str> {
    let in_result = || reply["content"][0]["text"].as_str().filter(|_| reply["isError"] == true);
    reply["error"]["message"].as_str().or_else(in_result)
}

#[tokio::test]
async fn a_call_with_several_faults_is_refused_for_the_first_one() {
    // rates that a store counts are found in the same place on every transport
    let shared = [((Transport::Http, Protocol::Modern), true)];
    for (cell, is_shared) in cells("order of refusals").map(|cell| (cell, false)).chain(shared) {
        for Method { name, params, faults } in methods() {
            let faults: Vec<_> = faults.iter().filter(|fault| (fault.applies)(cell)).collect();
            for first in 0..=faults.len() {
                let runs = Arc::<Runs>::default();
                let server = served(&runs, is_shared);
                let make = || Attempt {
                    params: params(),
                    roots: true,
                    tasks: true,
                    region: "eu",
                    is_limited: false,
                };
                let mut attempt = make();
                // the faults that are found first overwrite what the others have changed
                faults[first..].iter().rev().for_each(|fault| (fault.make)(&mut attempt));
                if attempt.is_limited {
                    let accepted = send(&server, cell, name, &make()).await;
                    assert_eq!(refusal(&accepted), None, "{cell:?}: {accepted}");
                    // a task runs after its call has been answered
                    assert!(soon(|| runs.0.load(Ordering::SeqCst) == 1).await, "{cell:?}: {accepted}");
                }
                let before = runs.0.load(Ordering::SeqCst);
                let reply = send(&server, cell, name, &attempt).await;
                match faults.get(first) {
                    Some(expected) => {
                        let message = refusal(&reply);
                        assert!(
                            message.is_some_and(|message| message.contains(expected.refusal)),
                            "{cell:?}, {name}: not refused for `{}`: {reply}",
                            expected.refusal
                        );
                        assert_eq!(runs.0.load(Ordering::SeqCst), before, "{cell:?}, {name}: {reply}");
                    }
                    None => assert_eq!(refusal(&reply), None, "{cell:?}: {reply}"),
                }
            }
        }
    }
}
