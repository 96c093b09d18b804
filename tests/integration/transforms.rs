//! Changes of items as they are registered: the same functions as several tools that are configured differently.

use mcp_runtime::{
    layer::{LayeredCall, Next},
    transform::Transformed,
};

use crate::prelude::*;

/// The weather in a city.
#[mcp_tool]
fn forecast(
    /// A part of the world
    region: String,
    /// Where
    city: String,
    #[mcp(default = 1, range(1..=7))] days: u8,
    #[mcp(one_of("metric", "imperial"))] units: Option<String>,
) -> String {
    format!("{city} of {region}, {days} days, {units:?}")
}

/// Says who it is.
#[mcp_tool(strict)]
fn about(name: Option<String>) -> String {
    format!("{name:?}")
}

/// Describe the weather.
#[mcp_prompt]
fn describe_weather(
    /// Where
    city: String,
    #[mcp(complete("short", "long"))] style: Option<String>,
    region: String,
) -> String {
    format!("{city} of {region} in {style:?}")
}

/// What is known.
#[mcp_resource(uri = "weather://facts/{id}")]
fn facts(id: u8) -> String {
    id.to_string()
}

#[tokio::test]
async fn one_module_is_many_tools_whose_words_and_arguments_differ() {
    let of_region = |region: &'static str| {
        let items = mcp_runtime::server!().tool::<forecast>().tool::<about>().prompt::<describe_weather>();
        items.resource::<facts>().transform(move |item| {
            item.fix("region", region).only("forecast", |item| {
                item.title(format!("Weather of {region}"))
                    .describe(format!("The weather in a city of {region}."))
                    .describe_argument("city", format!("A city of {region}"))
                    .default("days", 3)
                    .hide("units")
                    .hints(|hints| hints.read_only = Some(true))
                    .meta("region", region)
                    .icon("https://example.com/icon.png")
            })
        })
    };
    let builder = mcp_runtime::server!().mount("eu", of_region("Europe")).mount("as", of_region("Asia"));
    let server = serve(builder.tool::<forecast>());
    let tools = server.list_tools().await;
    let eu = named(&tools, "eu_forecast");
    assert_eq!(
        *eu,
        json!({
            "name": "eu_forecast",
            "title": "Weather of Europe",
            "description": "The weather in a city of Europe.",
            "icons": [{ "src": "https://example.com/icon.png" }],
            "inputSchema": {
                "type": "object",
                "properties": {
                    "city": { "type": "string", "description": "A city of Europe" },
                    "days": { "type": "integer", "minimum": 1, "maximum": 7, "default": 3 }
                },
                "required": ["city"]
            },
            "annotations": { "readOnlyHint": true },
            "_meta": { "region": "Europe" }
        })
    );
    assert_eq!(named(&tools, "as_forecast")["title"], "Weather of Asia");
    assert_eq!(named(&tools, "forecast")["inputSchema"]["required"], json!(["region", "city"]));
    // what is fixed or hidden is out of reach
    let reply =
        server.call("eu_forecast", json!({ "city": "Bonn", "region": "Asia", "units": "metric" })).await;
    reply.expect_text("Bonn of Europe, 3 days, None");
    server
        .call("as_forecast", json!({ "city": "Goa", "days": 2 }))
        .await
        .expect_text("Goa of Asia, 2 days, None");
    server
        .call("as_forecast", json!({ "city": "Goa", "days": null }))
        .await
        .expect_text("Goa of Asia, 3 days, None");
    // reports are about what clients see
    let text = failure(&server.call("eu_forecast", json!({ "days": 9, "regoin": "x" })).await);
    assert_eq!(
        text,
        "invalid arguments for tool `eu_forecast`:\n\
         - city: is missing (a string)\n\
         - days: 9 is greater than the maximum of 7\n\
         - unknown argument `regoin`\n\
         expected: eu_forecast(city: string, days?: integer 1..=7 = 3)"
    );
    let reply = server.prompt("eu_describe_weather", json!({ "city": "Bonn", "region": "Asia" })).await;
    assert_eq!(reply.text(), "Bonn of Europe in None");
    let prompts = server.list_prompts().await;
    let names: Vec<_> = named(&prompts, "eu_describe_weather")["arguments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["name"].clone())
        .collect();
    assert_eq!(names, ["city", "style"]);
    // older revisions see the same
    let server = server.legacy(Revision::V2025_03_26);
    server.call("eu_forecast", json!({ "city": "Bonn" })).await.expect_text("Bonn of Europe, 3 days, None");
}

struct Weather {
    source: &'static str,
}

#[mcp_service]
impl Weather {
    /// The weather in a city.
    #[mcp_tool]
    fn now(&self, region: String, city: String) -> String {
        format!("{city} of {region} by {}", self.source)
    }

    /// What is served.
    #[mcp_tool]
    fn sources(&self) -> String {
        self.source.to_owned()
    }
}

