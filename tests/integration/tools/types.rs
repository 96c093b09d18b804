//! Argument types: their schemas, and that values that match the schema are deserialized.

use std::collections::{HashMap, HashSet};

use crate::prelude::*;

macro_rules! cases {
    ($($test:ident: $ty:ty => $schema:tt, good [$($sent:tt => $seen:expr),* $(,)?], bad [$($bad:tt),* $(,)?];)*) => {$(
        #[tokio::test]
        async fn $test() {
            #[mcp_tool]
            fn tool(v: $ty) -> String {
                format!("{v:?}")
            }
            let (good, bad) = (vec![$((json!($sent), $seen)),*], vec![$(json!($bad)),*]);
            assert_type(|| mcp_runtime::server!().tool::<tool>(), json!($schema), good, bad).await;
        }
    )*};
}

/// A tool with an argument of the type publishes this schema, sees the valid values so, and refuses the others, whether it is
/// strict or not.
async fn assert_type(
    builder: fn() -> ServerBuilder,
    schema: Value,
    good: Vec<(Value, &str)>,
    bad: Vec<Value>,
) {
    for server in [serve(builder()), serve(builder().lists(|lists| lists.strict()))] {
        let published = only_tool(&server).await["inputSchema"].clone();
        assert_eq!((&published["properties"]["v"], published.get("$defs")), (&schema, None));
        for (value, seen) in &good {
            let reply = server.call("tool", json!({ "v": value })).await;
            assert!(!reply.is_error(), "{value}: {reply}");
            assert_eq!(reply.text(), *seen, "{value}");
        }
        for value in &bad {
            let text = failure(&server.call("tool", json!({ "v": value })).await);
            assert!(text.contains("\n- v"), "{value}: {text}");
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

#[mcp_type]
#[derive(Debug)]
enum Plain {
    A,
    B,
}

cases! {
    bool: bool => { "type": "boolean" }, good [true => "true"], bad [1, "yes", null];
    char: char => { "type": "string", "minLength": 1, "maxLength": 1 },
        good ["é" => "'é'", "😀" => "'😀'"], bad ["", "ab", 1];
    i8: i8 => { "type": "integer", "minimum": -128, "maximum": 127 }, good [(-128) => "-128"], bad [128, 1.5];
    u16: u16 => { "type": "integer", "minimum": 0, "maximum": 65535 }, good [65535 => "65535"], bad [65536, (-1)];
    u32: u32 => { "type": "integer", "minimum": 0 }, good [4294967295_u32 => "4294967295"], bad [4294967296_u64, (-1)];
    i32: i32 => { "type": "integer" }, good [(-2147483648) => "-2147483648"], bad [2147483648_u64];
    i64: i64 => { "type": "integer" }, good [9007199254740993_i64 => "9007199254740993"], bad [9223372036854775808_u64];
    u64: u64 => { "type": "integer", "minimum": 0 }, good [18446744073709551615_u64 => "18446744073709551615"], bad [1e20];
    i128: i128 => { "type": "integer" }, good [(-5) => "-5", 9223372036854775808_u64 => "9223372036854775808"], bad ["x", 1.5];
    u128: u128 => { "type": "integer", "minimum": 0 }, good [5 => "5"], bad [(-1), 0.5];
    f32: f32 => { "type": "number" }, good [0.5 => "0.5", 1 => "1.0"], bad [null, "x"];
    string: String => { "type": "string" },
        good ["" => "\"\"", "a\n\u{0}\u{2028}" => "\"a\\n\\0\\u{2028}\""], bad [1, null];
    boxed: Box<i16> => { "type": "integer", "minimum": -32768, "maximum": 32767 }, good [3 => "3"], bad [40000];
    box_str: Box<str> => { "type": "string" }, good ["x" => "\"x\""], bad [3];
    vec: Vec<bool> => { "type": "array", "items": { "type": "boolean" } }, good [[true] => "[true]", [] => "[]"], bad [[1], { "a": true }];
    array: [u8; 2] => { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 255 }, "minItems": 2, "maxItems": 2 },
        good [[1, 2] => "[1, 2]"], bad [[1], [1, 2, 3], [1, 256]];
    set: HashSet<u8> => { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 255 }, "uniqueItems": true },
        good [[1] => "{1}"], bad [[1, 1]];
    tuple: (u8, String) => {
            "type": "array", "prefixItems": [{ "type": "integer", "minimum": 0, "maximum": 255 }, { "type": "string" }],
            "items": { "anyOf": [{ "type": "integer", "minimum": 0, "maximum": 255 }, { "type": "string" }] },
            "minItems": 2, "maxItems": 2
        }, good [[1, "a"] => "(1, \"a\")"], bad [[1], ["a", 1], [1, "a", 2]];
    pair: (f64, f64) => { "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": 2 },
        good [[1, 2.5] => "(1.0, 2.5)"], bad [[1], [1, 2, 3], [1, "a"]];
    map: HashMap<String, i64> => { "type": "object", "additionalProperties": { "type": "integer" } },
        good [{ "k": 1 } => "{\"k\": 1}", {} => "{}"], bad [{ "k": "x" }, [], "x"];
    map_of_lists: BTreeMap<String, Vec<Option<bool>>> => {
            "type": "object", "additionalProperties": {
                "type": "array", "items": { "anyOf": [{ "type": "boolean" }, { "type": "null" }] }
            }
        }, good [{ "k": [null, true] } => "{\"k\": [None, Some(true)]}"], bad [{ "k": null }, { "k": [1] }];
    enum_of_names: Plain => { "type": "string", "enum": ["A", "B"] }, good ["A" => "A"], bad ["a", "C", 0, null];
    any_object: serde_json::Map<String, Value> => { "type": "object", "properties": {}, "additionalProperties": true },
        good [{ "a": 1 } => "{\"a\": Number(1)}"], bad [[]];
    value: Value => {}, good [{ "a": [1] } => "Object {\"a\": Array [Number(1)]}", null => "Null"], bad [];
    date: chrono::NaiveDate => { "type": "string", "format": "date" }, good ["2024-02-29" => "2024-02-29"], bad ["2023-02-29", "x", 5];
    time: chrono::DateTime<chrono::Utc> => { "type": "string", "format": "date-time" },
        good ["2024-02-29T12:00:00+02:00" => "2024-02-29T10:00:00Z"], bad ["2024-02-29", ""];
    uuid: uuid::Uuid => { "type": "string", "format": "uuid" },
        good ["67e55044-10b1-426f-9247-bb680e5fe0c8" => "67e55044-10b1-426f-9247-bb680e5fe0c8"], bad ["67e55044", 1];
}

#[tokio::test]
async fn urls_are_strings_with_a_format() {
    #[mcp_tool]
    fn open(v: url::Url) -> String {
        v.host_str().unwrap_or_default().to_owned()
    }
    let server = serve(mcp_runtime::server!().tool::<open>());
    assert_eq!(property(&server, "v").await, json!({ "type": "string", "format": "uri" }));
    server.call("open", json!({ "v": "https://example.org/x" })).await.expect_text("example.org");
    server.call("open", json!({ "v": "not a url" })).await.expect_failure("- v: ");
}

#[tokio::test]
async fn described_variants_keep_their_texts() {
    #[mcp_tool]
    fn set(v: Level, other: Option<Level>) -> String {
        format!("{v:?} {other:?}")
    }
    let server = serve(mcp_runtime::server!().tool::<set>());
    let schema = only_tool(&server).await["inputSchema"].clone();
    let text = schema.to_string();
    assert!(text.contains("Nothing much") && text.contains("very-high"), "{text}");
    assert_eq!(schema["required"], json!(["v"]));
    assert!(!text.contains("null"), "{text}");
    server.call("set", json!({ "v": "very-high", "other": "low" })).await.expect_text("VeryHigh Some(Low)");
    server.call("set", json!({ "v": "low", "other": null })).await.expect_text("Low None");
    server.call("set", json!({ "v": "very_high" })).await.expect_failure("did you mean \"very-high\"?");
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
    let mut deep = json!({ "value": 1 });
    for _ in 0..200 {
        deep = json!({ "value": 1, "children": [deep] });
    }
    failure(&server.call("grow", json!({ "tree": deep })).await);
    server.call("grow", json!({ "tree": { "value": 7 } })).await.expect_text("7 None");
}

mod derived {
    //! User-written derives.

    #[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    pub(super) struct Place {
        pub(super) post_code: String,
        #[serde(default)]
        pub(super) country: Option<String>,
        #[serde(skip)]
        pub(super) hidden: u8,
    }

    #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
    #[serde(untagged)]
    pub(super) enum Id {
        Number(u64),
        Name(String),
    }

    #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
    pub(super) struct Wrapper(pub(super) u8);
}

