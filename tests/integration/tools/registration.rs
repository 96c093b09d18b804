//! What is registered under which name: duplicates, services, mounts, discovery.

use std::{process::Command, sync::atomic::AtomicU32};

use mcp_runtime::resource::ListedResource;

use crate::prelude::*;

mod one {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    pub(super) fn same() -> &'static str {
        "one"
    }
}

mod two {
    use mcp_runtime::prelude::*;

    #[mcp_tool(name = "same")]
    pub(super) fn other() -> &'static str {
        "two"
    }
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

#[test]
fn duplicate_tool_names_are_a_build_error() {
    let named = mcp_runtime::server!().tool::<one::same>().tool::<two::other>();
    let discovered = mcp_runtime::server!()
        .discover_in(concat!(module_path!(), "::one"))
        .discover_in(concat!(module_path!(), "::two"));
    for builder in [named, discovered] {
        let error = build_error(builder);
        assert!(error.contains("two tools are `same`"), "{error}");
        assert_eq!(error.matches("registration.rs:").count(), 2, "{error}");
        let lines: Vec<_> = error.lines().filter(|line| line.contains("-->")).collect();
        assert_ne!(lines[0], lines[1], "{error}");
    }
}

#[test]
fn registering_one_tool_twice_is_a_build_error() {
    let module = concat!(module_path!(), "::one");
    for twice in [
        mcp_runtime::server!().tool::<one::same>().tool::<one::same>(),
        mcp_runtime::server!().discover_in(module).tool::<one::same>(),
    ] {
        let error = build_error(twice);
        assert!(error.contains("tool `same` is registered twice\nremove `.tool::<same>()`"), "{error}");
        assert_eq!(error.matches("registration.rs:").count(), 1, "{error}");
    }
    // discovery leaves out what is registered
    assert!(mcp_runtime::server!().tool::<one::same>().discover_in(module).build().is_ok());
}

#[test]
fn every_problem_is_reported_at_once() {
    struct Missing;
    #[mcp_tool]
    fn needs(_m: &Missing) {}
    let dynamic = ToolDef::builder("same").handler(|_| async {});
    let error = build_error(
        mcp_runtime::server!()
            .tool::<one::same>()
            .add(dynamic)
            .tool::<needs>()
            .discover_from(["no-such-crate"]),
    );
    assert!(error.contains("two tools are `same`") && error.contains("made at run time"), "{error}");
    assert!(error.contains("tool `needs` takes `&Missing`"), "{error}");
    assert!(error.contains("no annotated function of a crate `no_such_crate`"), "{error}");
}

#[test]
fn names_are_case_sensitive() {
    #[mcp_tool(name = "SAME")]
    fn shouted() {}
    assert!(mcp_runtime::server!().tool::<one::same>().tool::<shouted>().build().is_ok());
}

struct Weather {
    station: &'static str,
}

#[mcp_service]
impl Weather {
    /// Tells tomorrow's weather.
    #[mcp_tool(read_only)]
    async fn forecast(&self, city: String, #[mcp(default = 1)] days: u8) -> String {
        tokio::task::yield_now().await;
        format!("{} {city} {days}", self.station)
    }

    #[mcp_tool]
    fn station(&self) -> &'static str {
        self.station
    }

    #[mcp_resource(uri = "weather://now/{city}")]
    fn now(&self, city: String) -> String {
        format!("{} {city}", self.station)
    }

    #[mcp_prompt]
    fn ask(&self, city: String) -> String {
        format!("{} {city}", self.station)
    }

    fn quiet(&self) -> usize {
        self.station.len()
    }
}

#[tokio::test]
async fn a_service_registers_its_methods() {
    let weather = Weather { station: "main" };
    assert_eq!(weather.quiet(), 4);
    let server = serve(mcp_runtime::server!().service(weather));
    let forecast = &server.list_tools().await[0];
    assert_eq!(forecast["description"], "Tells tomorrow's weather.");
    assert_eq!(forecast["inputSchema"]["required"], json!(["city"]));
    assert_eq!(forecast["annotations"], json!({ "readOnlyHint": true }));
    server.call("forecast", json!({ "city": "Bonn" })).await.expect_text("main Bonn 1");
    server.read("weather://now/Bonn").await.expect_text("main Bonn");
    server.prompt("ask", json!({ "city": "Bonn" })).await.expect_text("main Bonn");
}

