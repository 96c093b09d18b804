//! Rules over several arguments: what they take, when they run, and how they are reported.

use crate::prelude::*;

/// What a rule compares with, and how often functions were entered.
#[derive(Default)]
struct Settings {
    most: usize,
    entered: AtomicUsize,
}

fn settings(most: usize) -> Arc<Settings> {
    Arc::new(Settings { most, entered: AtomicUsize::new(0) })
}

/// The end is not before the start.
///
/// More is said here.
#[mcp_rule]
fn check_dates(from: &chrono::NaiveDate, until: &chrono::NaiveDate) -> Result<(), String> {
    if from <= until { Ok(()) } else { Err(format!("{until} is before {from}")) }
}

#[mcp_rule]
async fn check_guests(
    guests: &[String],
    note: Option<&str>,
    settings: &Settings,
    ctx: &Context,
) -> Result<(), ToolError> {
    tokio::task::yield_now().await;
    if note == Some("broken") {
        return Err(ToolError::private("the database is down"));
    }
    let most = settings.most + usize::from(ctx.caller().is_some());
    if guests.len() > most {
        return Err(ToolError::new(format!("{} guests, and at most {most} fit", guests.len())));
    }
    Ok(())
}

#[mcp_tool(validate(check_dates, check_guests))]
fn book(
    #[mcp(name = "start")] from: chrono::NaiveDate,
    until: chrono::NaiveDate,
    guests: Vec<String>,
    note: Option<String>,
    #[mcp(range(1..))] rooms: u8,
    settings: &Settings,
) -> String {
    settings.entered.fetch_add(1, Ordering::SeqCst);
    format!("{from} {until} {guests:?} {note:?} {rooms}")
}

#[tokio::test]
async fn a_rule_takes_arguments_by_name_and_state_by_type_and_is_reported_with_the_rest() {
    let state = settings(1);
    let server = serve(mcp_runtime::server!().tool::<book>().state(state.clone()));
    let good = json!({ "start": "2026-01-01", "until": "2026-01-02", "guests": ["a"], "rooms": 1 });
    let reply = server.call("book", good.clone()).await;
    reply.expect_text("2026-01-01 2026-01-02 [\"a\"] None 1");
    assert_eq!(state.entered.load(Ordering::SeqCst), 1);

    let text = failure(
        &server
            .call(
                "book",
                json!({ "start": "2026-01-03", "until": "2026-01-02", "guests": ["a", "b"], "rooms": 1 }),
            )
            .await,
    );
    assert_eq!(
        text,
        "invalid arguments for tool `book`:\n\
         - start, until: 2026-01-02 is before 2026-01-03\n\
         - guests, note: 2 guests, and at most 1 fit\n\
         expected: book(start: date, until: date, guests: string[], rooms: integer 1..=255, note?: string)\n\
         rule: The end is not before the start."
    );
    // arguments that are repaired, and what is invalid besides; a rule with an invalid argument does not run
    let text = failure(
        &server
            .call(
                "book",
                json!({ "start": "2026-01-03", "until": "2026-01-02", "guests": "[\"a\"]", "rooms": 0 }),
            )
            .await,
    );
    assert!(text.contains("- rooms: 0 is less") && text.contains("- start, until: "), "{text}");
    assert!(!text.contains("at most"), "{text}");
    let text = failure(
        &server
            .call(
                "book",
                json!({ "start": "soon", "until": "2026-01-02", "guests": ["a", "b"], "rooms": "1" }),
            )
            .await,
    );
    assert!(text.contains("- start: ") && text.contains("- guests, note: 2 guests"), "{text}");
    assert_eq!(text.matches("\n- ").count(), 2, "{text}");

    // what a rule fails with privately stays private
    let mut broken = good.clone();
    broken["note"] = "broken".into();
    assert_eq!(failure(&server.call("book", broken).await), "tool 'book' failed");
    assert_eq!(state.entered.load(Ordering::SeqCst), 1, "the function ran");
    // it is a function like any other
    check_dates(&chrono::NaiveDate::MIN, &chrono::NaiveDate::MAX).unwrap();
}

/// The words differ.
#[mcp_rule]
fn check_words(one: &str, other: &str) -> Result<(), &'static str> {
    if one == other { Err("the words are equal") } else { Ok(()) }
}

