//! Errors for invalid arguments, which models read: every problem, by path, with suggestions and the signature.

use crate::prelude::*;

#[mcp_type]
#[derive(Debug)]
struct Item {
    #[schemars(range(min = 1))]
    count: i32,
    sku: String,
}

/// Orders things.
#[mcp_tool]
async fn order(
    #[mcp(length(1..=5))] query: String,
    #[mcp(default = 10, range(1..=100))] limit: u32,
    items: Vec<Item>,
    #[mcp(one_of("asc", "desc"))] sort_order: Option<String>,
    urgent: bool,
) -> String {
    format!("{query} {limit} {items:?} {sort_order:?} {urgent}")
}

#[tokio::test]
async fn every_problem_is_reported_at_once() {
    let mut server = serve(mcp_runtime::server!().tool::<order>());
    let sent = json!({
        "querry": "x",
        "limit": 500,
        "items": [{ "count": 1, "sku": "a" }, { "count": 0 }, { "count": "two", "sku": 3 }],
        "sort_order": "dsc",
        "urgent": "maybe"
    });
    let expected = "invalid arguments for tool `order`:\n\
        - items[1].count: 0 is less than the minimum of 1\n\
        - items[1].sku: is missing (a string)\n\
        - items[2].count: \"two\" is not an integer\n\
        - items[2].sku: 3 is not a string\n\
        - limit: 500 is greater than the maximum of 100\n\
        - query: is missing (a string)\n\
        - sort_order: \"dsc\" is not one of \"asc\", \"desc\"; did you mean \"desc\"?\n\
        - urgent: \"maybe\" is not a boolean\n\
        - unknown argument `querry`; did you mean `query`?\n\
        expected: order(query: string 1..=5 chars, items: {count: integer 1.., sku: string}[], urgent: boolean, \
        limit?: integer 1..=100 = 10, sort_order?: \"asc\" | \"desc\")";
    let reply = server.call("order", sent.clone()).await;
    assert_eq!(failure(&reply), expected);
    assert_eq!(reply.value()["content"], json!([{ "type": "text", "text": expected }]));
    assert_eq!(reply.value().get("structuredContent"), None);
    for revision in LEGACY {
        server = server.legacy(revision);
        let reply = server.call("order", sent.clone()).await;
        assert_eq!(
            *reply.value(),
            json!({ "content": [{ "type": "text", "text": expected }], "isError": true }),
            "{revision}"
        );
    }
}

#[tokio::test]
async fn long_reports_are_truncated() {
    let server = serve(mcp_runtime::server!().tool::<take>());
    let mut keys: serde_json::Map<_, _> = (0..10_000).map(|n| (format!("key{n}"), json!(n))).collect();
    keys.insert("small".into(), "x".into());
    for (sent, said, most) in [
        (json!({ "list": vec!["x"; 4_000] }), "- list[0]: \"x\" is not an integer", 20_000),
        (json!(keys), "- small: ", 100_000),
        (json!({ "list": "y".repeat(1_000_000) }), "- list: ", 1_500),
    ] {
        let text = failure(&server.call("take", sent).await);
        assert!(text.len() < most && text.contains(said), "{} bytes: {text}", text.len());
    }
}

/// A type that parses itself, as users write them.
#[derive(Debug, serde::Serialize)]
struct Even;

impl<'de> serde::Deserialize<'de> for Even {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.len().is_multiple_of(2) { Ok(Self) } else { Err(serde::de::Error::custom("an odd length")) }
    }
}