#[tokio::test]
async fn a_service_can_be_registered_twice_under_prefixes() {
    let server = serve(
        mcp_runtime::server!()
            .service(Weather { station: "main" })
            .service_as("eu", Weather { station: "brussels" }),
    );
    assert_eq!(names(&server.list_tools().await), ["forecast", "station", "eu_forecast", "eu_station"]);
    server.call("station", json!({})).await.expect_text("main");
    server.call("eu_station", json!({})).await.expect_text("brussels");
    server.call("eu_forecast", json!({ "city": "x" })).await.expect_text("brussels x 1");
    server.read("weather://eu/now/Bonn").await.expect_text("brussels Bonn");
    server.read("weather://now/Bonn").await.expect_text("main Bonn");
    server.prompt("eu_ask", json!({ "city": "x" })).await.expect_text("brussels x");
    server.call("eu_forecast", json!({})).await.expect_failure("invalid arguments for tool `eu_forecast`");
}

#[test]
fn a_service_registered_twice_without_prefix_is_a_build_error() {
    let twice = mcp_runtime::server!().service(Weather { station: "a" }).service(Weather { station: "b" });
    let error = build_error(twice);
    assert!(error.contains("Weather` is registered twice\ngive one of them a prefix"), "{error}");
    assert_eq!(error.matches("-->").count(), 1, "{error}");
    let clash = ToolDef::builder("eu_station").handler(|_| async {});
    let clash = mcp_runtime::server!().service_as("eu", Weather { station: "a" }).add(clash);
    assert!(build_error(clash).contains("two tools are `eu_station`"));
}

/// Its methods are in two blocks.
struct Counter(AtomicU32);

#[mcp_service]
impl Counter {
    #[mcp_tool]
    fn count(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

#[mcp_service]
impl Counter {
    #[mcp_tool]
    fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    #[mcp_resource(uri = "count://{digit}", list = Self::digits)]
    fn digit(&self, digit: u32) -> bool {
        self.0.load(Ordering::Relaxed).to_string().contains(&digit.to_string())
    }

    fn digits(&self) -> Vec<ListedResource> {
        vec![format!("count://{}", self.0.load(Ordering::Relaxed)).into()]
    }
}

#[tokio::test]
async fn a_service_has_the_methods_of_all_its_annotated_blocks_and_may_be_shared_with_the_program() {
    let counter = Arc::new(Counter(AtomicU32::new(7)));
    let builder = mcp_runtime::server!().service(counter.clone()).service_as("same", counter.clone());
    let server = serve(builder);
    assert_eq!(names(&server.list_tools().await), ["count", "reset", "same_count", "same_reset"]);
    server.call("count", json!({})).await.expect_text("7");
    server.read("count://8").await.expect_text("true");
    server.call("same_count", json!({})).await.expect_text("8");
    server.call("reset", json!({})).await.expect_text("");
    assert_eq!(counter.0.load(Ordering::Relaxed), 0);
    counter.0.store(40, Ordering::Relaxed);
    assert_eq!(server.list_resources().await[0]["uri"], "count://40");
}

#[test]
fn a_value_without_annotated_block_is_not_a_service() {
    struct Plain;
    for error in [
        build_error(mcp_runtime::server!().service(Plain)),
        build_error(mcp_runtime::server!().service_as("x", Box::new(Counter(AtomicU32::new(0))))),
    ] {
        assert!(error.contains("` is not a service\nput `#[mcp_service]` on the `impl`"), "{error}");
    }
}

trait Clock: Send + Sync {
    fn year(&self) -> u32;
}

struct Fixed;

impl Clock for Fixed {
    fn year(&self) -> u32 {
        1984
    }
}

#[tokio::test]
async fn missing_state_that_is_registered_as_another_type_is_reported_with_the_fix() {
    #[mcp_tool]
    fn pointer(name: &Arc<Name>) -> &'static str {
        name.0
    }
    #[mcp_tool]
    fn year(clock: &dyn Clock) -> u32 {
        clock.year()
    }
    let error = build_error(mcp_runtime::server!().tool::<pointer>().state(Name("a")));
    assert!(error.contains("`Name` is registered: write `&Name`, or register `Arc<Name>`"), "{error}");
    let error = build_error(mcp_runtime::server!().tool::<pointer>());
    assert!(!error.contains("is registered: ") && error.contains("add `.state(..)`"), "{error}");
    let error = build_error(mcp_runtime::server!().tool::<year>().state(Arc::new(Fixed)));
    assert!(error.contains("`let value: Arc<dyn Clock> = Arc::new(..);`, then `.state(value)`"), "{error}");
    let clock: Arc<dyn Clock> = Arc::new(Fixed);
    let builder = mcp_runtime::server!().tool::<pointer>().tool::<year>().state(clock);
    let server = serve(builder.state(Arc::new(Name("b"))));
    server.call("pointer", json!({})).await.expect_text("b");
    server.call("year", json!({})).await.expect_text("1984");
}

struct Name(&'static str);

#[mcp_tool]
fn who(name: &Name) -> &'static str {
    name.0
}

#[mcp_resource(uri = "who://am/i")]
fn who_am_i(name: &Name) -> &'static str {
    name.0
}