#[tokio::test]
async fn a_service_is_changed_before_its_mount_and_the_whole_server_last() {
    let inner = mcp_runtime::server!()
        .service_as(
            "north",
            Transformed::service(Weather { source: "a" }, |item| item.describe("one").fix("region", "N")),
        )
        .service(Arc::new(Weather { source: "b" }))
        .transform(|item| {
            let text = format!("two: {} {} {:?}", item.prefix(), item.name(), item.kind());
            item.describe(text).title("inner")
        });
    let late = ToolDef::builder("late").handler(|_: ToolCall| async { "late" });
    let builder = mcp_runtime::server!().mount("m", inner).with_handle(drop).transform(|item| {
        let name = item.name().replace("now", "current");
        item.rename(name).meta("outer", true)
    });
    let server = builder.build().unwrap();
    server.handle().add(late).unwrap();
    let server = TestServer::of(&server);
    let tools = server.list_tools().await;
    let current = named(&tools, "m_north_current");
    assert_eq!(current["description"], "two: m_north now Tool");
    assert_eq!((&current["title"], &current["_meta"]["outer"]), (&json!("inner"), &json!(true)));
    assert_eq!(named(&tools, "late")["_meta"]["outer"], true, "what is added later is changed as well");
    server.call("m_north_current", json!({ "city": "Oslo" })).await.expect_text("Oslo of N by a");
    server.call("m_current", json!({ "city": "Oslo", "region": "x" })).await.expect_text("Oslo of x by b");
    server.call("m_north_now", json!({ "city": "Oslo" })).await.expect_code(-32602);
    server.call("m_north_sources", json!({})).await.expect_text("a");
}

#[tokio::test]
async fn strict_tools_and_tools_made_at_run_time_keep_what_is_hidden_out_of_reach() {
    let made = ToolDef::builder("made")
        .input_schema(json!({
            "type": "object",
            "properties": { "tenant": { "type": "string" }, "n": { "type": "integer" }, "id": { "type": "integer" } },
            "required": ["tenant", "n"]
        }))
        .handler(|call: ToolCall| async move { call.arguments.to_string() });
    let builder = mcp_runtime::server!().tool::<about>().add(made).transform(|item| {
        item.fix("tenant", "acme").fix("name", "fixed").only("made", |item| item.default("id", u64::MAX))
    });
    let server = serve(builder);
    let text = failure(&server.call("about", json!({ "name": "x" })).await);
    assert_eq!(text, "invalid arguments for tool `about`: unknown argument `name`");
    server.call("about", json!({})).await.expect_text("Some(\"fixed\")");
    let reply = server.call("made", json!({ "tenant": "other", "n": "3" })).await;
    assert_eq!(reply.json::<Value>(), json!({ "tenant": "acme", "n": 3, "id": u64::MAX }));
    let text = failure(&server.call("made", json!({ "tenant": "other" })).await);
    assert!(text.contains("n: is missing") && !text.contains("tenant"), "{text}");
}

#[tokio::test]
async fn the_arguments_that_a_mount_gives_come_in_one_order() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = seen.clone();
    let layer = move |call: LayeredCall, next: Next| {
        record.lock().unwrap().push(call.raw_arguments().to_owned());
        async move { next.run(&call).await }
    };
    let given =
        mcp_runtime::server!().tool::<forecast>().layer(layer).transform(|item| item.fix("city", "Bern"));
    let server = TestServer::new(given).expect("a server");
    for _ in 0..20 {
        server.call("forecast", json!({ "region": "Bern", "days": 2, "units": "metric" })).await.expect_ok();
    }
    let seen = seen.lock().unwrap();
    assert!(seen.iter().all(|arguments| *arguments == seen[0]), "{seen:?}");
}

#[test]
fn names_and_values_that_do_not_fit_are_errors_of_the_build() {
    let error = |change: fn(mcp_runtime::transform::ItemChanges) -> mcp_runtime::transform::ItemChanges| {
        let builder = mcp_runtime::server!().tool::<forecast>().tool::<about>().prompt::<describe_weather>();
        builder.transform(change).build().err().map(|error| error.to_string()).unwrap_or_default()
    };
    // another item has it
    assert_eq!(error(|item| item.fix("units", "metric")), "");
    for (found, parts) in [
        (
            error(|item| item.fix("regoin", "x")),
            &["the argument `regoin`", "did you mean `region`?", "transforms.rs"][..],
        ),
        (
            error(|item| item.only("forcast", |item| item.title("x"))),
            &["the item `forcast`", "did you mean `forecast`?"],
        ),
        (
            error(|item| item.fix("units", "miles")),
            &["tool `forecast`", "another value than it takes: units: \"miles\""],
        ),
        (error(|item| item.default("days", 9)), &["days: 9 is greater than the maximum of 7"]),
        (error(|item| item.fix("region", 7)), &["region: 7 is not a string"]),
        (
            error(|item| item.hide("city")),
            &["tool `forecast`: `city` is required", "prompt `describe_weather`: `city` is required"],
        ),
        (error(|item| item.rename("a b")), &["`a b` is not a tool name"]),
        (error(|item| item.rename("same")), &["two tools are `same`"]),
    ] {
        for part in parts {
            assert!(found.contains(part), "{part}: {found}");
        }
    }
}

#[tokio::test]
async fn a_required_description_may_come_from_a_transform() {
    #[mcp_tool]
    fn bare() {}
    let builder = || mcp_runtime::server!().tool::<bare>().lists(|lists| lists.require_descriptions());
    builder().transform(|item| item.describe("Nothing.")).build().unwrap();
    let error = builder().transform(|item| item.title("Bare")).build().unwrap_err().to_string();
    assert!(error.contains("`bare` has no description\nset one with `.describe(..)`"), "{error}");
    let server = serve(mcp_runtime::server!().resource::<facts>().transform(|item| item.title("Facts")));
    assert_eq!(server.list_templates().await[0]["title"], "Facts");
    let reply = server.read("weather://facts/x").await;
    assert_eq!(refusal(&reply).0, -32602);
}