impl schemars::JsonSchema for Even {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Even".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

#[mcp_type]
#[derive(Debug)]
struct Due {
    due_before: Option<chrono::NaiveDate>,
    page: Option<url::Url>,
    even: Option<Even>,
    nested: Option<Box<Due>>,
}

#[mcp_type]
#[derive(Debug)]
#[serde(tag = "op", rename_all = "snake_case")]
enum Plan {
    Schedule { at: chrono::DateTime<chrono::Utc>, who: Vec<uuid::Uuid> },
}

#[mcp_type]
#[derive(Debug)]
enum Action {
    Move { to: Even },
}

#[mcp_type]
#[derive(Debug)]
#[serde(untagged)]
enum Amount {
    Count(u32),
    Of { pieces: u16, due: chrono::NaiveDate },
    Word(Even),
}

/// Takes a value of each type
#[mcp_tool]
fn take(
    filter: Option<Due>,
    ids: Option<Vec<uuid::Uuid>>,
    plan: Option<Plan>,
    action: Option<Action>,
    amount: Option<Amount>,
    amounts: Option<Vec<Amount>>,
    wake: Option<chrono::NaiveTime>,
    start: Option<chrono::NaiveDateTime>,
    bytes: Option<Vec<u8>>,
    small: Option<i32>,
    large: Option<u64>,
    ratio: Option<f32>,
    list: Option<Vec<i16>>,
) -> String {
    format!(
        "{filter:?} {ids:?} {plan:?} {action:?} {amount:?} {amounts:?} {wake:?} {start:?} {bytes:?} {small:?} {large:?} \
         {ratio:?} {list:?}"
    )
}

#[tokio::test]
async fn what_a_type_that_parses_itself_refuses_is_named_by_path_and_value() {
    let server = serve(mcp_runtime::server!().tool::<take>());
    let id = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    for (argument, value, line) in [
        ("filter", json!({ "due_before": "x" }), "filter.due_before: \"x\" is not a date, as in 2026-"),
        (
            "filter",
            json!({ "page": "no url", "due_before": "2024-01-01" }),
            "filter.page: \"no url\" is not a URI, as in ",
        ),
        (
            "filter",
            json!({ "nested": { "nested": { "even": "abc" } } }),
            "filter.nested.nested.even: \"abc\" is not accepted: an odd length",
        ),
        (
            "filter",
            json!({ "even": "abc", "page": "https://a/" }),
            "filter.even: \"abc\" is not accepted: an odd length",
        ),
        ("ids", json!([id, id, "67e5"]), "ids[2]: \"67e5\" is not a UUID"),
        (
            "action",
            json!({ "Move": { "to": "abc" } }),
            "action.Move.to: \"abc\" is not accepted: an odd length",
        ),
        ("plan", json!({ "op": "schedule", "at": "x", "who": [] }), "plan.at: \"x\" is not a date and time"),
        (
            "plan",
            json!({ "op": "schedule", "at": "2024-01-01T00:00:00Z", "who": [id, "x"] }),
            "plan.who[1]: \"x\" is not a UUID",
        ),
        ("amount", json!(5_000_000_000_u64), "amount: 5000000000 is "),
        ("amount", json!(-5), "amount: -5 is "),
        ("amount", json!("abc"), "amount: \"abc\" is not accepted: "),
        ("amount", json!({ "pieces": 70_000, "due": "2026-01-01" }), "amount.pieces: 70000 is "),
        ("amount", json!({ "pieces": 7, "due": "soon" }), "amount.due: \"soon\" is not a date"),
        ("amounts", json!([7, "ab", "abc"]), "amounts[2]: \"abc\" is not accepted: "),
        ("wake", json!("seven"), "wake: \"seven\" is not a time, as in 12:00:00\n"),
        (
            "start",
            json!("2026-07-28"),
            "start: \"2026-07-28\" is not a date and time, as in 2026-07-28T12:00:00\n",
        ),
        (
            "bytes",
            json!("aGVsbG8="),
            "bytes: \"aGVsbG8=\" is not an array of bytes: each is an integer from 0 to 255",
        ),
        ("bytes", json!([256]), "bytes[0]: 256 is greater than the maximum of 255\n"),
        ("small", json!(2_147_483_648_u64), "small: 2147483648 is greater than the maximum of 2147483647\n"),
        ("small", json!(-2_147_483_649_i64), "small: -2147483649 is less than the minimum of -2147483648\n"),
        (
            "large",
            json!(18_446_744_073_709_551_616.0),
            "large: 1.8446744073709552e+19 is not an integer from 0 to 18446744073709551615\n",
        ),
        ("ratio", json!(1e39), "ratio: 1e+39 is greater than the maximum of 3.4028235e38\n"),
        ("ratio", json!(-1e39), "ratio: -1e+39 is less than the minimum of -3.4028235e38\n"),
        ("list", json!([1, 70_000]), "list[1]: 70000 is greater than the maximum of 32767\n"),
    ] {
        let text = failure(&server.call("take", json!({ argument: value })).await);
        assert!(text.contains(&format!("\n- {line}")), "{value}: {text}");
        assert_eq!(text.matches("\n- ").count(), 1, "{value}: {text}");
        assert!(!text.contains("at line"), "positions in JSON text mean nothing to a model: {text}");
    }
    for (argument, value) in [
        ("ratio", json!(3.4e38)),
        ("amount", json!(7)),
        ("wake", json!("07:30:00")),
        ("start", json!("2026-07-28T12:00:00.5")),
    ] {
        server.call("take", json!({ argument: value })).await.expect_ok();
    }
    let text = failure(&server.call("take", json!({ "filter": { "even": "x".repeat(1_000_001) } })).await);
    assert!(text.len() < 2_000 && text.contains("xxx…\" is not accepted: "), "{text}");
}

/// What the fields of the enums below are.
#[mcp_type]
#[derive(Debug)]
struct Task {
    name: String,
    estimate: Even,
    hours: u8,
}

#[mcp_type]
#[derive(Debug)]
enum ByName {
    Task(Task),
}

#[mcp_type]
#[derive(Debug)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum ByTag {
    Task(Task),
    Nothing,
}

