//! Every form that serde gives an enum × every mistake: what a model reads has one true line for each mistake, and none that
//! is false.

use crate::prelude::*;

#[mcp_type]
#[derive(Debug)]
struct Point {
    x: i32,
    y: i32,
}

/// By the name of the variant.
#[mcp_type]
#[derive(Debug)]
enum External {
    Off,
    Level(i32),
    At { x: i32, label: Option<String> },
    Of(Point),
}

/// By a member beside the others.
#[mcp_type]
#[derive(Debug)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Internal {
    Off,
    At { x: i32, label: Option<String> },
    Of(Point),
    Nested { inner: Box<Internal> },
}

/// By a member, and the value is another.
#[mcp_type]
#[derive(Debug)]
#[serde(tag = "t", content = "c", rename_all = "snake_case")]
enum Adjacent {
    Off,
    Level(i32),
    At { x: i32 },
    Nested(Box<Adjacent>),
}

/// By what fits.
#[mcp_type]
#[derive(Debug)]
#[serde(untagged)]
enum Untagged {
    Level(i32),
    At { x: i32, y: i32 },
    Named { name: String },
}

/// A tag among the members of a struct.
#[mcp_type]
#[derive(Debug)]
struct Flattened {
    id: u32,
    #[serde(flatten)]
    shape: Internal,
}

/// Members that may be absent.
#[mcp_type]
#[derive(Debug)]
struct Defaulted {
    #[serde(default)]
    n: u32,
    o: Option<u32>,
    #[serde(default)]
    m: u32,
}

#[mcp_tool]
fn take(
    external: Option<External>,
    internal: Option<Internal>,
    adjacent: Option<Adjacent>,
    untagged: Option<Untagged>,
    flattened: Option<Flattened>,
    list: Option<Vec<Internal>>,
    map: Option<BTreeMap<String, External>>,
    d: Option<Defaulted>,
    #[mcp(default = 5)] count: u32,
) -> String {
    let shown = [
        external.map(|value| format!("{value:?}")),
        internal.map(|value| format!("{value:?}")),
        adjacent.map(|value| format!("{value:?}")),
        untagged.map(|value| format!("{value:?}")),
        flattened.map(|value| format!("{value:?}")),
        list.map(|value| format!("{value:?}")),
        map.map(|value| format!("{value:?}")),
        d.map(|value| format!("{value:?}")),
    ];
    shown.into_iter().flatten().next().unwrap_or_else(|| count.to_string())
}

/// The name of an argument; then each value that is sent, and what is reported, or what the function gets.
const TABLE: &str = r#"
external
    "Of"
        external: "Of" is not one of "Off"; did you mean "Off"?
    "Offf"
        external: "Offf" is not one of "Off"; did you mean "Off"?
    {}
        external: an empty object matches none of: an object with `Level`; an object with `At`; an object with `Of`
    {"Att":{"x":1}}
        external: the key `Att` is not one of `Level`, `At`, `Of`; did you mean `At`?
    {"At":{}}
        external.At.x: is missing (an integer)
    {"At":{"x":"a"}}
        external.At.x: "a" is not an integer
    {"Level":"a"}
        external.Level: "a" is not an integer
    {"Level":"3"}
        => Level(3)
    "{\"Level\":\"3\"}"
        => Level(3)
    "{\"At\":{\"x\":3}}"
        => At { x: 3, label: None }
    {"Of":{"x":1}}
        external.Of.y: is missing (an integer)
    {"At":{"x":1,"z":2}}
        => At { x: 1, label: None }
    {"At":{"x":1},"Level":2}
        external: an object matches none of: an object with `Level`; an object with `At`; an object with `Of`
    3
        external: 3 matches none of: one of "Off"; an object with `Level`; an object with `At`; an object with `Of`
    ["Off"]
        external: an array of 1 item matches none of: one of "Off"; an object with `Level`; an object with `At`; an object with `Of`
    {"Level":5000000000}
        external.Level: 5000000000 is greater than the maximum of 2147483647
