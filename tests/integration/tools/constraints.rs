//! Each constraint is a keyword in the schema, and is enforced.

use super::types::{Case, assert_cases, cases};
use crate::prelude::*;

fn constraints() -> Vec<Case> {
    cases! {
        #[mcp(range(1..=100))] u32 => { "type": "integer", "minimum": 1, "maximum": 100 },
            good [1, 100, 50.0], bad [0, 101, (-1), 100.5, "101"];
        #[mcp(range(0..10))] i64 => { "type": "integer", "minimum": 0, "maximum": 9 },
            good [0, 9], bad [(-1), 10];
        #[mcp(range(-5..))] i32 => { "type": "integer", "minimum": -5 },
            good [(-5), 2147483647], bad [(-6)];
        #[mcp(range(..=5))] u8 => { "type": "integer", "minimum": 0, "maximum": 5 },
            good [0, 5], bad [6, 256, (-1)];
        #[mcp(range(0.0..1.0))] f64 => { "type": "number", "minimum": 0.0, "exclusiveMaximum": 1.0 },
            good [0, 0.999], bad [1.0, 1];
        #[mcp(range(-90.0..=90.0))] f64 => { "type": "number", "minimum": -90.0, "maximum": 90.0 },
            good [(-90), 89.9], bad [90.1, (-91)];
        #[mcp(range(..=18446744073709551614))] u64 => { "type": "integer", "minimum": 0, "maximum": 18446744073709551614_u64 },
            good [0, 18446744073709551614_u64], bad [18446744073709551615_u64];
        #[mcp(length(1..=3))] String => { "type": "string", "minLength": 1, "maxLength": 3 },
            good ["a", "äöü", "日本語", "😀😀😀"], bad ["", "abcd", "😀😀😀😀"];
        #[mcp(length(2))] String => { "type": "string", "minLength": 2, "maxLength": 2 },
            good ["ab"], bad ["a", "abc"];
        #[mcp(length(..3))] String => { "type": "string", "maxLength": 2 },
            good ["", "ab"], bad ["abc"];
        #[mcp(length(1..))] Vec<i32> => { "type": "array", "items": { "type": "integer" }, "minItems": 1 },
            good [[1], [1, 2]], bad [[]];
        #[mcp(length(..=1))] BTreeMap<String, u8> => {
                "type": "object", "additionalProperties": { "type": "integer", "minimum": 0, "maximum": 255 }, "maxProperties": 1
            },
            good [{}, { "a": 1 }], bad [{ "a": 1, "b": 2 }, { "a": 256 }];
        #[mcp(pattern = "^[a-z]{2,3}$")] String => { "type": "string", "pattern": "^[a-z]{2,3}$", "maxLength": 65536 },
            good ["ab", "abc"], bad ["a", "abcd", "AB", "ab\n", "\nab"];
        #[mcp(pattern = "\\d")] String => { "type": "string", "pattern": "\\d", "maxLength": 65536 },
            good ["a1b"], bad ["ab", ""];
        #[mcp(one_of("asc", "desc"))] String => { "type": "string", "enum": ["asc", "desc"] },
            good ["asc"], bad ["ASC", "", "up"];
        #[mcp(one_of(1, 2, 4))] u8 => { "type": "integer", "minimum": 0, "maximum": 255, "enum": [1, 2, 4] },
            good [1, 4, 2.0], bad [3, 0, 256];
        #[mcp(one_of = ["a"])] Option<String> => { "type": "string", "enum": ["a"] },
            good ["a", null], bad ["b"];
        #[mcp(length(2..=4), pattern = "^a")] String => { "type": "string", "minLength": 2, "maxLength": 4, "pattern": "^a" },
            good ["ab"], bad ["a", "abcde", "bb"];
        #[mcp(range(0..=1))] f64 => { "type": "number", "minimum": 0.0, "maximum": 1.0 },
            good [0, 0.5, 1], bad [(-0.1), 1.1];
        #[mcp(range(-1..=1.5))] Option<f32> => { "type": "number", "minimum": -1.0, "maximum": 1.5 },
            good [(-1), 1.5, null], bad [(-1.1), 1.6];
        #[mcp(range(-3..=5))] i128 => { "type": "integer", "minimum": -3, "maximum": 5 },
            good [(-3), 5], bad [(-4), 6, 1e30];
        #[mcp(default = 5, range(1..=9))] i8 => { "type": "integer", "minimum": 1, "maximum": 9, "default": 5 },
            good [1], bad [0, 127, 128];
    }
}

#[tokio::test]
async fn each_constraint_is_published_and_enforced() {
    assert_cases(constraints()).await;
}

