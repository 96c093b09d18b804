//! Argument types: their schemas, and that values that match the schema are deserialized.

use std::{collections::HashSet, time::Duration};

use mcp_runtime::content::Bytes;

use crate::prelude::*;

/// The pattern of durations that are text.
const DURATION: &str = "^([0-9]+(d|h|m|s|ms|us|ns) ?)+$";

/// A tool with one argument: its schema, values with what the function sees of them, and values that are refused.
pub(super) struct Case {
    pub(super) builder: fn() -> ServerBuilder,
    pub(super) schema: Value,
    pub(super) good: Vec<(Value, Option<&'static str>)>,
    pub(super) bad: Vec<Value>,
}

macro_rules! cases {
    ($(
        $(#[$attr:meta])* $ty:ty => $schema:tt,
        good [$($sent:tt $(=> $seen:expr)?),* $(,)?], bad [$($bad:tt),* $(,)?];
    )*) => {
        vec![$({
            #[mcp_tool]
            fn tool($(#[$attr])* v: $ty) -> String {
                format!("{v:?}")
            }
            let good = vec![$((json!($sent), None$(.or(Some($seen)))?)),*];
            let (schema, bad) = (json!($schema), vec![$(json!($bad)),*]);
            Case { builder: || mcp_runtime::server!().tool::<tool>(), schema, good, bad }
        }),*]
    };
}
pub(super) use cases;

/// Each tool publishes its schema, accepts the valid values and refuses the others, whether it is strict or not.
pub(super) async fn assert_cases(cases: Vec<Case>) {
    for Case { builder, schema, good, bad } in cases {
        for server in [serve(builder()), serve(builder().lists(|lists| lists.strict()))] {
            let published = only_tool(&server).await["inputSchema"].clone();
            assert_eq!((&published["properties"]["v"], published.get("$defs")), (&schema, None));
            for (value, seen) in &good {
                let reply = server.call("tool", json!({ "v": value })).await;
                assert!(!reply.is_error(), "{value}: {reply}");
                assert!(seen.is_none_or(|seen| reply.text() == seen), "{value}: {reply}");
            }
            for value in &bad {
                let text = failure(&server.call("tool", json!({ "v": value })).await);
                assert!(text.contains("\n- v"), "{value}: {text}");
            }
        }
    }
}

#[mcp_type]
#[derive(Debug)]
#[serde(rename_all = "kebab-case")]
enum Level {
    /// Nothing much
    Low,
    VeryHigh,
}

fn types() -> Vec<Case> {
    cases! {
        bool => { "type": "boolean" }, good [true => "true"], bad [1, "yes", null];
        char => { "type": "string", "minLength": 1, "maxLength": 1 },
            good ["é" => "'é'", "😀" => "'😀'"], bad ["", "ab", 1];
        i8 => { "type": "integer", "minimum": -128, "maximum": 127 }, good [(-128) => "-128"], bad [128, 1.5];
        u32 => { "type": "integer", "minimum": 0 }, good [4294967295_u32 => "4294967295"], bad [4294967296_u64, (-1)];
        i32 => { "type": "integer" }, good [(-2147483648) => "-2147483648"], bad [2147483648_u64];
        i64 => { "type": "integer" }, good [9007199254740993_i64 => "9007199254740993"], bad [9223372036854775808_u64];
        u64 => { "type": "integer", "minimum": 0 }, good [18446744073709551615_u64 => "18446744073709551615"], bad [1e20];
        i128 => { "type": "integer" }, good [(-5) => "-5", 9223372036854775808_u64 => "9223372036854775808"], bad ["x", 1.5];
        u128 => { "type": "integer", "minimum": 0 }, good [5 => "5"], bad [(-1), 0.5];
        f32 => { "type": "number" }, good [0.5 => "0.5", 1 => "1.0"], bad [null, "x"];
        String => { "type": "string" },
            good ["" => "\"\"", "a\n\u{0}\u{2028}" => "\"a\\n\\0\\u{2028}\""], bad [1, null];
        Box<str> => { "type": "string" }, good ["x" => "\"x\""], bad [3];
        Vec<bool> => { "type": "array", "items": { "type": "boolean" } }, good [[true] => "[true]", [] => "[]"], bad [[1], { "a": true }];
        [u8; 2] => { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 255 }, "minItems": 2, "maxItems": 2 },
            good [[1, 2] => "[1, 2]"], bad [[1], [1, 2, 3], [1, 256]];
        HashSet<u8> => { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 255 }, "uniqueItems": true },
            good [[1] => "{1}"], bad [[1, 1]];
        (u8, String) => {
                "type": "array", "prefixItems": [{ "type": "integer", "minimum": 0, "maximum": 255 }, { "type": "string" }],
                "items": { "anyOf": [{ "type": "integer", "minimum": 0, "maximum": 255 }, { "type": "string" }] },
                "minItems": 2, "maxItems": 2
            }, good [[1, "a"] => "(1, \"a\")"], bad [[1], ["a", 1], [1, "a", 2]];
        (f64, f64) => { "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": 2 },
            good [[1, 2.5] => "(1.0, 2.5)"], bad [[1], [1, 2, 3], [1, "a"]];
        BTreeMap<String, Vec<Option<bool>>> => {
                "type": "object", "additionalProperties": {
                    "type": "array", "items": { "anyOf": [{ "type": "boolean" }, { "type": "null" }] }
                }
            }, good [{ "k": [null, true] } => "{\"k\": [None, Some(true)]}"], bad [{ "k": null }, { "k": [1] }];
        serde_json::Map<String, Value> => { "type": "object", "properties": {}, "additionalProperties": true },
            good [{ "a": 1 } => "{\"a\": Number(1)}"], bad [[]];
        Value => {}, good [{ "a": [1] } => "Object {\"a\": Array [Number(1)]}", null => "Null"], bad [];
        chrono::NaiveDate => { "type": "string", "format": "date" }, good ["2024-02-29" => "2024-02-29"], bad ["2023-02-29", "x", 5];
        chrono::DateTime<chrono::Utc> => { "type": "string", "format": "date-time" },
            good ["2024-02-29T12:00:00+02:00" => "2024-02-29T10:00:00Z"], bad ["2024-02-29", ""];
        uuid::Uuid => { "type": "string", "format": "uuid" },
            good ["67e55044-10b1-426f-9247-bb680e5fe0c8" => "67e55044-10b1-426f-9247-bb680e5fe0c8"], bad ["67e55044", 1];
        url::Url => { "type": "string", "format": "uri" }, good ["https://example.org/x"], bad ["not a url"];
        Duration => { "type": "string", "pattern": DURATION, "maxLength": 64 },
            good ["5s" => "5s", "1h 30m" => "5400s", "250 ms" => "250ms", { "secs": 1, "nanos": 5 } => "1.000000005s"],
            bad [5, 0.5, "soon", "5", "-5s", "", null, { "secs": 1 }, ["5s"]];
        Vec<Duration> => { "type": "array", "items": { "type": "string", "pattern": DURATION, "maxLength": 64 } },
            good [["5s", { "secs": 1, "nanos": 0 }] => "[5s, 1s]"], bad ["5s", ["soon"], [5]];
        Bytes => { "type": "string", "contentEncoding": "base64" },
            good ["aGk_" => "Bytes([104, 105, 63])", "data:image/png;base64,aG k=" => "Bytes([104, 105])", "" => "Bytes([])"],
            bad ["a", "aGk!", 5, null, [104]];
        Level => { "oneOf": [
                { "type": "string", "enum": ["very-high"] },
                { "type": "string", "const": "low", "description": "Nothing much" }
            ] }, good ["very-high" => "VeryHigh", "low" => "Low"], bad ["very_high"];
        plain::Wrapped => { "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "null" }] },
            good [3 => "Wrapped(Some(3))", null => "Wrapped(None)"], bad ["x"];
    }
}

#[tokio::test]
async fn each_type_publishes_its_schema_and_is_read_as_it_says() {
    assert_cases(types()).await;
}

#[mcp_type]
#[derive(Debug)]
struct Tree {
    value: i32,
    #[serde(default)]
    children: Vec<Tree>,
}

#[tokio::test]
async fn only_recursion_makes_definitions() {
    #[mcp_tool]
    fn grow(tree: Tree, twig: Option<Box<Tree>>) -> String {
        fn sum(tree: &Tree) -> i32 {
            tree.value + tree.children.iter().map(sum).sum::<i32>()
        }
        format!("{} {:?}", sum(&tree), twig.as_deref().map(sum))
    }
    let server = serve(mcp_runtime::server!().tool::<grow>());
    assert_eq!(
        only_tool(&server).await["inputSchema"],
        json!({
            "type": "object",
            "properties": { "tree": { "$ref": "#/$defs/Tree" }, "twig": { "$ref": "#/$defs/Tree" } },
            "required": ["tree"],
            "$defs": {
                "Tree": {
                    "type": "object",
                    "properties": {
                        "value": { "type": "integer" },
                        "children": { "type": "array", "items": { "$ref": "#/$defs/Tree" }, "default": [] }
                    },
                    "required": ["value"]
                }
            }
        })
    );
    let tree = json!({ "value": 1, "children": [{ "value": "2" }, { "value": 3.0, "children": [] }] });
    server.call("grow", json!({ "tree": tree, "twig": null })).await.expect_text("6 None");
    let text = failure(
        &server.call("grow", json!({ "tree": { "value": 1, "children": [{ "value": "x" }] } })).await,
    );
    assert!(text.contains("- tree.children[0].value: \"x\" is not an integer"), "{text}");
}

#[tokio::test]
async fn two_types_with_one_name_have_separate_definitions() {
    mod a {
        use mcp_runtime::prelude::*;
        #[mcp_type]
        #[derive(Debug)]
        pub(super) struct Node {
            pub(super) left: Option<Box<Node>>,
        }
    }
    mod b {
        use mcp_runtime::prelude::*;
        #[mcp_type]
        #[derive(Debug)]
        pub(super) struct Node {
            pub(super) right: Option<Box<Node>>,
        }
    }
    #[mcp_tool]
    fn both(one: a::Node, two: b::Node) -> String {
        format!("{} {}", one.left.is_some(), two.right.is_some())
    }
    let server = serve(mcp_runtime::server!().tool::<both>());
    let sent = json!({ "one": { "left": {} }, "two": { "right": { "right": null } } });
    server.call("both", sent).await.expect_text("true true");
    let text = failure(&server.call("both", json!({ "one": { "left": 1 }, "two": { "right": 2 } })).await);
    assert!(text.contains("- one.left: 1") && text.contains("- two.right: 2"), "{text}");
}

macro_rules! types {
    ($module:ident, #[$attribute:meta]) => {
        mod $module {
            use std::collections::BTreeMap;

            #[$attribute]
            #[derive(Debug, Default)]
            #[serde(default, rename_all = "camelCase")]
            pub(super) struct Filter {
                /// Who wrote it
                first_author: Option<u32>,
                #[serde(alias = "sections")]
                parts: Vec<Filter>,
                #[serde(skip)]
                cached: u8,
                names: BTreeMap<String, Box<Filter>>,
            }

            #[$attribute]
            #[derive(Debug)]
            pub(super) struct Wrapped(Option<u32>);

            #[$attribute]
            #[derive(Debug)]
            #[serde(rename_all = "lowercase")]
            pub(super) enum Color {
                Red,
                #[serde(rename = "verde")]
                Green,
            }

            #[$attribute]
            #[derive(Debug)]
            #[serde(tag = "kind", deny_unknown_fields)]
            #[schemars(rename = "OneStep")]
            pub(super) enum Step {
                Move { color: Color, then: Option<Box<Step>> },
                Stop(Filter),
                End,
            }

            #[$attribute]
            #[derive(Debug)]
            pub(super) struct Optional {
                wrapped: Wrapped,
                #[serde(default = "three", skip_serializing_if = "is_three")]
                r#type: u32,
                #[serde(flatten)]
                filter: Filter,
            }

            fn three() -> u32 {
                3
            }

            fn is_three(n: &u32) -> bool {
                *n == 3
            }
        }
    };
}
types!(plain, #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]);
types!(attributed, #[mcp_runtime::mcp_type]);

/// The schema, and what each text is read as and written as.
fn describe<T>(texts: &[&str]) -> Vec<String>
where
    T: serde::Serialize + serde::de::DeserializeOwned + schemars::JsonSchema + std::fmt::Debug,
{
    let mut lines = vec![format!("{} {:?}", T::schema_name(), schemars::schema_for!(T))];
    for text in texts {
        let value = serde_json::from_str::<T>(text);
        lines.push(format!("{text}: {value:?} {:?}", value.as_ref().ok().map(serde_json::to_string)));
    }
    lines
}

#[test]
fn types_behave_as_if_they_had_the_derives_of_serde_and_schemars() {
    let texts = [
        "null",
        "1",
        "\"red\"",
        "\"verde\"",
        "\"Green\"",
        "{}",
        r#"{"firstAuthor":3,"sections":[{"parts":[]}],"names":{"a":{}},"cached":1}"#,
        r#"{"firstAuthor":"x"}"#,
        r#"{"kind":"Move","color":"red"}"#,
        r#"{"kind":"Move","color":"red","x":1}"#,
        r#"{"kind":"Stop","firstAuthor":1}"#,
        r#"{"kind":"Run"}"#,
        r#"{"wrapped":null,"firstAuthor":7}"#,
        r#"{"wrapped":5,"type":4}"#,
    ];
    macro_rules! compare {
        ($($name:ident)*) => {$(
            assert_eq!(describe::<attributed::$name>(&texts), describe::<plain::$name>(&texts));
        )*};
    }
    compare!(Filter Wrapped Color Step Optional);
}

mod other {
    use super::*;

    /// Not that of the standard library.
    #[mcp_type]
    #[derive(Debug)]
    pub(super) struct Duration {
        pub(super) days: u8,
    }
}

#[tokio::test]
async fn durations_are_text_where_they_are_written_so() {
    type Wait = Duration;

    #[mcp_type]
    #[derive(Debug)]
    struct Times {
        one: std::time::Duration,
        maybe: Option<Duration>,
        all: Vec<Duration>,
        alias: Wait,
        other: Option<other::Duration>,
        every: Every,
    }

    #[mcp_type]
    #[derive(Debug)]
    enum Every {
        Second,
        Time(Duration),
        Between { least: Duration, most: Option<Duration> },
    }

    #[mcp_tool(name = "keep")]
    fn keep(
        times: Times,
        #[mcp(default = "90s", example = "5s")] within: Duration,
        #[mcp(default = "5s")] alias: Wait,
        #[mcp(default = "2m")] maybe: Option<Duration>,
        other: Option<other::Duration>,
    ) -> Json<Times> {
        assert_eq!(
            (within, alias, maybe),
            (90 * Wait::from_secs(1), Wait::from_secs(5), Some(Wait::from_secs(120)))
        );
        assert!(other.is_none_or(|other| other.days == 3));
        Json(times)
    }
    let server = serve(mcp_runtime::server!().tool::<keep>());
    let tool = only_tool(&server).await;
    let text = json!({ "type": "string", "pattern": DURATION, "maxLength": 64 });
    let properties = &tool["inputSchema"]["properties"];
    assert_eq!(
        properties["within"],
        json!({ "type": "string", "pattern": DURATION, "maxLength": 64, "default": "1m 30s", "examples": ["5s"] })
    );
    assert_eq!(properties["maybe"]["default"], "2m");
    assert_eq!(properties["alias"]["default"], json!({ "secs": 5, "nanos": 0 }));
    assert!(properties["other"]["properties"].get("days").is_some(), "{tool}");
    for schema in [&properties["times"], &tool["outputSchema"]] {
        let properties = &schema["properties"];
        assert_eq!((&properties["one"], &properties["all"]["items"]), (&text, &text), "{tool}");
        assert!(properties["alias"]["properties"].get("secs").is_some(), "{tool}");
        assert!(properties["other"].to_string().contains("days"), "{tool}");
        assert!(properties["every"].to_string().contains(&text.to_string()), "{tool}");
    }
    assert_eq!(properties["times"]["properties"]["maybe"], text);
    assert_eq!(properties["times"]["required"], json!(["one", "all", "alias", "every"]));

    let times = json!({
        "one": "1h 30m", "all": ["5s", { "secs": 1, "nanos": 0 }], "alias": { "secs": 1, "nanos": 0 },
        "other": { "days": 3 }, "every": { "Between": { "least": "1ms" } }
    });
    let reply = server.call("keep", json!({ "times": times, "other": { "days": 3 } })).await;
    let kept = &reply.value()["structuredContent"];
    assert_eq!(kept["one"], "1h 30m", "{reply}");
    assert_eq!((&kept["maybe"], &kept["all"]), (&Value::Null, &json!(["5s", "1s"])), "{reply}");
    assert_eq!(kept["alias"], json!({ "secs": 1, "nanos": 0 }), "{reply}");

    let wrong = json!({ "one": 5, "all": ["soon"], "alias": "5s", "every": { "Time": "later" } });
    let text = failure(&server.call("keep", json!({ "times": wrong, "within": "soon" })).await);
    for expected in [
        "\n- times.alias: ",
        "\n- within: \"soon\" is not a duration; write numbers with units, such as `5s`, `250ms` or `1h 30m`",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    let wrong = json!({ "one": 5, "all": [], "alias": { "secs": 1, "nanos": 0 }, "every": "Second" });
    let text = failure(&server.call("keep", json!({ "times": wrong })).await);
    assert!(text.contains("\n- times.one: ") && text.contains("is not a duration; write numbers"), "{text}");
}

#[tokio::test]
async fn a_prompt_and_a_uri_take_durations_as_text() {
    #[mcp_prompt]
    fn remind(after: Duration, every: Option<Duration>) -> String {
        format!("{after:?} {every:?}")
    }
    #[mcp_resource(uri = "log://{since}")]
    fn log(since: Duration) -> String {
        format!("{since:?}")
    }
    let server = serve(mcp_runtime::server!().prompt::<remind>().resource::<log>());
    let reply =
        server.prompt("remind", json!({ "after": "1h 30m", "every": "{\"secs\":1,\"nanos\":0}" })).await;
    assert!(reply.to_string().contains("5400s Some(1s)"), "{reply}");
    let reply = server.read("log://5s").await;
    assert!(reply.to_string().contains("\"5s\""), "{reply}");
    let reply = server.read("log://soon").await;
    assert!(reply.to_string().contains("is not a duration"), "{reply}");
}
