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
async fn deserialization_errors_are_reported_with_the_rest() {
    #[mcp_tool]
    fn book(day: chrono::NaiveDate, seats: u32, id: uuid::Uuid, name: String) -> String {
        format!("{day} {seats} {id} {name}")
    }
    let server = serve(mcp_runtime::server!().tool::<book>());
    let sent = json!({ "day": "2024-13-45", "seats": 5_000_000_000_u64, "id": "no", "nam": "x" });
    let text = failure(&server.call("book", sent).await);
    for said in ["- day: ", "- seats: ", "- id: ", "- name: is missing", "did you mean `name`?"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(text.contains("5000000000"), "{text}");
    assert!(!text.contains("at line"), "positions in JSON text mean nothing to a model: {text}");
    let text = failure(
        &server
            .call(
                "book",
                json!({ "day": "x", "seats": 1, "id": "67e55044-10b1-426f-9247-bb680e5fe0c8", "name": "" }),
            )
            .await,
    );
    let said = text.lines().filter(|line| line.starts_with("- ")).count();
    assert_eq!(said, 1, "{text}");
}

#[tokio::test]
async fn constraint_violations_name_their_argument_once() {
    #[mcp_tool]
    fn short(#[mcp(length(1..=3), pattern = "^[a-z]+$")] code: String, #[mcp(range(1..))] n: i64) -> String {
        format!("{code}{n}")
    }
    let server = serve(mcp_runtime::server!().tool::<short>());
    let text = failure(&server.call("short", json!({ "code": "ABCD", "n": 0 })).await);
    assert_eq!(text.matches("- code: ").count(), 1, "{text}");
    assert_eq!(text.matches("- n: ").count(), 1, "{text}");
    assert!(text.contains("- n: 0 is less than the minimum of 1"), "{text}");
}

#[tokio::test]
async fn long_reports_are_truncated() {
    #[mcp_tool]
    fn many(list: Vec<u8>) -> String {
        format!("{list:?}")
    }
    let server = serve(mcp_runtime::server!().tool::<many>());
    let text = failure(&server.call("many", json!({ "list": vec!["x"; 4_000] })).await);
    assert!(text.len() < 20_000, "{} bytes", text.len());
    assert!(text.contains("- list[0]: \"x\" is not an integer"), "{text}");
    let keys: serde_json::Map<_, _> = (0..50_000).map(|n| (format!("key{n}"), json!(n))).collect();
    let text = failure(&server.call("many", json!(keys)).await);
    assert!(text.len() < 100_000, "{} bytes", text.len());
    assert!(text.contains("- list: is missing"), "{text}");
    let long = failure(&server.call("many", json!({ "list": "y".repeat(1_000_000) })).await);
    assert!(long.len() < 1_000, "{} bytes", long.len());
}

#[tokio::test]
async fn odd_names_and_values_are_quoted() {
    #[mcp_tool]
    fn odd(#[mcp(name = "a b")] spaced: u8, #[mcp(name = "é")] accented: u8) -> String {
        format!("{spaced}{accented}")
    }
    let server = serve(mcp_runtime::server!().tool::<odd>());
    let text = failure(&server.call("odd", json!({ "a b": "\u{0007}\n\"", "é": null })).await);
    assert!(text.contains("- [\"a b\"]: \"\\u0007\\n\\\"\" is not an integer"), "{text}");
    assert!(text.contains("- é: null is not an integer"), "{text}");
}

#[tokio::test]
async fn a_failed_call_does_not_affect_the_next() {
    let server = serve(mcp_runtime::server!().tool::<order>());
    server.call("order", json!({})).await.expect_failure("query: is missing");
    let good = json!({ "query": "q", "items": [], "urgent": true });
    server.call("order", good).await.expect_text("q 10 [] None true");
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

#[tokio::test]
async fn what_a_type_that_parses_itself_refuses_is_named_by_path_and_value() {
    #[mcp_tool]
    fn find(
        filter: Option<Due>,
        ids: Option<Vec<uuid::Uuid>>,
        even: Option<Even>,
        plan: Option<Plan>,
        action: Option<Action>,
    ) -> String {
        format!("{filter:?} {ids:?} {even:?} {plan:?} {action:?}")
    }
    let server = serve(mcp_runtime::server!().tool::<find>());
    let id = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    for (sent, line) in [
        (json!({ "filter": { "due_before": "x" } }), "filter.due_before: \"x\" is not a date, as in "),
        (
            json!({ "filter": { "page": "no url", "due_before": "2024-01-01" } }),
            "filter.page: \"no url\" is not a URI, as in ",
        ),
        (
            json!({ "filter": { "nested": { "nested": { "even": "abc" } } } }),
            "filter.nested.nested.even: \"abc\" is not accepted: an odd length",
        ),
        (
            json!({ "filter": { "even": "abc", "page": "https://a/" } }),
            "filter.even: \"abc\" is not accepted: an odd length",
        ),
        (json!({ "ids": ["x"] }), "ids[0]: \"x\" is not a UUID"),
        (json!({ "ids": [id, id, "67e5"] }), "ids[2]: \"67e5\" is not a UUID"),
        (json!({ "even": "abc" }), "even: \"abc\" is not accepted: an odd length"),
        (
            json!({ "action": { "Move": { "to": "abc" } } }),
            "action.Move.to: \"abc\" is not accepted: an odd length",
        ),
        (
            json!({ "plan": { "op": "schedule", "at": "x", "who": [] } }),
            "plan.at: \"x\" is not a date and time",
        ),
        (
            json!({ "plan": { "op": "schedule", "at": "2024-01-01T00:00:00Z", "who": [id, "x"] } }),
            "plan.who[1]: \"x\" is not a UUID",
        ),
    ] {
        let text = failure(&server.call("find", sent.clone()).await);
        assert!(text.contains(&format!("\n- {line}")), "{sent}: {text}");
        assert_eq!(text.matches("\n- ").count(), 1, "{sent}: {text}");
    }
    let long = "x".repeat(1_000_001);
    for sent in [json!({ "filter": { "even": long } }), json!({ "even": long })] {
        let text = failure(&server.call("find", sent).await);
        assert!(text.len() < 2_000 && text.contains("xxx…\" is not accepted: "), "{text}");
    }
}

#[tokio::test]
async fn what_a_prompt_and_a_template_refuse_is_named_with_its_value() {
    #[mcp_prompt]
    fn review(due: chrono::NaiveDate) -> String {
        due.to_string()
    }
    #[mcp_resource(uri = "notes://{id}")]
    fn note(id: uuid::Uuid) -> String {
        id.to_string()
    }
    let server = serve(mcp_runtime::server!().prompt::<review>().resource::<note>());
    let reply = server.prompt("review", json!({ "due": "tomorrow" })).await;
    assert!(refusal(&reply).1.contains("`due`: \"tomorrow\" is not a date, as in 2026-"), "{reply}");
    let reply = server.read("notes://7").await;
    assert!(refusal(&reply).1.contains("`id`: \"7\" is not a UUID"), "{reply}");
}

#[tokio::test]
async fn keys_of_a_map_that_are_not_integers_are_explained() {
    #[mcp_tool]
    fn count(by_year: BTreeMap<u32, String>) -> usize {
        by_year.len()
    }
    let server = serve(mcp_runtime::server!().tool::<count>());
    server.call("count", json!({ "by_year": { "1": "a" } })).await.expect_text("1");
    let text = failure(&server.call("count", json!({ "by_year": { "x": "a", "2": "b" } })).await);
    assert_eq!(
        text,
        "invalid arguments for tool `count`:\n\
         - by_year: the key \"x\" is not an integer of 0 or more\n\
         expected: count(by_year: {[integer]: string})"
    );
}

#[tokio::test]
async fn what_is_not_a_time_is_told_what_one_looks_like() {
    #[mcp_tool]
    fn wake(at: chrono::NaiveTime, from: chrono::NaiveDateTime) -> String {
        format!("{at} {from}")
    }
    let server = serve(mcp_runtime::server!().tool::<wake>());
    server.call("wake", json!({ "at": "07:30:00", "from": "2026-07-28T12:00:00.5" })).await.expect_ok();
    let text = failure(&server.call("wake", json!({ "at": "seven", "from": "2026-07-28" })).await);
    assert_eq!(
        text,
        "invalid arguments for tool `wake`:\n\
         - at: \"seven\" is not a time, as in 12:00:00\n\
         - from: \"2026-07-28\" is not a date and time, as in 2026-07-28T12:00:00\n\
         expected: wake(at: partial-time, from: partial-date-time)"
    );
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

#[mcp_type]
#[derive(Debug)]
#[serde(untagged)]
enum Amount {
    Count(u32),
    Of { pieces: u16, due: chrono::NaiveDate },
    Word(Even),
}

#[tokio::test]
async fn what_no_variant_of_an_untagged_enum_accepts_is_reported_at_its_place() {
    #[mcp_tool]
    fn take(amount: Amount, list: Vec<Amount>) -> String {
        format!("{amount:?} {list:?}")
    }
    let server = serve(mcp_runtime::server!().tool::<take>());
    server.call("take", json!({ "amount": 7, "list": ["ab"] })).await.expect_ok();
    for (amount, line) in [
        (json!(5_000_000_000_u64), "amount: 5000000000 is "),
        (json!(-5), "amount: -5 is "),
        (json!("abc"), "amount: \"abc\" is not accepted: "),
        (json!({ "pieces": 70_000, "due": "2026-01-01" }), "amount.pieces: 70000 is "),
        (json!({ "pieces": 7, "due": "soon" }), "amount.due: \"soon\" is not a date"),
    ] {
        let text = failure(&server.call("take", json!({ "amount": amount, "list": [] })).await);
        assert!(text.contains(&format!("\n- {line}")), "{amount}: {text}");
        assert_eq!(text.matches("\n- ").count(), 1, "{amount}: {text}");
    }
    let text = failure(&server.call("take", json!({ "amount": 1, "list": [7, "ab", "abc"] })).await);
    assert!(text.contains("\n- list[2]: \"abc\" is not accepted: "), "{text}");
}

#[tokio::test]
async fn a_text_that_is_sent_for_bytes_is_told_what_bytes_are() {
    #[mcp_tool]
    fn store(data: Vec<u8>) -> usize {
        data.len()
    }
    let server = serve(mcp_runtime::server!().tool::<store>());
    let text = failure(&server.call("store", json!({ "data": "aGVsbG8=" })).await);
    assert!(
        text.contains("- data: \"aGVsbG8=\" is not an array of bytes: each is an integer from 0 to 255"),
        "{text}"
    );
}

#[tokio::test]
async fn a_number_that_is_not_in_its_type_is_told_the_bounds_of_it() {
    #[mcp_tool]
    fn measure(
        small: Option<i32>,
        large: Option<u64>,
        byte: Option<u8>,
        ratio: Option<f32>,
        list: Option<Vec<i16>>,
    ) -> String {
        format!("{small:?} {large:?} {byte:?} {ratio:?} {list:?}")
    }
    #[mcp_prompt]
    fn weigh(ratio: f32) -> String {
        format!("{ratio}")
    }
    let server = serve(mcp_runtime::server!().tool::<measure>().prompt::<weigh>());
    for (argument, value, line) in [
        ("small", "2147483648", "small: 2147483648 is greater than the maximum of 2147483647"),
        ("small", "-2147483649", "small: -2147483649 is less than the minimum of -2147483648"),
        (
            "large",
            "18446744073709551616",
            "large: 1.8446744073709552e+19 is not an integer from 0 to 18446744073709551615",
        ),
        ("byte", "256", "byte: 256 is greater than the maximum of 255"),
        ("ratio", "1e39", "ratio: 1e+39 is greater than the maximum of 3.4028235e38"),
        ("ratio", "-1e39", "ratio: -1e+39 is less than the minimum of -3.4028235e38"),
        ("list", "[1, 70000]", "list[1]: 70000 is greater than the maximum of 32767"),
    ] {
        let arguments: Value = serde_json::from_str(&format!("{{\"{argument}\": {value}}}")).expect("JSON");
        let text = failure(&server.call("measure", arguments).await);
        assert!(text.contains(&format!("- {line}\n")), "{value}: {text}");
        assert_eq!(text.matches("\n- ").count(), 1, "{value}: {text}");
    }
    server.call("measure", json!({ "ratio": 3.4e38 })).await.expect_ok();
    for wrong in ["1e39", "inf", "NaN"] {
        let refused = server.prompt("weigh", json!({ "ratio": wrong })).await;
        refused.expect_code(-32602);
    }
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
    #[mcp_tool]
    fn by_text(
        names: HashMap<String, u8>,
        years: HashMap<u16, u8>,
        ids: HashMap<uuid::Uuid, u8>,
        flags: HashMap<bool, u8>,
        any: serde_json::Map<String, Value>,
    ) -> usize {
        names.len() + years.len() + ids.len() + flags.len() + any.len()
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
    mcp_runtime::server!().tool::<by_text>().build().unwrap();
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
        "`second`: its example breaks its rules",
        "prompt `prompted`: `first`: its default",
        "prompt `prompted`: `second`: its default",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[tokio::test]
async fn a_wrong_key_of_a_map_is_one_error_that_says_what_is_allowed() {
    use std::collections::BTreeMap;

    #[mcp_type]
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    #[serde(rename_all = "lowercase")]
    enum Unit {
        Celsius,
        Kelvin,
    }
    #[mcp_tool]
    fn by_number(map: BTreeMap<u8, String>) -> usize {
        map.len()
    }
    #[mcp_tool]
    fn by_unit(map: BTreeMap<Unit, u32>) -> usize {
        map.len()
    }
    #[mcp_tool]
    fn by_flag(map: BTreeMap<bool, u32>) -> usize {
        map.len()
    }
    #[mcp_tool]
    fn by_letter(map: BTreeMap<char, Vec<u32>>) -> usize {
        map.len()
    }
    let server = serve(
        mcp_runtime::server!().tool::<by_number>().tool::<by_unit>().tool::<by_flag>().tool::<by_letter>(),
    );
    for (tool, map, line) in [
        (
            "by_number",
            json!({ "300": "x", "7": "y" }),
            "map.300: the key 300 is greater than the maximum of 255",
        ),
        ("by_number", json!({ "x": "x" }), "map: the key \"x\" is not an integer of 0 or more"),
        ("by_unit", json!({ "mile": 1 }), "map: unknown field `mile`; the names are `celsius`, `kelvin`"),
        ("by_unit", json!({ "kelvni": 1 }), "map: unknown field `kelvni`; did you mean `kelvin`?"),
        ("by_flag", json!({ "yes": 1, "true": 2 }), "map.yes: the key `yes` is not `true` or `false`"),
        ("by_letter", json!({ "ab": [1] }), "map.ab: the key `ab` is not a character"),
    ] {
        let text = failure(&server.call(tool, json!({ "map": map })).await);
        let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("- ")).collect();
        assert_eq!(lines, [line], "{text}");
    }
}