#[tokio::test]
async fn rules_run_before_every_kind_of_function() {
    #[mcp_tool(validate = check_words)]
    async fn awaits(one: String, other: String, settings: &Settings) -> String {
        settings.entered.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        one + &other
    }
    #[mcp_tool(validate = check_words)]
    async fn alone(one: String, other: String) -> String {
        one + &other
    }
    #[mcp_tool(validate = check_words, blocking)]
    fn blocks(one: String, other: String) -> String {
        one + &other
    }
    #[mcp_tool(validate = check_words, task)]
    async fn tasked(one: String, other: String) -> String {
        one + &other
    }
    #[mcp_tool(validate = check_words, task, blocking)]
    fn blocking_task(one: String, other: String) -> String {
        one + &other
    }
    struct Shop;
    #[mcp_service]
    impl Shop {
        #[mcp_tool(validate = check_words)]
        fn method(&self, one: String, other: String) -> String {
            one + &other
        }
    }
    let state = settings(0);
    let builder = mcp_runtime::server!().tool::<awaits>().tool::<alone>().tool::<blocks>().tool::<tasked>();
    let server = serve(builder.tool::<blocking_task>().service(Shop).state(state.clone()));
    for name in ["awaits", "alone", "blocks", "tasked", "blocking_task", "method"] {
        let text = failure(&server.call(name, json!({ "one": "a", "other": "a" })).await);
        assert!(text.contains("- one, other: the words are equal"), "{text}");
        server.call(name, json!({ "one": "a", "other": "b" })).await.expect_text("ab");
    }
    assert_eq!(state.entered.load(Ordering::SeqCst), 1);
    for name in ["tasked", "blocking_task"] {
        let refused = server.call_task(name, json!({ "one": "a", "other": "a" })).await;
        assert!(failure(&refused).contains("the words are equal"), "{refused}");
        assert_eq!(refused.value().get("taskId"), None);
        server.call_task(name, json!({ "one": "a", "other": "b" })).await.expect_text("ab");
    }
}

#[tokio::test]
async fn prompts_and_resources_have_rules_as_well() {
    #[mcp_rule]
    fn check_range(from: &u32, until: &Option<u32>) -> Result<(), String> {
        match until {
            Some(until) if until < from => Err(format!("{until} is less than {from}")),
            _ => Ok(()),
        }
    }
    #[mcp_prompt(validate = check_range)]
    fn count(from: u32, until: Option<u32>, name: u8) -> String {
        format!("{from} {until:?} {name}")
    }
    #[mcp_resource(uri = "range://{from}{?until}", validate = check_range)]
    fn range(from: u32, until: Option<u32>) -> String {
        format!("{from} {until:?}")
    }
    let server = serve(mcp_runtime::server!().prompt::<count>().resource::<range>());
    server.prompt("count", json!({ "from": "1", "until": "2", "name": "3" })).await.expect_ok();
    let reply = server.prompt("count", json!({ "from": "3", "until": "2", "name": "x" })).await;
    let text = refusal(&reply).1;
    assert!(
        text.contains("`name`: expected an integer") && text.ends_with("; `from`, `until`: 2 is less than 3"),
        "{text}"
    );
    server.read("range://1?until=2").await.expect_ok();
    let reply = server.read("range://3?until=2").await;
    let (code, text) = refusal(&reply);
    assert!(code == -32602 && text.ends_with("`from`, `until`: 2 is less than 3"), "{code} {text}");
}

#[test]
fn what_a_rule_cannot_take_is_an_error_of_the_build() {
    #[mcp_rule]
    fn of_numbers(count: &u32) -> Result<(), String> {
        Err(count.to_string())
    }
    #[mcp_rule]
    fn of_nothing(cuont: &u8) -> Result<(), String> {
        Err(cuont.to_string())
    }
    #[mcp_rule]
    fn of_state(count: &u8, settings: &Settings) -> Result<(), String> {
        Err(format!("{count} {}", settings.most))
    }
    #[mcp_rule]
    fn of_misspelt(count: &u8, totl: &i64) -> Result<(), String> {
        Err(format!("{count} {totl}"))
    }
    #[mcp_tool(validate(of_numbers, of_nothing, of_state, of_misspelt))]
    fn counted(count: u8, total: i64) -> i64 {
        total + i64::from(count)
    }
    let error = mcp_runtime::server!().tool::<counted>().build().unwrap_err().to_string();
    for part in [
        "tool `counted`: the rule `of_numbers` takes `count` as `u32`, and the argument `count` has another type",
        "tool `counted`: the rule `of_nothing` takes none of the arguments\ndid you mean `count`?",
        "the `validate` function of tool `counted` takes `&Settings`, and no state of that type is registered",
        "no argument is called `totl`; did you mean `total`?\nif the server provides it, add `.state(..)`",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}