#[mcp_type]
#[derive(Debug)]
#[serde(tag = "kind", content = "of", rename_all = "snake_case")]
enum ByTagAside {
    Task(Task),
    Nothing,
}

#[mcp_type]
#[derive(Debug)]
#[serde(untagged)]
enum ByContent {
    Task(Task),
    Count(u8),
}

#[mcp_type]
#[derive(Debug)]
struct Beside {
    id: u8,
    #[serde(flatten)]
    task: Task,
}

#[tokio::test]
async fn a_value_inside_of_any_enum_is_reported_at_its_place() {
    #[mcp_tool(name = "plan")]
    fn plan(
        by_name: Option<ByName>,
        by_tag: Option<Vec<ByTag>>,
        aside: Option<ByTagAside>,
        by_content: Option<ByContent>,
        beside: Option<Beside>,
    ) -> String {
        format!("{by_name:?} {by_tag:?} {aside:?} {by_content:?} {beside:?}")
    }
    let server = serve(mcp_runtime::server!().tool::<plan>());
    let task = |estimate: &str, hours: u32| json!({ "name": "a", "estimate": estimate, "hours": hours });
    let with = |mut task: Value, name: &str, value: Value| {
        task[name] = value;
        task
    };
    let forms = |estimate: &str, hours: u32| {
        let task = task(estimate, hours);
        [
            ("by_name", json!({ "Task": task }), "by_name.Task"),
            (
                "by_tag",
                json!([{ "kind": "nothing" }, with(task.clone(), "kind", json!("task"))]),
                "by_tag[1]",
            ),
            ("aside", json!({ "of": task, "kind": "task" }), "aside.of"),
            ("by_content", task.clone(), "by_content"),
            ("beside", with(task, "id", json!(1)), "beside"),
        ]
    };
    for (argument, value, path) in forms("odd", 3) {
        let text = failure(&server.call("plan", json!({ argument: value })).await);
        let lines: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("- ")).collect();
        let reason =
            if argument == "by_content" { "it has none of the allowed forms" } else { "an odd length" };
        assert_eq!(lines, [format!("{path}.estimate: \"odd\" is not accepted: {reason}")], "{text}");
    }
    for (argument, value, path) in forms("even", 300) {
        let text = failure(&server.call("plan", json!({ argument: value })).await);
        let lines: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("- ")).collect();
        assert_eq!(lines, [format!("{path}.hours: 300 is greater than the maximum of 255")], "{text}");
    }
    let text = failure(&server.call("plan", json!({ "aside": { "kind": "nothing", "of": 5 } })).await);
    assert!(!text.contains("ByTagAside") && !text.contains("unit"), "{text}");
}