internal
    {}
        internal.kind: is missing (one of "off", "at", "of", "nested")
    {"kind":"att","x":1}
        internal.kind: "att" is not one of "off", "at", "of", "nested"; did you mean "at"?
    {"kind":3,"x":1}
        internal.kind: 3 is not one of "off", "at", "of", "nested"
    {"kind":"at"}
        internal.x: is missing (an integer)
    {"kind":"at","x":"a"}
        internal.x: "a" is not an integer
    {"kind":"at","x":"3"}
        => At { x: 3, label: None }
    "{\"kind\":\"at\",\"x\":3}"
        => At { x: 3, label: None }
    {"kind":"at","x":3,"label":4,"z":5}
        internal.label: 4 is not a string
    {"kind":"of","x":3}
        internal.y: is missing (an integer)
    {"kind":"of"}
        internal.x: is missing (an integer)
        internal.y: is missing (an integer)
    {"kind":"nested"}
        internal.inner: is missing (an object with `kind`: one of "off", "at", "of", "nested")
    {"kind":"nested","inner":{}}
        internal.inner.kind: is missing (one of "off", "at", "of", "nested")
    {"kind":"nested","inner":{"kind":"at"}}
        internal.inner.x: is missing (an integer)
    {"kind":"nested","inner":{"kind":"nested","inner":{"kind":"at","x":"a"}}}
        internal.inner.inner.x: "a" is not an integer
    {"kind":"nested","inner":"{\"kind\":\"at\",\"x\":\"1\"}"}
        => Nested { inner: At { x: 1, label: None } }
    "off"
        internal: "off" is not an object
    {"kind":"at","x":5000000000}
        internal.x: 5000000000 is greater than the maximum of 2147483647
adjacent
    {}
        adjacent.t: is missing (one of "off", "level", "at", "nested")
    {"t":"of"}
        adjacent.t: "of" is not one of "off", "level", "at", "nested"; did you mean "off"?
    {"t":"level"}
        adjacent.c: is missing (an integer)
    {"t":"level","c":"a"}
        adjacent.c: "a" is not an integer
    {"t":"level","c":"3"}
        => Level(3)
    {"t":"at","c":{}}
        adjacent.c.x: is missing (an integer)
    {"t":"at","c":{"x":"a"}}
        adjacent.c.x: "a" is not an integer
    {"t":"at","x":3}
        adjacent.c: is missing (an object with `x`)
    {"t":"nested","c":{"t":"at","c":{}}}
        adjacent.c.c.x: is missing (an integer)
    "{\"t\":\"level\",\"c\":\"3\"}"
        => Level(3)
    {"t":"level","c":5000000000}
        adjacent.c: 5000000000 is greater than the maximum of 2147483647
untagged
    {}
        untagged: an empty object matches none of: an object with `x`, `y`; an object with `name`
    "3"
        => Level(3)
    "x"
        untagged: "x" matches none of: an integer; an object with `x`, `y`; an object with `name`
    {"x":1}
        untagged: an object matches none of: an object with `x`, `y`; an object with `name`
    {"x":"1","y":2}
        => At { x: 1, y: 2 }
    {"x":1,"y":"a"}
        untagged.y: "a" is not an integer
    {"name":3}
        untagged.name: 3 is not a string
    "{\"x\":1,\"y\":2}"
        => At { x: 1, y: 2 }
    ["x"]
        untagged: an array of 1 item matches none of: an integer; an object with `x`, `y`; an object with `name`
    5000000000
        untagged: 5000000000 is greater than the maximum of 2147483647
    "3.0"
        => Level(3)
    "[1]"
        untagged: "[1]" matches none of: an integer; an object with `x`, `y`; an object with `name`
flattened
    {}
        flattened.id: is missing (an integer)
        flattened.kind: is missing (one of "off", "at", "of", "nested")
    {"id":1}
        flattened.kind: is missing (one of "off", "at", "of", "nested")
    {"id":1,"kind":"att","x":1}
        flattened.kind: "att" is not one of "off", "at", "of", "nested"; did you mean "at"?
    {"id":1,"kind":"at"}
        flattened.x: is missing (an integer)
    {"id":"a","kind":"at"}
        flattened.id: "a" is not an integer
        flattened.x: is missing (an integer)
    {"id":1,"kind":"at","x":"a"}
        flattened.x: "a" is not an integer
    {"id":"1","kind":"at","x":"2"}
        => Flattened { id: 1, shape: At { x: 2, label: None } }
    {"id":1,"kind":"nested","inner":{"kind":"at"}}
        flattened.inner.x: is missing (an integer)
    {"id":5000000000,"kind":"off"}
        flattened.id: 5000000000 is greater than the maximum of 4294967295