#[mcp_type]
#[derive(Debug)]
struct Basket {
    #[schemars(length(min = 1, max = 2))]
    items: Vec<Line>,
    #[schemars(range(min = 0.0, max = 1.0))]
    discount: Option<f32>,
}

#[mcp_type]
#[derive(Debug)]
struct Line {
    #[schemars(range(min = 1, max = 99))]
    count: i16,
    #[schemars(regex(pattern = r"^[A-Z]{2}-\d+$"))]
    sku: String,
    #[schemars(length(max = 3), inner(length(min = 1)))]
    notes: Option<Vec<String>>,
}

#[tokio::test]
async fn constraints_inside_types_are_enforced() {
    #[mcp_tool]
    fn buy(v: Basket, #[mcp(length(1..))] who: Option<String>) -> String {
        let _ = who;
        format!("{v:?}")
    }
    #[mcp_tool]
    fn buy_all(#[mcp(flatten)] v: Basket) -> String {
        format!("{v:?}")
    }
    let server = serve(mcp_runtime::server!().tool::<buy>().tool::<buy_all>());
    let line = json!({ "count": 1, "sku": "AB-1" });
    let with = |key: &str, value: Value| {
        let mut line = line.clone();
        line[key] = value;
        json!({ "items": [line] })
    };
    let good = [
        json!({ "items": [line] }),
        json!({ "items": [line, line], "discount": 1 }),
        json!({ "items": [line], "discount": null }),
        with("notes", json!(null)),
        with("notes", json!(["a"])),
        with("count", json!("99")),
    ];
    let bad = [
        (json!({ "items": [] }), "items: has 0 items, fewer than the minimum of 1"),
        (json!({ "items": [line, line, line] }), "items: has 3 items"),
        (json!({ "items": [line], "discount": 1.5 }), "discount: 1.5 is greater than the maximum of 1"),
        (with("count", json!(0)), "items[0].count: 0 is less than the minimum of 1"),
        (with("count", json!(100)), "items[0].count: 100 is greater than the maximum of 99"),
        (with("sku", json!("ab-1")), "items[0].sku: \"ab-1\" does not match the pattern"),
        (with("notes", json!(["", "a", "b", "c"])), "items[0].notes: has 4 items"),
        (with("notes", json!([""])), "items[0].notes[0]: \"\" has 0 characters"),
    ];
    for sent in good {
        server.call("buy", json!({ "v": sent })).await.expect_ok();
        server.call("buy_all", sent).await.expect_ok();
    }
    for (sent, said) in bad {
        server.call("buy", json!({ "v": sent })).await.expect_failure(&format!("- v.{said}"));
        server.call("buy_all", sent).await.expect_failure(&format!("- {said}"));
    }
}

#[test]
fn a_keyword_that_is_not_enforced_is_a_build_error() {
    let tool = ToolDef::builder("dynamic")
        .input_schema(json!({ "type": "object", "properties": { "a": { "$dynamicRef": "#x" } } }))
        .handler(|_| async {});
    let error = build_error(mcp_runtime::server!().add(tool));
    assert!(error.contains("tool `dynamic`") && error.contains("$dynamicRef"), "{error}");
    let bare = ToolDef::builder("bare").input_schema(json!({ "type": "array" })).handler(|_| async {});
    let error = build_error(mcp_runtime::server!().add(bare));
    assert!(error.contains("`\"type\": \"object\"` at its root"), "{error}");
}

/// A text that a pattern takes seconds for.
fn long() -> String {
    "a".repeat(100_000)
}

#[mcp_type]
#[derive(Debug)]
struct Mail {
    #[schemars(regex(pattern = r"^(a?){64}a{64}$"))]
    to: String,
}

#[tokio::test]
async fn a_pattern_is_only_matched_against_texts_of_bounded_length() {
    #[mcp_tool]
    fn after(#[mcp(pattern = "^(a?){64}a{64}$", length(..=254))] v: String) -> usize {
        v.len()
    }
    #[mcp_tool]
    fn capped(#[mcp(pattern = "^(a?){64}a{64}$")] v: Option<String>) -> String {
        format!("{v:?}")
    }
    #[mcp_tool]
    fn nested(v: Vec<Mail>) -> String {
        format!("{v:?}")
    }
    let dynamic = ToolDef::builder("dynamic")
        .input_schema(json!({ "type": "object", "properties": { "v": { "type": "string", "pattern": "^(a?){64}a{64}$" } } }))
        .handler(|_| async { "" });
    let server = serve(mcp_runtime::server!().tool::<after>().tool::<capped>().tool::<nested>().add(dynamic));
    let tools = server.list_tools().await;
    let schema = |at: usize| tools[at]["inputSchema"]["properties"]["v"].clone();
    assert_eq!(schema(0)["maxLength"], 254);
    assert_eq!(schema(1)["maxLength"], 65536);
    assert_eq!(schema(2)["items"]["properties"]["to"]["maxLength"], 65536);
    assert_eq!(schema(3)["maxLength"], 65536);
    for (tool, v) in [
        ("after", json!(long())),
        ("capped", json!(long())),
        ("nested", json!([{ "to": long() }])),
        ("dynamic", json!(long())),
    ] {
        let text = failure(&server.call(tool, json!({ "v": v })).await);
        assert!(text.contains("100000 characters, more than the maximum of "), "{tool}: {text}");
        assert!(!text.contains("does not match the pattern"), "{tool}: {text}");
        assert!(text.len() < 1_000, "{tool}");
    }
}