#[tokio::test]
async fn an_empty_text_for_something_optional_is_told_to_be_left_out() {
    #[mcp_tool(name = "hints")]
    fn hints(
        number: Option<u32>,
        list: Option<Vec<String>>,
        plan: Option<ByName>,
        #[mcp(default = 3)] level: u8,
        needed: u8,
    ) -> String {
        format!("{number:?} {list:?} {plan:?} {level} {needed}")
    }
    let server = serve(mcp_runtime::server!().tool::<hints>());
    for argument in ["number", "list", "plan", "level"] {
        let text = failure(&server.call("hints", json!({ argument: "", "needed": 1 })).await);
        assert!(text.contains("; leave it out to send none\n"), "{argument}: {text}");
    }
    let text = failure(&server.call("hints", json!({ "needed": "" })).await);
    assert!(text.contains("- needed: \"\" is not an integer\n"), "{text}");
}

#[mcp_type]
#[derive(Debug)]
struct Stay {
    from: chrono::NaiveDate,
    until: chrono::NaiveDate,
    room: uuid::Uuid,
    guests: u8,
    #[serde(default)]
    extras: Vec<Due>,
}

/// Its members are read before they are understood.
#[mcp_type]
#[derive(Debug)]
struct Trip {
    #[serde(flatten)]
    stay: Stay,
    even: Even,
}

#[tokio::test]
async fn the_first_value_that_parses_itself_is_reported_with_what_the_schema_refuses() {
    #[mcp_tool]
    fn book(stay: Stay) -> String {
        format!("{stay:?}")
    }
    #[mcp_tool]
    fn book_flat(#[mcp(flatten)] stay: Stay) -> String {
        format!("{stay:?}")
    }
    #[mcp_tool]
    fn book_trip(trip: Trip) -> String {
        format!("{trip:?}")
    }
    let server = serve(mcp_runtime::server!().tool::<book>().tool::<book_flat>().tool::<book_trip>());
    let lines = |text: &str, path: &str| -> Vec<String> {
        let start = format!("- {path}");
        let lines = text.lines().filter_map(|line| line.strip_prefix(&start));
        lines.map(|line| line.split(':').next().unwrap_or_default().to_owned()).collect()
    };
    let stay = json!({
        "extras": [{ "due_before": "x", "even": "abc" }, { "page": 7 }],
        "from": "soon", "guests": "many", "room": "42"
    });
    let expected = ["extras[1].page", "guests", "until", "extras[0].due_before"];
    let text = failure(&server.call("book", json!({ "stay": stay })).await);
    assert_eq!(lines(&text, "stay."), expected, "{text}");
    assert!(text.contains("- stay.extras[0].due_before: \"x\" is not a date, as in "), "{text}");
    let text = failure(&server.call("book_flat", stay).await);
    assert_eq!(lines(&text, ""), expected, "{text}");
    // errors of what is flattened have no place, so that formats are looked at
    let mut trip = json!({
        "from": "soon", "until": "2026-02-30", "room": "67e55044-10b1-426f-9247-bb680e5fe0c8", "guests": 2, "even": "ab"
    });
    let text = failure(&server.call("book_trip", json!({ "trip": trip.clone() })).await);
    assert_eq!(lines(&text, "trip."), ["from", "until"], "{text}");
    trip["until"] = "2026-01-01".into();
    trip["from"] = "2026-01-01".into();
    trip["even"] = "abc".into();
    let text = failure(&server.call("book_trip", json!({ "trip": trip.clone() })).await);
    assert_eq!(lines(&text, "trip."), ["even"], "{text}");
    trip["even"] = "ab".into();
    trip["guests"] = 300.into();
    let text = failure(&server.call("book_trip", json!({ "trip": trip })).await);
    assert_eq!(lines(&text, "trip."), ["guests"], "{text}");
}