#[tokio::test]
async fn user_written_derives_work() {
    #[mcp_tool]
    fn go(place: derived::Place, id: derived::Id, wrapper: derived::Wrapper) -> String {
        let id = match id {
            derived::Id::Number(number) => format!("number {number}"),
            derived::Id::Name(name) => format!("name {name}"),
        };
        format!("{} {:?} {} {id} {}", place.post_code, place.country, place.hidden, wrapper.0)
    }
    let server = serve(mcp_runtime::server!().tool::<go>());
    assert_eq!(
        only_tool(&server).await["inputSchema"]["properties"],
        json!({
            "place": {
                "type": "object",
                "properties": { "postCode": { "type": "string" }, "country": { "type": "string" } },
                "required": ["postCode"],
                "additionalProperties": false
            },
            "id": { "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string" }] },
            "wrapper": { "type": "integer", "minimum": 0, "maximum": 255 }
        })
    );
    let sent = json!({ "place": { "postCode": "1" }, "id": "x", "wrapper": "9" });
    server.call("go", sent).await.expect_text("1 None 0 name x 9");
    let sent = json!({ "place": { "postCode": "1" }, "id": 7, "wrapper": 9 });
    server.call("go", sent).await.expect_text("1 None 0 number 7 9");
    let sent = json!({ "place": { "postCode": "1", "hidden": 1 }, "id": true, "wrapper": 9 });
    let text = failure(&server.call("go", sent).await);
    assert!(text.contains("- place: unknown field `hidden`") && text.contains("- id: true"), "{text}");
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
            pub(super) struct Pair(u32, #[schemars(length(max = 3))] String);

            #[$attribute]
            #[derive(Debug)]
            pub(super) struct Wrapped(Option<u32>);

            #[$attribute]
            #[derive(Debug)]
            pub(super) struct Unit;

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
            #[serde(untagged)]
            pub(super) enum Any {
                Text(String),
                Step { step: Step },
                List(Vec<Any>),
            }

            #[$attribute]
            #[derive(Debug)]
            #[serde(rename = "Given")]
            pub(super) struct Named {
                a: Wrapped,
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
        "\"a\"",
        "\"red\"",
        "\"verde\"",
        "\"Green\"",
        "[1,\"a\"]",
        "[1]",
        "[[\"b\"]]",
        "{}",
        r#"{"firstAuthor":3,"sections":[{"parts":[]}],"names":{"a":{}},"cached":1}"#,
        r#"{"firstAuthor":"x"}"#,
        r#"{"kind":"Move","color":"red"}"#,
        r#"{"kind":"Move","color":"red","x":1}"#,
        r#"{"kind":"Stop","firstAuthor":1}"#,
        r#"{"kind":"Run"}"#,
        r#"{"step":{"kind":"End"}}"#,
        r#"{"wrapped":null,"firstAuthor":7}"#,
        r#"{"wrapped":5,"type":4}"#,
        r#"{"a":5}"#,
    ];
    macro_rules! compare {
        ($($name:ident)*) => {$(
            assert_eq!(describe::<attributed::$name>(&texts), describe::<plain::$name>(&texts));
        )*};
    }
    compare!(Filter Pair Wrapped Unit Color Step Any Named Optional);
    assert_ne!(describe::<attributed::Filter>(&texts), describe::<attributed::Pair>(&texts));
}

