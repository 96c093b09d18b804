//! Maps: keys of every type that serde reads, objects of a schema that names keys by pattern, and slips beside them.

use std::collections::{BTreeMap, HashMap};

use mcp_runtime::{
    prelude::*,
    tool::{ToolCall, ToolDef},
};
use serde_json::{Value, json};

use super::{
    requests::{Outcome, Request, copies, each, list, long_list},
    server::Country,
};

/// Takes maps by all kinds of keys
#[mcp_tool]
pub(crate) fn index(
    slip: Option<u32>,
    bytes: Option<BTreeMap<i8, u32>>,
    ids: Option<HashMap<u64, u32>>,
    signed: Option<BTreeMap<i64, u32>>,
    wide: Option<HashMap<i128, u32>>,
    grid: Option<HashMap<i64, HashMap<i64, u32>>>,
    flags: Option<BTreeMap<bool, u32>>,
    letters: Option<BTreeMap<char, u32>>,
    uuids: Option<HashMap<uuid::Uuid, u32>>,
    countries: Option<HashMap<Country, u32>>,
    lists: Option<Vec<BTreeMap<u8, u32>>>,
) -> bool {
    let _ = (slip, bytes, ids, signed, wide, grid, flags, letters, uuids, countries, lists);
    true
}

/// A tool whose schema names keys by pattern
pub(crate) fn named() -> ToolDef {
    let names: Vec<String> = (0..5000).map(|n| format!("name {n}")).collect();
    let named: Vec<Value> = names.iter().map(|name| json!({ "const": name, "title": "T" })).collect();
    ToolDef::builder("named")
        .input_schema(json!({
            "type": "object",
            "properties": {
                "slip": { "type": "integer" },
                "digits": { "patternProperties": { "^[0-9]+$": { "type": "integer" } }, "additionalProperties": false },
                "words": { "patternProperties": { "^[a-z][a-z0-9_]*$": true, "^x-": { "type": "string" } } },
                "names": { "propertyNames": { "pattern": "^[a-z0-9-]+$" } },
                "one": { "items": { "enum": names } },
                "titled": { "items": { "oneOf": named } },
                "tail": { "items": { "maxLength": 254, "pattern": "^(a?){32}a{32}$" } },
                "slow": { "items": { "pattern": "^(a{5}b?){20}$" } },
                "few": { "propertyNames": { "enum": ["a", "b", "c"] } },
                "lists": { "additionalProperties": { "type": "array", "items": { "type": "integer" } } },
                "twice": { "$ref": "#/$defs/Twice" },
                "all": { "$ref": "#/$defs/All" }
            },
            "$defs": {
                "Twice": { "type": "object", "properties": { "a": { "$ref": "#/$defs/Twice" } },
                    "patternProperties": { "^a": { "$ref": "#/$defs/Twice" } } },
                "All": { "allOf": [
                    { "type": "object", "properties": { "a": { "$ref": "#/$defs/All" } } },
                    { "type": "object", "properties": { "a": { "$ref": "#/$defs/All" } } }
                ] }
            }
        }))
        .handler(|_: ToolCall| async { "" })
}