#[test]
fn maps_whose_keys_are_not_text_are_errors_of_the_build() {
    use std::collections::{BTreeMap, HashMap};

    #[mcp_type]
    #[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    struct Point {
        x: i32,
    }
    #[mcp_type]
    struct Board {
        fields: Vec<BTreeMap<Point, String>>,
    }
    #[mcp_tool]
    fn by_pair(map: HashMap<(i32, i32), String>) -> usize {
        map.len()
    }
    #[mcp_tool]
    fn by_point(board: Option<Board>) -> usize {
        board.map_or(0, |board| board.fields.len())
    }
    let error = mcp_runtime::server!().tool::<by_pair>().tool::<by_point>().build().unwrap_err().to_string();
    assert!(
        error.contains("tool `by_pair`: `map`: a map has keys that are not text: a tuple of size 2"),
        "{error}"
    );
    assert!(
        error.contains("tool `by_point`: `board`: a map has keys that are not text: struct Point"),
        "{error}"
    );
}

#[test]
fn all_problems_of_an_item_are_one_report() {
    #[mcp_tool(name = "two_problems")]
    fn several(
        #[mcp(default = 0, range(1..=5))] first: u8,
        #[mcp(example = "nine", length(..=3), pattern = "(")] second: String,
    ) -> String {
        format!("{first}{second}")
    }
    #[mcp_prompt]
    fn prompted(
        #[mcp(default = 0, range(1..=5))] first: u8,
        #[mcp(default = 9, range(1..=5))] second: u8,
    ) -> String {
        format!("{first}{second}")
    }
    let builder = mcp_runtime::server!().tool::<several>().prompt::<prompted>();
    let error = builder.build().unwrap_err().to_string();
    for part in [
        "`two_problems`: `first`: its default breaks its rules",
        "`second`: `(` is not a regular expression",
        "argument_errors.rs:",
        "`second`: its example breaks its rules",
        "prompt `prompted`: `first`: its default",
        "prompt `prompted`: `second`: its default",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[tokio::test]
async fn a_wrong_key_of_a_map_is_one_error_that_says_what_is_allowed() {
    #[mcp_type]
    #[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[serde(rename_all = "lowercase")]
    enum Unit {
        Celsius,
        Kelvin,
    }
    #[mcp_tool]
    fn count(
        number: Option<BTreeMap<u8, String>>,
        unit: Option<BTreeMap<Unit, u32>>,
        flag: Option<BTreeMap<bool, u32>>,
        letter: Option<BTreeMap<char, Vec<u32>>>,
    ) -> String {
        format!("{number:?} {unit:?} {flag:?} {letter:?}")
    }
    let server = serve(mcp_runtime::server!().tool::<count>());
    for (argument, map, line) in [
        (
            "number",
            json!({ "300": "x", "7": "y" }),
            "number.300: the key 300 is greater than the maximum of 255",
        ),
        ("number", json!({ "x": "x", "2": "b" }), "number: the key \"x\" is not an integer of 0 or more"),
        ("unit", json!({ "mile": 1 }), "unit: unknown field `mile`; the names are `celsius`, `kelvin`"),
        ("unit", json!({ "kelvni": 1 }), "unit: unknown field `kelvni`; did you mean `kelvin`?"),
        ("flag", json!({ "yes": 1, "true": 2 }), "flag.yes: the key `yes` is not `true` or `false`"),
        ("letter", json!({ "ab": [1] }), "letter.ab: the key `ab` is not a character"),
    ] {
        let text = failure(&server.call("count", json!({ argument: map })).await);
        let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("- ")).collect();
        assert_eq!(lines, [line], "{text}");
    }
}