/// A number of another crate, such as `rust_decimal::Decimal`: it converts from Rust's, and is sent as text.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
struct Cents(i64);

impl std::fmt::Display for Cents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

impl From<i64> for Cents {
    fn from(whole: i64) -> Self {
        Self(whole * 100)
    }
}

impl TryFrom<f64> for Cents {
    type Error = &'static str;

    fn try_from(number: f64) -> Result<Self, Self::Error> {
        if number.is_finite() { Ok(Self((number * 100.0).round() as i64)) } else { Err("not finite") }
    }
}

impl serde::Serialize for Cents {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Cents {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;

        let number = match Value::deserialize(deserializer)? {
            Value::String(text) => text.parse().map_err(|_| D::Error::custom("not a decimal"))?,
            other => other.as_f64().ok_or_else(|| D::Error::custom("not a decimal"))?,
        };
        Self::try_from(number).map_err(D::Error::custom)
    }
}

impl schemars::JsonSchema for Cents {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cents".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["string", "number"], "pattern": r"^-?\d+(\.\d+)?([eE]\d+)?$" })
    }
}

#[tokio::test]
async fn literals_of_dates_and_decimals_are_read_as_arguments_are() {
    #[mcp_type]
    #[derive(Debug)]
    #[serde(rename_all = "lowercase")]
    enum Pace {
        Slow,
        Fast,
    }
    #[mcp_tool]
    fn pay(
        #[mcp(default = "85.00", range(0..=5000))] price: Cents,
        #[mcp(range(1..))] tip: Option<Cents>,
        #[mcp(default = "2026-01-01")] due: chrono::NaiveDate,
        #[mcp(example = "67e55044-10b1-426f-9247-bb680e5fe0c8")] id: Option<uuid::Uuid>,
        #[mcp(default = "slow")] pace: Pace,
    ) -> String {
        format!("{price} {tip:?} {due} {id:?} {pace:?}")
    }
    let server = serve(mcp_runtime::server!().tool::<pay>());
    let price = property(&server, "price").await;
    assert_eq!(price["default"], "85.00");
    assert_eq!(price["anyOf"][1], json!({ "type": "number", "minimum": 0.0, "maximum": 5000.0 }));
    assert_eq!(property(&server, "due").await["default"], "2026-01-01");
    assert_eq!(property(&server, "id").await["examples"], json!(["67e55044-10b1-426f-9247-bb680e5fe0c8"]));
    server.call("pay", json!({})).await.expect_text("85.00 None 2026-01-01 None Slow");
    server
        .call("pay", json!({ "price": 12.5, "tip": "2" }))
        .await
        .expect_text("12.50 Some(Cents(200)) 2026-01-01 None Slow");
    for (sent, line) in [
        (json!({ "price": "5000.01" }), "- price: 5000.01 is greater than the maximum of 5000"),
        (json!({ "tip": 0.5 }), "- tip: 0.5 is less than the minimum of 1"),
        (json!({ "price": [] }), "- price: an empty array is not a string or a number"),
    ] {
        let text = failure(&server.call("pay", sent.clone()).await);
        assert!(text.contains(line), "{sent}: {text}");
        assert!(
            text.ends_with(
                "expected: pay(due?: date = \"2026-01-01\", id?: uuid, pace?: \"slow\" | \"fast\" = \"slow\", \
                 price?: decimal 0.0..=5000.0 = \"85.00\", tip?: decimal 1.0..)"
            ),
            "{text}"
        );
    }
}

#[test]
fn a_literal_that_its_type_refuses_is_an_error_of_the_build() {
    #[mcp_tool]
    fn plan(
        #[mcp(default = "2026-02-30")] from: chrono::NaiveDate,
        #[mcp(example = "soon")] until: Option<chrono::NaiveDate>,
    ) -> String {
        format!("{from} {until:?}")
    }
    let error = build_error(mcp_runtime::server!().tool::<plan>());
    assert!(error.contains("`from`: its default \"2026-02-30\" is not a value of its type: "), "{error}");
    assert!(error.contains("`until`: its example \"soon\" is not a value of its type: "), "{error}");
}