#[tokio::test]
async fn integers_of_128_bits_are_exact_everywhere() {
    use mcp_tests::support::LineConnection;

    #[mcp_type]
    #[derive(Debug)]
    struct Wide {
        big: u128,
        list: Vec<i128>,
    }
    #[mcp_tool]
    fn show(n: u128, wide: Option<Wide>, small: Option<u8>) -> String {
        format!("{n} {wide:?} {small:?}")
    }
    #[mcp_tool]
    fn give() -> Json<Wide> {
        Json(Wide { big: u128::MAX, list: vec![i128::MIN] })
    }
    let built = mcp_runtime::server!().tool::<show>().tool::<give>().build().expect("a server");
    let mut server = LineConnection::serve(&built, 1 << 16);
    let (max, min) = (u128::MAX.to_string(), i128::MIN.to_string());
    let mut call = async |tool: &str, arguments: String| -> String {
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}"#;
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{meta}}}}}"#
        );
        server.write(line.as_bytes()).await;
        server.write(b"\n").await;
        server.message().await["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(call("show", format!(r#"{{"n":{max}}}"#)).await, format!("{max} None None"));
    let nested = format!("{max} Some(Wide {{ big: {max}, list: [{min}] }}) Some(5)");
    for small in ["5", "\"5\"", "5.0"] {
        let sent = format!(r#"{{"n":{max},"wide":{{"big":{max},"list":[{min}]}},"small":{small}}}"#);
        assert_eq!(call("show", sent).await, nested, "a repair of another argument keeps every digit");
    }
    assert_eq!(call("show", format!(r#"{{"n":"{max}"}}"#)).await, format!("{max} None None"));
    assert!(call("show", r#"{"n":340282366920938463463374607431768211456}"#.into()).await.contains("- n: "));
    assert_eq!(call("give", "{}".into()).await, format!(r#"{{"big":{max},"list":[{min}]}}"#));

    // more digits than the type has, and numbers that are not integers, at the root and inside of values
    let (lowest, highest) = (i128::MIN, i128::MAX);
    for (arguments, line) in [
        (format!(r#"{{"n":{max}0}}"#), format!("n: {max}0 is greater than the maximum of {max}")),
        (r#"{"n":1.5}"#.to_owned(), "n: 1.5 is not an integer".to_owned()),
        (r#"{"n":1e39}"#.to_owned(), format!("n: 1e39 is not an integer from 0 to {max}")),
        (
            format!(r#"{{"n":1,"wide":{{"big":{max}1,"list":[]}}}}"#),
            format!("wide.big: {max}1 is greater than the maximum of {max}"),
        ),
        (
            format!(r#"{{"n":1,"wide":{{"big":1,"list":[0,{max}]}}}}"#),
            format!("wide.list[1]: {max} is greater than the maximum of {highest}"),
        ),
        (
            format!(r#"{{"n":1,"wide":{{"list":[{min}0],"big":1}}}}"#),
            format!("wide.list[0]: {min}0 is less than the minimum of {lowest}"),
        ),
    ] {
        let text = call("show", arguments).await;
        assert!(text.contains(&format!("\n- {line}")), "{line}: {text}");
        assert_eq!(text.matches("\n- ").count(), 1, "{text}");
    }

    #[mcp_tool]
    fn wide_default(#[mcp(default = u128::MAX)] n: u128) -> String {
        n.to_string()
    }
    let error = build_error(mcp_runtime::server!().tool::<wide_default>());
    assert!(error.contains("`n`: its default cannot be published"), "{error}");
}
