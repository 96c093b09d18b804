//! The requests that are measured: what attackers send, and the most expensive valid calls, at any size.

/// What a client sends, and what it gets.
pub(crate) struct Request {
    pub(crate) name: &'static str,
    /// One message a line.
    pub(crate) lines: Vec<u8>,
    pub(crate) outcome: Outcome,
}

/// What the last reply is, so that a request which is refused for another reason than it should be is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Result,
    /// A result with `isError`: the report on arguments.
    ToolError,
    /// A result as long as few values are repaired or tried, else a report.
    Bounded,
    Error,
}

impl Outcome {
    /// Whether that is what was expected.
    pub(crate) fn is(self, expected: Self) -> bool {
        match expected {
            Self::Bounded => matches!(self, Self::Result | Self::ToolError),
            _ => self == expected,
        }
    }
}

use super::{api, keys, nested, texts};
use Outcome::{Bounded, Error, Result, ToolError};

const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;

impl Request {
    fn new(name: &'static str, method: &str, params: &str, outcome: Outcome) -> Self {
        Self::with_meta(name, method, params, META, outcome)
    }

    fn with_meta(name: &'static str, method: &str, params: &str, meta: &str, outcome: Outcome) -> Self {
        let comma = if params.is_empty() { "" } else { "," };
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{{{params}{comma}\"_meta\":{{{meta}}}}}}}\n"
        );
        Self { name, lines: line.into(), outcome }
    }

    /// A call of a tool.
    pub(crate) fn call(name: &'static str, tool: &str, arguments: &str, outcome: Outcome) -> Self {
        let params = format!(r#""name":"{tool}","arguments":{{{arguments}}}"#);
        Self::new(name, "tools/call", &params, outcome)
    }

    /// A message of a connection that was initialized with the only revision that has batches.
    fn legacy(name: &'static str, message: &str, outcome: Outcome) -> Self {
        let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#;
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let lines = format!("{initialize}\n{initialized}\n{message}\n");
        Self { name, lines: lines.into(), outcome }
    }
}

/// The values that a call has at most here: nearly as many as a server accepts by default.
const MOST_VALUES: usize = 149_000;

/// As many items as fit into a call, with commas: of these bytes, and of the values that a server accepts.
pub(crate) fn list(item: impl Fn(usize) -> String, bytes: usize) -> String {
    list_of(item, bytes, MOST_VALUES)
}

/// An argument that is such a list.
pub(crate) fn each(argument: &str, item: impl Fn(usize) -> String, bytes: usize) -> String {
    format!(r#""{argument}":[{}]"#, list(item, bytes))
}

/// An argument that is an object of as many members as fit.
pub(crate) fn members(argument: &str, member: impl Fn(usize) -> String, bytes: usize) -> String {
    format!(r#""{argument}":{{{}}}"#, list(member, bytes))
}

/// A list of one item, again and again.
pub(crate) fn copies(argument: &str, item: &str, bytes: usize) -> String {
    each(argument, |_| item.to_owned(), bytes)
}

/// As many items as fit into a text, with commas.
pub(crate) fn long_list(item: impl Fn(usize) -> String, bytes: usize) -> String {
    list_of(item, bytes, usize::MAX)
}

fn list_of(item: impl Fn(usize) -> String, bytes: usize, most_values: usize) -> String {
    let mut text = String::new();
    let mut values = 0;
    for n in 0.. {
        let item = item(n);
        values += 1 + item.matches([',', '[', '{']).count();
        if n > 0 && (text.len() + item.len() >= bytes || values > most_values) {
            break;
        }
        if n > 0 {
            text.push(',');
        }
        text.push_str(&item);
    }
    text
}

/// As many copies of a text as fit.
fn repeat(text: &str, bytes: usize) -> String {
    text.repeat(bytes / text.len())
}

/// Requests of about this size, by name; the first one is the measure.
pub(crate) fn requests(bytes: usize) -> Vec<Request> {
    let mut requests = calls(bytes);
    requests.extend(calls_of_other_types(bytes));
    requests.extend(calls_of_a_schema(bytes));
    requests.extend(keys::requests(bytes));
    requests.extend(nested::requests(bytes));
    requests.extend(texts::requests(bytes));
    requests.extend(api::requests(bytes));
    requests.extend(other_methods(bytes));
    requests.extend(envelopes(bytes));
    requests
}

fn calls(bytes: usize) -> Vec<Request> {
    let a = |n: usize| "a".repeat(n);
    let take = |name, arguments: String, outcome| Request::call(name, "take", &arguments, outcome);
    let deep = bytes / 2;
    let state = (64 << 10).min(bytes / 2);
    vec![
        Request::call("echo", "echo", &format!(r#""text":"{}""#, a(bytes)), Result),
        {
            let any = list(|n| format!(r#"{{"b{n}":{{"z":1.50,"y":"\u0061"}},"a":[]}}"#), bytes - state);
            let params =
                format!(r#""name":"take","arguments":{{"any":[{any}]}},"requestState":"{}""#, a(state));
            Request::new("a bogus request state", "tools/call", &params, Error)
        },
        take(
            "maps with integer keys and a slip",
            format!(r#""limit":"1","maps":[{}]"#, list(|n| format!(r#"{{"{n}":1}}"#), bytes)),
            Bounded,
        ),
        take(
            "a map with many keys and a slip",
            format!(r#""limit":"1","map":{{{}}}"#, list(|n| format!(r#""k{n}":1"#), bytes)),
            Bounded,
        ),
        take("numbers out of range", copies("rows", r#"{"limit":0}"#, bytes), ToolError),
        take("numbers as strings", copies("numbers", "\"1\"", bytes), Bounded),
        take("numbers of the wrong type", copies("numbers", "[]", bytes), ToolError),
        take("deep arrays", format!(r#""any":{}{}"#, "[".repeat(deep), "]".repeat(deep)), ToolError),
        take(
            "deep objects that are ignored",
            format!(r#""other":{}1{}"#, "{\"a\":".repeat(bytes / 6), "}".repeat(bytes / 6)),
            if bytes / 6 > MOST_VALUES { ToolError } else { Result },
        ),
        Request::call("unknown keys", "exact", &list(|n| format!(r#""frist_name{n}":1"#), bytes), ToolError),
        take("integers with an exponent", copies("numbers", "1e0", bytes), Bounded),
        take("fractions for integers", copies("numbers", "1.0", bytes), Bounded),
        take("`null` for integers", copies("numbers", "null", bytes), ToolError),
        take("objects for a text", copies("text", "{}", bytes), ToolError),
        take("duplicate keys", list(|_| r#""limit":1"#.into(), bytes), ToolError),
        take(
            "duplicate keys in what is ignored",
            copies("other", r#"{"a":1,"b":1,"\u0061":2}"#, bytes),
            ToolError,
        ),
        take("escaped keys", members("any", |n| format!(r#""\u0061{n}":1"#), bytes), Result),
        take("objects of one member", copies("any", r#"{"":0}"#, bytes), Result),
        take("tagged enums", copies("shapes", r#"{"kind":"square","side":1}"#, bytes), Result),
        take("tagged enums with a slip", copies("shapes", r#"{"kind":"square","side":"1"}"#, bytes), Bounded),
        take("tagged enums of no variant", copies("shapes", r#"{"kind":"sqare"}"#, bytes), ToolError),
        take(
            "a set of objects",
            each("set", |n| format!(r#"{{"kind":"square","side":{n}}}"#), bytes),
            Result,
        ),
        take("a set of equal objects", copies("set", r#"{"kind":"square","side":1}"#, bytes), ToolError),
        take(
            "a set whose last object is there twice",
            format!(
                r#""set":[{},{{"kind":"square","side":0}}]"#,
                list(|n| format!(r#"{{"kind":"square","side":{n}}}"#), bytes)
            ),
            ToolError,
        ),
        take("a long text with a pattern", format!(r#""text":"{}""#, a(bytes)), ToolError),
        take(
            "a long text in a list with a pattern",
            format!(r#""rows":[{{"limit":1,"text":"{}"}}]"#, a(bytes)),
            ToolError,
        ),
        take("a long text that is not a choice", format!(r#""choice":"{}""#, a(bytes)), ToolError),
        take(
            "a bad value at the end of a list",
            format!(r#""ids":[{},"x"]"#, list(|_| "\"67e55044-10b1-426f-9247-bb680e5fe0c8\"".into(), bytes)),
            ToolError,
        ),
        take(
            "more values than a call may have",
            format!(r#""numbers":[{}]"#, long_list(|_| "1".into(), bytes)),
            if bytes / 2 > MOST_VALUES { ToolError } else { Result },
        ),
        take(
            "more values than a call may have, which are ignored",
            format!(r#""other":[{}]"#, long_list(|_| "{}".into(), bytes)),
            if bytes / 3 * 2 > MOST_VALUES { ToolError } else { Result },
        ),
        Request::call("commas in a text", "echo", &format!(r#""text":"{}""#, ",".repeat(bytes)), Result),
        take(
            "much JSON in a string",
            format!(r#""numbers":"[{}]""#, long_list(|_| "1".into(), bytes)),
            Bounded,
        ),
        take("JSON in a string", format!(r#""numbers":"[{}]""#, list(|_| "1".into(), bytes)), Bounded),
    ]
}

fn calls_of_other_types(bytes: usize) -> Vec<Request> {
    let hold = |name, arguments: String, outcome| Request::call(name, "hold", &arguments, outcome);
    let chain = format!("{}{}", r#"{"children":["#.repeat(50), "]}".repeat(50));
    vec![
        hold(
            "a tree of a type that refers to itself",
            format!(r#""tree":{{"children":[{}]}}"#, list(|_| r#"{"children":[{}]}"#.into(), bytes)),
            Result,
        ),
        hold("deep trees", format!(r#""tree":{{"children":[{}]}}"#, list(|_| chain.clone(), bytes)), Result),
        hold("untagged enums", copies("amounts", r#"{"name":"a"}"#, bytes), Result),
        hold("untagged enums of no variant", copies("amounts", r#"{"nam":"a"}"#, bytes), ToolError),
        hold("a list of names", copies("countries", r#""spain""#, bytes), Result),
        hold("names in structs with rules", copies("trips", r#"{"to":"spain"}"#, bytes), Result),
        hold("a set of strings", each("names", |n| format!(r#""{n}""#), bytes), Result),
        hold("a set of numbers", each("keys", |n| n.to_string(), bytes), Result),
        hold("integers of 128 bits", each("wide", |_| i128::MIN.to_string(), bytes), Result),
        hold("lists by name", members("lists", |n| format!(r#""{n}":[]"#), bytes), Result),
        hold(
            "numbers of 1,000 digits",
            each("floats", |n| format!("{}.{}e-400", n + 1, "7".repeat(1000)), bytes),
            Result,
        ),
        hold("a number of all digits", format!(r#""floats":[0.{}]"#, "3".repeat(bytes)), Result),
        hold("fractions", copies("floats", "1.5e9", bytes), Result),
        Request::call("escaped text", "echo", &format!(r#""text":"{}""#, repeat(r"\u00e9", bytes)), Result),
        Request::call("escaped quotes", "echo", &format!(r#""text":"{}""#, repeat(r#"\""#, bytes)), Result),
        Request::call(
            "control characters",
            "echo",
            &format!(r#""text":"{}""#, repeat(r"\u0001", bytes)),
            Result,
        ),
        Request::call("a structured result", "mirror", &copies("rows", r#"{"limit":1}"#, bytes), Result),
    ]
}

/// Calls of a tool that gets its arguments as a value.
fn calls_of_a_schema(bytes: usize) -> Vec<Request> {
    let dynamic = |name, arguments: String, outcome| Request::call(name, "dynamic", &arguments, outcome);
    vec![
        dynamic("unique objects", each("unique", |n| format!(r#"{{"a":{n}}}"#), bytes), Result),
        dynamic("unique numbers", each("unique", |n| n.to_string(), bytes), Result),
        dynamic(
            "unique numbers but the last",
            format!(r#""unique":[{},0]"#, list(|n| n.to_string(), bytes)),
            ToolError,
        ),
        dynamic(
            "unique texts but the last",
            format!(r#""unique":[{},"0"]"#, list(|n| format!(r#""{n}""#), bytes)),
            ToolError,
        ),
        dynamic("equal numbers", copies("unique", "1", bytes), ToolError),
        dynamic(
            "absent members",
            copies("points", "{}", bytes),
            if bytes > 32 << 10 { ToolError } else { Result },
        ),
        dynamic("alternatives of objects", copies("branches", r#"{"a":2}"#, bytes), Result),
        dynamic("alternatives of fractions", copies("branches", r#"{"a":2.0}"#, bytes), Result),
        dynamic("alternatives of lists", copies("branches", "[0,1]", bytes), Result),
        dynamic("no alternative", copies("branches", r#"{"a":3}"#, bytes), ToolError),
        dynamic("keys with a pattern", members("named", |n| format!(r#""k{n}":1"#), bytes), Result),
        dynamic("keys that break a pattern", members("named", |n| format!(r#""x{n}":1"#), bytes), ToolError),
        dynamic(
            "properties that no keyword evaluates",
            members("tree", |n| format!(r#""c{n}":{{"next":{{}}}}"#), bytes),
            Result,
        ),
    ]
}

fn other_methods(bytes: usize) -> Vec<Request> {
    let a = |n: usize| "a".repeat(n);
    let read = |name, uri: String, outcome| {
        Request::new(name, "resources/read", &format!(r#""uri":"{uri}""#), outcome)
    };
    let prompt = |name, prompt: &str, arguments: String, outcome| {
        let params = format!(r#""name":"{prompt}","arguments":{{{arguments}}}"#);
        Request::new(name, "prompts/get", &params, outcome)
    };
    let complete = |name, reference: &str, rest: String| {
        Request::new(name, "completion/complete", &format!(r#""ref":{{{reference}}},{rest}"#), Result)
    };
    let uris = long_list(|n| format!("\"notes://{n}/x\""), (bytes / 4).min(16 << 10));
    vec![
        Request::new("a long cursor", "tools/list", &format!(r#""cursor":"{}""#, a(bytes)), Error),
        Request::call("a long name", &a(bytes), "", Error),
        read("a long URI", format!("notes://{}", repeat("a/", bytes)), Result),
        read("a long URI of escapes", format!("notes://a/{}", repeat("%C3%A9", bytes)), Result),
        read(
            "a long list in a URI",
            format!("files://root{}", repeat("/a", bytes)),
            if bytes > 32 << 10 { Error } else { Result },
        ),
        read("a long query", format!("notes://a/b?{}", repeat("page=1&", bytes)), Error),
        read("a long scheme", a(bytes), Error),
        prompt("many prompt arguments", "greet", long_list(|n| format!(r#""n{n}":"""#), bytes), Error),
        prompt("a long prompt argument", "greet", format!(r#""name":"{}""#, a(bytes)), Result),
        prompt(
            "a prompt argument that is not a number",
            "count",
            format!(r#""number":"{}""#, a(bytes)),
            Error,
        ),
        prompt(
            "a list in a prompt argument",
            "count",
            format!(r#""rows":"[{}]""#, long_list(|_| "1".into(), bytes)),
            Result,
        ),
        complete(
            "a long completion",
            r#""type":"ref/prompt","name":"greet""#,
            format!(r#""argument":{{"name":"name","value":"{}"}}"#, a(bytes)),
        ),
        complete(
            "a completion with many arguments",
            r#""type":"ref/resource","uri":"notes://{id}/{+path}{?page}""#,
            format!(
                r#""argument":{{"name":"id","value":""}},"context":{{"arguments":{{{}}}}}"#,
                long_list(|n| format!(r#""n{n}":"""#), bytes)
            ),
        ),
        Request::with_meta(
            "a subscription to many resources",
            "subscriptions/listen",
            &format!(r#""notifications":{{"resourceSubscriptions":[{uris}]}}"#),
            &format!(r#"{META},"x":"{}""#, a(bytes - uris.len())),
            Error,
        ),
        Request::new(
            "a subscription to too many resources",
            "subscriptions/listen",
            &format!(
                r#""notifications":{{"resourceSubscriptions":[{}]}}"#,
                long_list(|n| format!("\"notes://{n}/x\""), bytes)
            ),
            Error,
        ),
    ]
}

/// What surrounds the params of every method.
/// A call with a text whose last byte is not UTF-8.
fn not_utf8(bytes: usize) -> Vec<u8> {
    let mut lines = Request::call("", "echo", &format!(r#""text":"{}""#, "a".repeat(bytes)), Error).lines;
    if let Some(last) = lines.iter_mut().rfind(|byte| **byte == b'a') {
        *last = 0xff;
    }
    lines
}

fn envelopes(bytes: usize) -> Vec<Request> {
    let a = |n: usize| "a".repeat(n);
    let echo = r#""name":"echo","arguments":{"text":"a"}"#;
    let with_meta = |name, meta: &str, outcome| Request::with_meta(name, "tools/call", echo, meta, outcome);
    let whole = |name, line: String, outcome| Request { name, lines: (line + "\n").into(), outcome };
    let take = |name, arguments: String, outcome| Request::call(name, "take", &arguments, outcome);
    let ping = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{{{META}}}}}}}"#);
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    vec![
        with_meta(
            "much `_meta`",
            &format!("{META},{}", long_list(|n| format!(r#""k{n}":1"#), bytes)),
            Result,
        ),
        with_meta(
            "deep `_meta`",
            &format!("{META},{}", long_list(|n| format!(r#""k{n}":{{"a":[[{{}}]]}}"#), bytes)),
            Result,
        ),
        with_meta(
            "many client capabilities",
            &format!(
                r#"{version},"io.modelcontextprotocol/clientCapabilities":{{"experimental":{{{}}}}}"#,
                long_list(|n| format!(r#""k{n}":{{}}"#), bytes)
            ),
            Result,
        ),
        with_meta(
            "a long trace state",
            &format!(r#"{META},"baggage":"{}","tracestate":"{}""#, repeat("a=1,", bytes / 2), a(bytes / 2)),
            Result,
        ),
        Request::new(
            "a long request state",
            "tools/call",
            &format!(r#"{echo},"requestState":"{}""#, a(bytes)),
            Error,
        ),
        Request::new(
            "many input responses",
            "tools/call",
            &format!(
                r#"{echo},"inputResponses":{{{}}}"#,
                long_list(|n| format!(r#""k{n}":{{"action":"accept"}}"#), bytes)
            ),
            Result,
        ),
        whole(
            "a long id",
            format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping","params":{{"_meta":{{{META}}}}}}}"#, a(bytes)),
            Error,
        ),
        whole(
            "a long method",
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}","params":{{"_meta":{{{META}}}}}}}"#, a(bytes)),
            Error,
        ),
        Request {
            name: "bytes at the end of a long text that are not UTF-8",
            lines: not_utf8(bytes),
            outcome: Error,
        },
        Request::call(
            "half a surrogate at the end of a long text",
            "echo",
            &format!(r#""text":"{}\ud800""#, a(bytes)),
            ToolError,
        ),
        whole("blank lines", format!("{}{ping}", "\n".repeat(bytes)), Error),
        whole("a message behind blanks", format!("{}{ping}", " ".repeat(bytes)), Error),
        take("values between blanks", copies("numbers", " \t 1 \r ", bytes), Result),
        whole("half a message", format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":[{}"#, long_list(|_| "1".into(), bytes)), Error),
        whole("nothing but brackets", "[".repeat(bytes), Error),
        Request::legacy(
            "a long batch",
            &format!(
                "[{}]",
                long_list(|n| format!(r#"{{"jsonrpc":"2.0","id":{},"method":"ping"}}"#, n + 1), bytes)
            ),
            Error,
        ),
        Request::legacy("a batch of nothing", &format!("[{}]", long_list(|_| "1".into(), bytes)), Result),
        Request::legacy(
            "a batch of long calls",
            &format!(
                "[{}]",
                (0..50)
                    .map(|n| format!(
                        r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":"take","arguments":{{"shapes":[{}]}}}}}}"#,
                        n + 1,
                        list(|_| r#"{"kind":"square","side":1}"#.into(), bytes / 50)
                    ))
                    .collect::<Vec<_>>()
                    .join(",")
            ),
            Result,
        ),
    ]
}
