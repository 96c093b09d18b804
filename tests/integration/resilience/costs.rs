//! What the most expensive requests of a size cost, in CPU time of the server's thread: no more than a few times what
//! an `echo` of that size costs, so that the size of a message bounds the work it causes.

use std::collections::{BTreeMap, HashSet};

use mcp_runtime::{
    prelude::*,
    tool::{ToolCall, ToolDef},
};
use mcp_tests::support::{LineConnection, text_of};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

#[mcp_tool]
fn echo(text: String) -> String {
    text
}

#[mcp_type]
#[derive(PartialEq, Eq, Hash)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Shape {
    Circle { radius: u32 },
    Square { side: u32 },
    Oblong { width: u32, height: u32 },
}

#[mcp_type]
struct Row {
    #[schemars(range(min = 1, max = 9))]
    limit: u32,
    #[schemars(regex(pattern = "^(a?){32}a{32}$"))]
    text: Option<String>,
}

/// Takes everything
#[mcp_tool]
#[allow(clippy::too_many_arguments)]
fn take(
    limit: Option<u32>,
    maps: Option<Vec<BTreeMap<u32, u32>>>,
    map: Option<BTreeMap<String, u32>>,
    rows: Option<Vec<Row>>,
    numbers: Option<Vec<u32>>,
    any: Option<Value>,
    shapes: Option<Vec<Shape>>,
    set: Option<HashSet<Shape>>,
    #[mcp(pattern = "^(a?){32}a{32}$")] text: Option<String>,
    #[mcp(length(..=10), one_of("alpha", "beta"))] choice: Option<String>,
    ids: Option<Vec<uuid::Uuid>>,
) -> bool {
    let _ = (limit, maps, map, rows, numbers, any, shapes, set, text, choice, ids);
    true
}

#[mcp_tool(strict)]
fn exact(first_name: Option<String>, last_name: Option<String>) -> bool {
    first_name == last_name
}

#[mcp_resource(uri = "notes://{id}/{+path}{?page}", subscribe = may_watch)]
fn note(id: String, path: String, page: Option<u32>) -> String {
    format!("{id} {path} {page:?}")
}

fn may_watch(_: &mcp_runtime::resource::Subscription, _: &Context) -> bool {
    true
}

#[mcp_prompt]
fn greet(name: String) -> String {
    name
}

fn server() -> mcp_runtime::Server {
    let dynamic = ToolDef::builder("dynamic")
        .input_schema(json!({
            "type": "object",
            "properties": {
                "unique": { "type": "array", "uniqueItems": true },
                "points": { "type": "array", "items": { "type": "object", "properties": { "x": { "default": 0 } } } }
            }
        }))
        .handler(|_: ToolCall| async { "" });
    mcp_runtime::server!()
        .tool::<echo>()
        .tool::<take>()
        .tool::<exact>()
        .resource::<note>()
        .prompt::<greet>()
        .add(dynamic)
        .with_handle(drop)
        .build()
        .expect("a server")
}

/// As many copies of an item as fit, with commas.
fn list(item: impl Fn(usize) -> String, bytes: usize) -> String {
    let mut text = item(0);
    let mut n = 1;
    while text.len() < bytes {
        text.push(',');
        text.push_str(&item(n));
        n += 1;
    }
    text
}