#[tokio::test]
async fn mounted_servers_keep_their_state() {
    let part = |name| mcp_runtime::server!().tool::<who>().resource::<who_am_i>().state(Name(name));
    let nested = mcp_runtime::server!().mount("deep", part("nested"));
    let server = serve(part("outer").mount("a", part("inner")).mount("b", nested));
    assert_eq!(names(&server.list_tools().await), ["who", "a_who", "b_deep_who"]);
    server.call("who", json!({})).await.expect_text("outer");
    server.call("a_who", json!({})).await.expect_text("inner");
    server.call("b_deep_who", json!({})).await.expect_text("nested");
    server.read("who://am/i").await.expect_text("outer");
    server.read("who://a/am/i").await.expect_text("inner");
    server.read("who://b_deep/am/i").await.expect_text("nested");
    let plain = serve(mcp_runtime::server!().mount("", part("plain")));
    plain.call("who", json!({})).await.expect_text("plain");
    let error = build_error(part("x").mount("", part("y")));
    assert!(error.contains("two tools are `who`"), "{error}");
    let stateless =
        mcp_runtime::server!().mount("p", mcp_runtime::server!().tool::<who>()).state(Name("outer"));
    assert!(build_error(stateless).contains("`p_who` takes `&Name`"));
}

#[test]
fn a_prefix_that_makes_an_invalid_name_is_a_build_error() {
    let error = build_error(mcp_runtime::server!().service_as("e u", Weather { station: "a" }));
    assert!(error.contains("`e u_forecast` is not a tool name"), "{error}");
}

/// The marker of a function that is named like a type of every module would hide that type.
mod named_like_primitives {
    use mcp_runtime::prelude::*;

    #[mcp_tool]
    fn str(text: String, n: u32) -> String {
        format!("{text}{n}")
    }

    #[mcp_tool]
    fn u32(text: String) -> u32 {
        text.len() as u32
    }
}

#[tokio::test]
async fn functions_may_be_named_like_primitive_types() {
    let module = concat!(module_path!(), "::named_like_primitives");
    let server = serve(mcp_runtime::server!().discover_in(module));
    server.call("str", json!({ "text": "a", "n": 1 })).await.expect_text("a1");
    server.call("u32", json!({ "text": "abc" })).await.expect_text("3");
}

#[tokio::test]
async fn unregistered_items_are_reported_once() {
    let mut server = LineConnection::spawn(&mut Command::new(env!("CARGO_BIN_EXE_unregistered")));
    server.reply_to(&ping(1)).await;
    server.close_input().await;
    let log = server.exit().await.1;
    let lines: Vec<_> = log.lines().filter(|line| line.contains("no server offers it")).collect();
    assert_eq!(lines.len(), 3, "{log}");
    assert!(lines[0].contains("or mark it `unregistered`") && lines[0].contains("unregistered.rs:"), "{log}");
    // only tools have the option
    assert!(lines[1].contains("`unregistered_prompt`") && lines[1].ends_with("; register it"), "{log}");
    assert!(lines[2].contains("::Unregistered` at ") && lines[2].contains("with `.service(..)`"), "{log}");
    assert!(!log.contains("left_out"), "{log}");
}