pub(crate) fn requests(bytes: usize) -> Vec<Request> {
    use Outcome::{Bounded, Result, ToolError};
    let index = |name, arguments: String, outcome| Request::call(name, "index", &arguments, outcome);
    let named = |name, arguments: String, outcome| Request::call(name, "named", &arguments, outcome);
    let map = |argument: &str, key: &dyn Fn(usize) -> String| {
        format!(r#""{argument}":{{{}}}"#, list(|n| format!(r#""{}":1"#, key(n)), bytes))
    };
    let with_slip = |arguments: String| format!(r#""slip":"1",{arguments}"#);
    let nested = |n: usize| format!("{}1{}", r#"{"a":"#.repeat(n), "}".repeat(n));
    let uuid = |n: usize| format!("67e55044-10b1-426f-9247-{n:012x}");
    // half of the bytes are the key
    let below = |key: &str, value: String| format!(r#""{}":{value}"#, key.repeat(bytes / 2 / key.len()));
    let half = |item: &dyn Fn(usize) -> String| list(item, bytes / 2);
    vec![
        index(
            "one key many times below a long key",
            below("a", format!("{{{}}}", half(&|_| r#""k":1"#.into()))),
            ToolError,
        ),
        index(
            "many repeated keys below a long key",
            below("a", format!("{{{}}}", half(&|n| format!(r#""{0}":1,"{0}":1"#, n % 9000)))),
            ToolError,
        ),
        index(
            "repeated keys below a long key of escapes",
            below(r"\u0061 ", format!("[{}]", half(&|_| r#"{"k":1,"k":1}"#.into()))),
            ToolError,
        ),
        index(
            "repeated keys below many lists",
            format!(
                r#""a":{}{{{}}}{}"#,
                "[".repeat(bytes / 4),
                half(&|_| r#""k":1"#.into()),
                "]".repeat(bytes / 4)
            ),
            ToolError,
        ),
        named(
            "wrong values below a long key",
            format!(r#""lists":{{{}}}"#, below("a b", format!("[{}]", half(&|_| r#""x""#.into())))),
            ToolError,
        ),
        named(
            "wide integers below a long key and a slip",
            with_slip(format!(
                r#""lists":{{{}}}"#,
                below("a", format!("[{}]", half(&|n| format!("{}", u128::from(u64::MAX) * 2 + n as u128))))
            )),
            Bounded,
        ),
        index("a map by u64", map("ids", &|n| n.to_string()), Result),
        index("a map by u64 and a slip", with_slip(map("ids", &|n| n.to_string())), Bounded),
        index("a map by large u64", map("ids", &|n| (u64::MAX - n as u64).to_string()), Result),
        index(
            "a map by large u64 and a slip",
            with_slip(map("ids", &|n| (u64::MAX - n as u64).to_string())),
            Bounded,
        ),
        index("a map by i64", map("signed", &|n| format!("-{}", n + 1)), Result),
        index("a map by i128", map("wide", &|n| (i128::MIN + n as i128).to_string()), Result),
        index(
            "a map by i128 and a slip",
            with_slip(map("wide", &|n| (i128::MIN + n as i128).to_string())),
            Bounded,
        ),
        index("a map by i8 with keys out of range", map("bytes", &|n| n.to_string()), ToolError),
        index(
            "a map by i8 with a key of all digits",
            format!(r#""bytes":{{"{}":1}}"#, "1".repeat(bytes)),
            ToolError,
        ),
        index("a map by u64 with keys of 25 digits", map("ids", &|n| format!("{n:025}")), ToolError),
        index("a map by u64 with long keys that are words", map("ids", &|n| format!("{n:025}x")), ToolError),
        index(
            "a map by u64 of maps",
            format!(
                r#""grid":{{{}}}"#,
                list(
                    |n| format!(
                        r#""{n}":{{{}}}"#,
                        (0..9).map(|m| format!(r#""-{}":1"#, m + 1)).collect::<Vec<_>>().join(",")
                    ),
                    bytes
                )
            ),
            Result,
        ),
        index("maps by u8", copies("lists", r#"{"1":1}"#, bytes), Result),
        index("maps by u8 and a slip", with_slip(copies("lists", r#"{"1":1}"#, bytes)), Bounded),
        index("a map by bool with other keys", map("flags", &|n| n.to_string()), ToolError),
        index(
            "a map by char",
            map("letters", &|n| char::from_u32(0x10000 + n as u32).unwrap_or('a').to_string()),
            Result,
        ),
        index("a map by UUID", map("uuids", &uuid), Result),
        index("a map by UUID and a slip", with_slip(map("uuids", &uuid)), Bounded),
        index("a map by an enum with other keys", map("countries", &|n| format!("spain{n}")), ToolError),
        named("digits as keys", map("digits", &|n| n.to_string()), Result),
        named("digits as keys and a slip", with_slip(map("digits", &|n| n.to_string())), Result),
        named("long digits as keys and a slip", with_slip(map("digits", &|n| format!("{n:060}"))), Result),
        named("words as keys", map("words", &|n| format!("word_{n}")), Result),
        named("long words as keys and a slip", with_slip(map("words", &|n| format!("word_{n:060}"))), Result),
        named("words as keys that break a pattern", map("words", &|n| format!("x-{n}")), ToolError),
        named("names with a pattern", map("names", &|n| format!("name-{n}")), Result),
        named("long names with a pattern", map("names", &|n| format!("name-{n:060}")), Result),
        named("enumerations", each("one", |n| format!(r#""name {}""#, n % 5000), bytes), Result),
        named("titled enumerations", each("titled", |n| format!(r#""name {}""#, n % 5000), bytes), Result),
        named(
            "names that are not in an enumeration",
            each("one", |n| format!(r#""name {}""#, n + 5000), bytes),
            ToolError,
        ),
        named(
            "a text that is too long for a slow pattern",
            format!(r#""tail":["{}"]"#, "a".repeat(bytes)),
            ToolError,
        ),
        named(
            "texts that break a pattern of many states",
            copies("slow", &format!("\"{}\"", "a".repeat(1000)), bytes),
            ToolError,
        ),
        named("names that are not allowed", map("few", &|n| format!("name-{n}")), ToolError),
        named("a tree that two keywords check", format!(r#""twice":{}"#, nested(60)), ToolError),
        named("a tree that two parts check", format!(r#""all":{}"#, nested(60)), ToolError),
        named(
            "a long key",
            format!(r#""digits":{{"{}":1}}"#, "1".repeat(bytes)),
            if bytes > 1 << 16 { ToolError } else { Result },
        ),
        named(
            "keys of 60,000 bytes",
            format!(
                r#""digits":{{{}}}"#,
                long_list(|n| format!(r#""{}{n}":1"#, "1".repeat(60_000.min(bytes / 2))), bytes)
            ),
            Result,
        ),
    ]
}