/// The params of a call, without `_meta`.
fn call(tool: &str, arguments: &str) -> (&'static str, String) {
    ("tools/call", format!(r#""name":"{tool}","arguments":{{{arguments}}}"#))
}

/// Requests of about this size, by name; the first one is the measure.
fn shapes(bytes: usize) -> Vec<(&'static str, (&'static str, String))> {
    let a = |n: usize| "a".repeat(n);
    let take = |arguments: String| call("take", &arguments);
    let deep = bytes / 2;
    vec![
        ("echo", call("echo", &format!(r#""text":"{}""#, a(bytes)))),
        ("a bogus request state", {
            let arguments = list(
                |n| format!(r#"{{"b{n}":{{"z":1.50,"y":"\u0061"}},"a":[]}}"#),
                bytes - (64 << 10).min(bytes / 2),
            );
            let (method, params) = take(format!(r#""any":[{arguments}]"#));
            (method, format!(r#"{params},"requestState":"{}""#, a((64 << 10).min(bytes / 2))))
        }),
        (
            "maps with integer keys and a slip",
            take(format!(r#""limit":"1","maps":[{}]"#, list(|n| format!(r#"{{"{n}":1}}"#), bytes))),
        ),
        (
            "a map with many keys and a slip",
            take(format!(r#""limit":"1","map":{{{}}}"#, list(|n| format!(r#""k{n}":1"#), bytes))),
        ),
        ("numbers out of range", take(format!(r#""rows":[{}]"#, list(|_| r#"{"limit":0}"#.into(), bytes)))),
        ("numbers as strings", take(format!(r#""numbers":[{}]"#, list(|_| "\"1\"".into(), bytes)))),
        ("numbers of the wrong type", take(format!(r#""numbers":[{}]"#, list(|_| "[]".into(), bytes)))),
        ("deep arrays", take(format!(r#""any":{}{}"#, "[".repeat(deep), "]".repeat(deep)))),
        (
            "deep objects that are ignored",
            take(format!(r#""other":{}1{}"#, "{\"a\":".repeat(bytes / 6), "}".repeat(bytes / 6))),
        ),
        ("unknown keys", call("exact", &list(|n| format!(r#""frist_name{n}":1"#), bytes))),
        ("duplicate keys", take(list(|_| r#""limit":1"#.into(), bytes))),
        ("escaped keys", take(format!(r#""any":{{{}}}"#, list(|n| format!(r#""\u0061{n}":1"#), bytes)))),
        (
            "tagged enums",
            take(format!(r#""shapes":[{}]"#, list(|_| r#"{"kind":"square","side":1}"#.into(), bytes))),
        ),
        (
            "tagged enums with a slip",
            take(format!(r#""shapes":[{}]"#, list(|_| r#"{"kind":"square","side":"1"}"#.into(), bytes))),
        ),
        (
            "tagged enums of no variant",
            take(format!(r#""shapes":[{}]"#, list(|_| r#"{"kind":"sqare"}"#.into(), bytes))),
        ),
        (
            "a set of objects",
            take(format!(r#""set":[{}]"#, list(|n| format!(r#"{{"kind":"square","side":{n}}}"#), bytes))),
        ),
        ("a long text with a pattern", take(format!(r#""text":"{}""#, a(bytes)))),
        (
            "a long text in a list with a pattern",
            take(format!(r#""rows":[{{"limit":1,"text":"{}"}}]"#, a(bytes))),
        ),
        ("a long text that is not a choice", take(format!(r#""choice":"{}""#, a(bytes)))),
        (
            "a bad value at the end of a list",
            take(format!(
                r#""ids":[{},"x"]"#,
                list(|_| "\"67e55044-10b1-426f-9247-bb680e5fe0c8\"".into(), bytes)
            )),
        ),
        ("JSON in a string", take(format!(r#""numbers":"[{}]""#, list(|_| "1".into(), bytes)))),
        (
            "unique objects",
            call("dynamic", &format!(r#""unique":[{}]"#, list(|n| format!(r#"{{"a":{n}}}"#), bytes))),
        ),
        ("absent members", call("dynamic", &format!(r#""points":[{}]"#, list(|_| "{}".into(), bytes)))),
        ("a long cursor", ("tools/list", format!(r#""cursor":"{}""#, a(bytes)))),
        ("a long name", call(&a(bytes), "")),
        ("a long URI", ("resources/read", format!(r#""uri":"notes://{}""#, "a/".repeat(bytes / 2)))),
        (
            "a long query",
            ("resources/read", format!(r#""uri":"notes://a/b?{}""#, "page=1&".repeat(bytes / 7))),
        ),
        (
            "many prompt arguments",
            (
                "prompts/get",
                format!(r#""name":"greet","arguments":{{{}}}"#, list(|n| format!(r#""n{n}":"""#), bytes)),
            ),
        ),
        (
            "a long completion",
            (
                "completion/complete",
                format!(
                    r#""ref":{{"type":"ref/prompt","name":"greet"}},"argument":{{"name":"name","value":"{}"}}"#,
                    a(bytes)
                ),
            ),
        ),
    ]
}

fn cpu_time() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

/// The line of a request.
fn request_line(method: &str, params: &str, more_meta: &str) -> String {
    let meta = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{{{params},\"_meta\":{{{meta}{more_meta}}}}}}}\n"
    )
}

/// Milliseconds of CPU until the request is answered.
async fn cost(client: &mut LineConnection, method: &str, params: &str, more_meta: &str) -> f64 {
    let line = request_line(method, params, more_meta);
    let start = cpu_time();
    client.write(line.as_bytes()).await;
    let reply = client.message().await;
    let spent = cpu_time() - start;
    assert!(reply["jsonrpc"] == "2.0", "{reply}");
    spent
}

/// The requests that cost more than `factor` times the echo of their size.
async fn offenders(bytes: usize, factor: f64, rounds: usize) -> Vec<String> {
    let server = server();
    let mut costs: Vec<(&str, f64)> = Vec::new();
    for (name, (method, params)) in shapes(bytes) {
        let mut least = f64::INFINITY;
        for _ in 0..rounds {
            let mut client = LineConnection::serve(&server, 1 << 16);
            least = least.min(cost(&mut client, method, &params, "").await);
        }
        costs.push((name, least));
    }
    // a subscription to many resources, with much `_meta`
    let uris = list(|n| format!("\"notes://{n}/x\""), (bytes / 4).min(16 << 10));
    let params = format!(r#""notifications":{{"resourceSubscriptions":[{uris}]}}"#);
    let more = format!(r#","x":"{}""#, "a".repeat(bytes - uris.len()));
    let mut client = LineConnection::serve(&server, 1 << 16);
    costs.push((
        "a subscription to many resources",
        cost(&mut client, "subscriptions/listen", &params, &more).await,
    ));
    let echo = costs.first().map_or(0.0, |(_, cost)| *cost);
    let over = |(name, cost): &(&str, f64)| {
        let line = format!("{name}: {cost:.1} ms, {:.1} times an echo of {echo:.1} ms", cost / echo);
        if std::env::var_os("COSTS").is_some() {
            eprintln!("{line}");
        }
        (*cost > factor * echo).then_some(line)
    };
    costs.iter().filter_map(over).collect()
}

#[tokio::test]
async fn arguments_too_long_to_be_repaired_are_reported_at_the_first_wrong_value() {
    let rows = |wrong: &str| {
        list(|n| if n % 1000 == 7 { wrong.to_owned() } else { r#"{"limit":1}"#.to_owned() }, 1 << 20)
    };
    for (wrong, error) in [
        (r#"{"limit":0}"#, "rows[7].limit: 0 is less than the minimum of 1"),
        (r#"{"limit":"2"}"#, "rows[7].limit: invalid type: string \"2\", expected u32"),
        ("{}", "rows[7].limit: is missing (an integer)"),
    ] {
        let mut client = LineConnection::serve(&server(), 1 << 16);
        let (method, params) = call("take", &format!(r#""rows":[{}]"#, rows(wrong)));
        client.write(request_line(method, &params, "").as_bytes()).await;
        let reply = client.message().await;
        let report = text_of(&reply);
        assert!(report.contains(error) && report.len() < 20_000, "{error}: {report}");
    }
}

/// In a debug build, with a generous factor: what is more than linear costs hundreds of times as much.
#[tokio::test]
async fn no_shape_of_a_request_costs_many_times_an_echo_of_its_size() {
    let found = offenders(128 << 10, 100.0, 3).await;
    assert!(found.is_empty(), "{found:#?}");
}

#[tokio::test]
#[ignore = "measures CPU time: run it with `--release`"]
async fn soak_no_request_of_4_mib_costs_20_times_an_echo() {
    let found = offenders((4 << 20) - (8 << 10), 20.0, 3).await;
    assert!(found.is_empty(), "{found:#?}");
}