list
    [{"kind":"at"},{"kind":"att"},{"kind":"off"},{},null,3]
        list[0].x: is missing (an integer)
        list[1].kind: "att" is not one of "off", "at", "of", "nested"; did you mean "at"?
        list[3].kind: is missing (one of "off", "at", "of", "nested")
        list[4]: null is not an object
        list[5]: 3 is not an object
    "[{\"kind\":\"at\",\"x\":\"1\"}]"
        => [At { x: 1, label: None }]
    [{"kind":"at","x":"1"},{"kind":"of","x":"1","y":2.0}]
        => [At { x: 1, label: None }, Of(Point { x: 1, y: 2 })]
map
    {"a":{"Level":"a"},"b":"Offf","c":{"At":{}},"d":null}
        map.a.Level: "a" is not an integer
        map.b: "Offf" is not one of "Off"; did you mean "Off"?
        map.c.At.x: is missing (an integer)
        map.d: null matches none of: one of "Off"; an object with `Level`; an object with `At`; an object with `Of`
    {"a":{"Level":"1"}}
        => {"a": Level(1)}
    "{\"a\":\"{\\\"Level\\\":\\\"1\\\"}\"}"
        => {"a": Level(1)}
count
    null
        => 5
    -1
        count: -1 is less than the minimum of 0
d
    {"n":null}
        d.n: null is not an integer
    {"n":null,"o":null,"m":"x"}
        d.m: "x" is not an integer
"#;

/// The lines of the report, or what the function got.
async fn outcome(server: &TestServer, tool: &str, arguments: Value) -> Vec<String> {
    let reply = server.call(tool, arguments).await;
    if !reply.is_error() {
        return vec![format!("=> {}", reply.text())];
    }
    failure(&reply).lines().filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect()
}

#[tokio::test]
async fn each_mistake_in_each_form_of_an_enum_has_one_true_line() {
    let server = serve(mcp_runtime::server!().tool::<take>());
    let mut argument = "";
    let mut cases: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.is_empty()) {
        match (line.strip_prefix("        "), line.strip_prefix("    ")) {
            (Some(expected), _) => cases.last_mut().expect("a value").2.push(expected),
            (None, Some(sent)) => cases.push((argument, sent, Vec::new())),
            (None, None) => argument = line,
        }
    }
    assert!(cases.len() > 60, "{}", cases.len());
    for (argument, sent, expected) in cases {
        let value: Value = serde_json::from_str(sent).unwrap_or_else(|error| panic!("{sent}: {error}"));
        let found = outcome(&server, "take", json!({ argument: value })).await;
        assert_eq!(found, expected, "{argument} {sent}");
    }
}

#[tokio::test]
async fn a_missing_enum_is_told_its_tag_and_a_strict_tool_reads_no_text() {
    #[mcp_tool(name = "needs", strict)]
    fn take_strictly(internal: Internal, external: External, untagged: Option<Untagged>) -> String {
        format!("{internal:?} {external:?} {untagged:?}")
    }
    let server = serve(mcp_runtime::server!().tool::<take_strictly>());
    assert_eq!(
        outcome(&server, "needs", json!({})).await,
        [
            "external: is missing (one of \"Off\" or an object with `Level` or an object with `At` or an object with `Of`)",
            "internal: is missing (an object with `kind`: one of \"off\", \"at\", \"of\", \"nested\")",
        ]
    );
    let sent = json!({ "internal": "{\"kind\":\"off\"}", "external": "{\"Level\":1}", "untagged": "3" });
    assert_eq!(
        outcome(&server, "needs", sent).await,
        [
            "external: \"{\\\"Level\\\":1}\" matches none of: one of \"Off\"; an object with `Level`; an object with `At`; an object with `Of`",
            "internal: \"{\\\"kind\\\":\\\"off\\\"}\" is not an object",
            "untagged: \"3\" matches none of: an integer; an object with `x`, `y`; an object with `name`",
        ]
    );
    let sent =
        json!({ "internal": { "kind": "at", "x": 3.0 }, "external": { "Level": 2.0 }, "untagged": 4.0 });
    let got = ["=> At { x: 3, label: None } Level(2) Some(Level(4))"];
    assert_eq!(outcome(&server, "needs", sent).await, got);
}
