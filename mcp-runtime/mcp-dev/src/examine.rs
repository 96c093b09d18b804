//! What clients and models trip over in the lists of a server, and what the lists cost a model.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use mcp_runtime::Revision;
use serde_json::{Map, Value, json};

/// What a model should read at most before its first word, in tokens.
const BUDGET: usize = 8000;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// A model may choose worse.
    Advice,
    /// A client cuts it, or a model is misled.
    Warning,
    /// A client refuses it.
    Error,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Advice => "advice",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Something in the lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// Kind and name of the item, such as `tool search`; `server` for the whole.
    pub(crate) item: String,
    pub(crate) text: String,
}

/// What an item costs a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) item: String,
    /// About so many.
    pub(crate) tokens: usize,
}

/// What was found, the most important first.
pub(crate) struct Examination {
    pub(crate) findings: Vec<Finding>,
    pub(crate) costs: Vec<Cost>,
    pub(crate) budget: usize,
}

impl Examination {
    pub(crate) fn tokens(&self) -> usize {
        self.costs.iter().map(|cost| cost.tokens).sum()
    }

    /// Adds what the lists do not say: the methods of lists that the server declares and does not have, and the lines of its output
    /// that are not messages, their number and the first one.
    pub(crate) fn add_conduct(&mut self, missing: &[&str], lines: Option<(u64, String)>) {
        let missing = missing.iter().map(|method| {
            let text = format!(
                "declares the capability and has no `{method}` (-32601): clients report an error, so answer it with an empty list"
            );
            (Severity::Warning, text)
        });
        let lines = lines.map(|(count, first)| {
            let text = format!(
                "writes lines to stdout that are not messages ({count}, the first is `{first}`): the protocol has stdout alone, and clients report an error for each, so log to stderr"
            );
            (Severity::Error, text)
        });
        let found = missing.chain(lines);
        self.findings.extend(found.map(|(severity, text)| Finding {
            severity,
            item: "server".to_owned(),
            text,
        }));
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    }

    /// Adds the keywords of a tool's output schema that a client does not enforce.
    pub(crate) fn add_unenforced(&mut self, tool: &str, keywords: &[String]) {
        let findings = keywords.iter().map(|keyword| Finding {
            severity: Severity::Advice,
            item: format!("tool {tool}"),
            text: format!("its output schema: {keyword}, so clients differ in what they check"),
        });
        self.findings.extend(findings);
    }

    pub(crate) fn to_json(&self) -> Value {
        let findings = self.findings.iter().map(|finding| {
            json!({ "severity": finding.severity.as_str(), "item": finding.item, "text": finding.text })
        });
        let items = self.costs.iter().map(|cost| json!({ "item": cost.item, "tokens": cost.tokens }));
        json!({
            "findings": findings.collect::<Vec<_>>(),
            "tokens": {
                "estimate": "4 bytes of ASCII, or one other character, are a token",
                "budget": self.budget,
                "total": self.tokens(),
                "items": items.collect::<Vec<_>>(),
            },
        })
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        for Finding { severity, item, text: found } in &self.findings {
            let _result = writeln!(text, "{:8} {item}: {found}", severity.as_str());
        }
        if self.findings.is_empty() {
            text.push_str("nothing to mend\n");
        }
        let _result = writeln!(text, "\ntokens that a model reads first, about (4 bytes are one):");
        for Cost { item, tokens } in &self.costs {
            let _result = writeln!(text, "{tokens:8} {item}");
        }
        let _result = writeln!(text, "{:8} of {} in the budget", self.tokens(), self.budget);
        text
    }
}

/// Examines the lists of a server, as `mcp-dev schema` prints them, in the revision that was agreed on. A budget that is given is
/// an error to exceed.
pub(crate) fn examine(described: &Value, revision: Option<Revision>, budget: Option<usize>) -> Examination {
    let has_any_output = revision >= Some(Revision::V2026_07_28);
    let mut examiner = Examiner { findings: Vec::new(), costs: Vec::new(), has_any_output };
    let server = described["server"]["name"].as_str().unwrap_or_default();
    let list = |name: &str| described[name].as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(instructions) = described["instructions"].as_str() {
        examiner.costs.push(Cost { item: "instructions".to_owned(), tokens: estimate(instructions) });
        examiner.check_length("server", "its instructions", instructions);
    }
    let tools = list("tools");
    if tools.len() > MAX_TOOLS {
        examiner.add(
            Severity::Warning,
            "server",
            format!(
                "has {} tools; VS Code and OpenAI take {MAX_TOOLS} in a request, of all servers",
                tools.len()
            ),
        );
    }
    for tool in tools {
        examiner.check_tool(tool, server);
    }
    for prompt in list("prompts") {
        examiner.check_prompt(prompt);
    }
    for (section, kind, key) in [
        ("resources", "resource", "uri"),
        ("resourceTemplates", "resource template", "uriTemplate"),
        ("events", "event", "name"),
    ] {
        for entry in list(section) {
            if is_blank(&entry["description"]) && is_blank(&entry["title"]) {
                let name = entry[key].as_str().unwrap_or_default();
                examiner.add(Severity::Advice, &format!("{kind} {name}"), "has no description");
            }
        }
    }
    for (item, count) in duplicates(described) {
        examiner.add(
            Severity::Error,
            &item,
            format!("is listed {count} times: clients refuse the list, or reach only one of them"),
        );
    }
    let Examiner { mut findings, costs, .. } = examiner;
    let total: usize = costs.iter().map(|cost| cost.tokens).sum();
    let limit = budget.unwrap_or(BUDGET);
    if total > limit {
        let severity = if budget.is_some() { Severity::Error } else { Severity::Warning };
        let text =
            format!("costs a model about {total} tokens before its first word, of {limit} in the budget");
        findings.push(Finding { severity, item: "server".to_owned(), text });
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Examination { findings, costs, budget: limit }
}

/// Items that are listed more than once under one name or URI, each as `tool search`, with their number.
pub(crate) fn duplicates(described: &Value) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (section, kind, key) in [
        ("tools", "tool", "name"),
        ("prompts", "prompt", "name"),
        ("resources", "resource", "uri"),
        ("resourceTemplates", "resource template", "uriTemplate"),
        ("events", "event", "name"),
    ] {
        let entries = described[section].as_array().into_iter().flatten();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for name in entries.filter_map(|entry| entry[key].as_str()) {
            *counts.entry(name).or_default() += 1;
        }
        let repeated = counts.into_iter().filter(|(_, count)| *count > 1);
        found.extend(repeated.map(|(name, count)| (format!("{kind} {name}"), count)));
    }
    found
}

/// The number of tools that VS Code and OpenAI take in a request.
const MAX_TOOLS: usize = 128;
/// The longest name that all models take: Gemini's.
const MAX_NAME: usize = 63;
/// The longest names of server and tool together, in Cursor; longer ones are left out.
const MAX_CURSOR_NAME: usize = 60;
/// What Claude Code shows of a description or of instructions.
const MAX_WORDS: usize = 2048;
/// The longest description of a function that OpenAI takes.
const MAX_OPENAI_WORDS: usize = 1024;
/// The longest name of an argument that Anthropic takes.
const MAX_ARGUMENT_NAME: usize = 64;

struct Examiner {
    findings: Vec<Finding>,
    costs: Vec<Cost>,
    /// Whether results may be any JSON; objects only, before 2026-07-28.
    has_any_output: bool,
}

impl Examiner {
    fn add(&mut self, severity: Severity, item: &str, text: impl Into<String>) {
        self.findings.push(Finding { severity, item: item.to_owned(), text: text.into() });
    }

    fn check_length(&mut self, item: &str, what: &str, text: &str) {
        if text.len() > MAX_WORDS {
            let length = text.len();
            self.add(
                Severity::Warning,
                item,
                format!("{what}: Claude Code cuts it at {MAX_WORDS} of {length} bytes"),
            );
        }
    }

    fn check_tool(&mut self, tool: &Value, server: &str) {
        let name = tool["name"].as_str().unwrap_or_default();
        let item = format!("tool {name}");
        let read =
            json!({ "name": name, "description": tool["description"], "input_schema": tool["inputSchema"] });
        self.costs.push(Cost { item: item.clone(), tokens: estimate(&read.to_string()) });
        let is_inside = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(is_inside) {
            self.add(Severity::Error, &item, "its name has characters besides `a-z`, `A-Z`, `0-9`, `_` and `-`, which Anthropic and OpenAI refuse");
        } else if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            self.add(
                Severity::Warning,
                &item,
                "its name begins with neither a letter nor `_`, which Gemini refuses",
            );
        }
        if name.len() > MAX_NAME {
            self.add(
                Severity::Error,
                &item,
                format!("its name has {} characters; Gemini takes {MAX_NAME}, and OpenAI 64", name.len()),
            );
        } else if name.len() + server.len() + 1 > MAX_CURSOR_NAME {
            self.add(Severity::Warning, &item, format!("its name and that of the server have more than {MAX_CURSOR_NAME} characters: Cursor leaves it out"));
        }
        match tool["description"].as_str().filter(|text| !text.trim().is_empty()) {
            None => self.add(Severity::Warning, &item, "has no description: models choose by it"),
            Some(text) => {
                self.check_length(&item, "its description", text);
                if text.chars().count() > MAX_OPENAI_WORDS && text.len() <= MAX_WORDS {
                    self.add(
                        Severity::Advice,
                        &item,
                        format!(
                            "its description has more than {MAX_OPENAI_WORDS} characters, which OpenAI takes"
                        ),
                    );
                }
            }
        }
        self.check_input(&item, &tool["inputSchema"]);
        match tool.get("outputSchema") {
            None => {
                self.add(Severity::Advice, &item, "its results have no schema: programs cannot rely on them");
            }
            Some(schema) if !self.has_any_output && schema["type"] != "object" => {
                self.add(Severity::Error, &item, "its output schema has no `\"type\": \"object\"`, which revisions before 2026-07-28 require: clients of the TypeScript SDK refuse the whole list");
            }
            Some(_) => {}
        }
        self.check_annotations(&item, name, &tool["annotations"]);
    }

    fn check_input(&mut self, item: &str, schema: &Value) {
        let before = self.findings.len();
        if schema["type"] != "object" {
            self.add(
                Severity::Error,
                item,
                "its arguments have no `\"type\": \"object\"` at the root, which clients refuse",
            );
        }
        if schema.get("$ref").is_some() {
            self.add(
                Severity::Error,
                item,
                "has `$ref` at the root of its arguments, where clients look for `properties`",
            );
        }
        let mut forms = BTreeSet::new();
        add_refused_forms(schema, "its arguments", &mut forms);
        for (severity, text) in forms {
            self.add(severity, item, text);
        }
        for keyword in ["anyOf", "oneOf", "allOf"] {
            if schema.get(keyword).is_some() {
                let text = format!(
                    "has `{keyword}` at the root of its arguments: Anthropic and OpenAI refuse it, and Claude Code leaves the tool out"
                );
                self.add(Severity::Error, item, text);
            }
        }
        for keyword in ["if", "not", "enum"] {
            if schema.get(keyword).is_some() {
                self.add(
                    Severity::Warning,
                    item,
                    format!("has `{keyword}` at the root of its arguments, which OpenAI refuses"),
                );
            }
        }
        // what is wrong with the root has said it, if anything is
        if schema.get("properties").is_none() && self.findings.len() == before {
            self.add(
                Severity::Warning,
                item,
                "has no `properties` at the root of its arguments, which OpenAI refuses",
            );
        }
        let empty = Map::new();
        for (name, property) in schema["properties"].as_object().unwrap_or(&empty) {
            let is_inside = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
            if name.is_empty() || name.len() > MAX_ARGUMENT_NAME || !name.chars().all(is_inside) {
                self.add(Severity::Error, item, format!("the argument `{name}`: Anthropic takes names of up to {MAX_ARGUMENT_NAME} of `a-z`, `A-Z`, `0-9`, `_`, `.` and `-`"));
            }
            let target = property["$ref"].as_str().and_then(|text| schema.pointer(text.strip_prefix('#')?));
            let is_described = !is_blank(&property["description"])
                || target.is_some_and(|target| !is_blank(&target["description"]));
            if !is_described {
                self.add(Severity::Warning, item, format!("the argument `{name}` has no description"));
            }
        }
        if has_remote_reference(schema) {
            self.add(Severity::Error, item, "refers to a schema elsewhere, which no client fetches");
        }
    }

    /// Names that say what annotations deny.
    fn check_annotations(&mut self, item: &str, name: &str, annotations: &Value) {
        const CHANGES: [&str; 20] = [
            "add",
            "append",
            "cancel",
            "clear",
            "create",
            "delete",
            "drop",
            "insert",
            "kill",
            "move",
            "overwrite",
            "purge",
            "remove",
            "rename",
            "reset",
            "revoke",
            "send",
            "update",
            "upload",
            "write",
        ];
        const DESTROYS: [&str; 9] =
            ["clear", "delete", "drop", "kill", "overwrite", "purge", "remove", "reset", "revoke"];
        const READS: [&str; 9] =
            ["count", "describe", "find", "get", "list", "lookup", "read", "search", "show"];
        let verb = words(name).next().unwrap_or_default();
        let says = |hint: &str| annotations[hint].as_bool();
        if says("readOnlyHint") == Some(true) {
            if CHANGES.contains(&verb.as_str()) {
                self.add(Severity::Warning, item, format!("is annotated as read-only, and its name says `{verb}`: clients may call it without asking"));
            }
        } else if READS.contains(&verb.as_str()) && says("readOnlyHint").is_none() {
            self.add(
                Severity::Advice,
                item,
                format!(
                    "its name says `{verb}`, and `readOnlyHint` is not set: clients ask before each call"
                ),
            );
        }
        if says("destructiveHint") == Some(false) && DESTROYS.contains(&verb.as_str()) {
            self.add(
                Severity::Warning,
                item,
                format!("is annotated as not destructive, and its name says `{verb}`"),
            );
        }
        if says("readOnlyHint") == Some(true) && says("destructiveHint") == Some(true) {
            self.add(Severity::Warning, item, "is annotated as read-only and destructive");
        }
    }

    fn check_prompt(&mut self, prompt: &Value) {
        let item = format!("prompt {}", prompt["name"].as_str().unwrap_or_default());
        if is_blank(&prompt["description"]) {
            self.add(Severity::Advice, &item, "has no description: people choose by it");
        }
        for argument in prompt["arguments"].as_array().into_iter().flatten() {
            if is_blank(&argument["description"]) {
                let name = argument["name"].as_str().unwrap_or_default();
                self.add(Severity::Advice, &item, format!("the argument `{name}` has no description"));
            }
        }
    }
}

/// What clients refuse anywhere in a schema. The names of properties are not keywords.
fn add_refused_forms(schema: &Value, place: &str, found: &mut BTreeSet<(Severity, String)>) {
    let Some(map) = schema.as_object() else { return };
    let has_type = |name: &str| match &schema["type"] {
        Value::Array(names) => names.iter().any(|one| one == name),
        one => one == name,
    };
    if has_type("array") && !map.contains_key("items") {
        found.insert((
            Severity::Error,
            format!("{place}: an array without `items`, which VS Code and OpenAI refuse"),
        ));
    }
    if schema["type"].is_array() {
        found.insert((Severity::Warning, format!("{place}: a list of types, which Gemini refuses")));
    }
    let has_members = ["properties", "patternProperties", "additionalProperties"];
    // the root has a line of its own
    if schema["type"] == "object"
        && place != "its arguments"
        && !has_members.iter().any(|keyword| schema[keyword].is_object())
    {
        found.insert((
            Severity::Warning,
            format!("{place}: an object without `properties`, which OpenAI refuses"),
        ));
    }
    if let Some(choices) = schema["enum"].as_array() {
        let distinct: BTreeSet<String> = choices.iter().map(Value::to_string).collect();
        if choices.is_empty() || distinct.len() < choices.len() {
            let what = if choices.is_empty() { "no value" } else { "a value twice" };
            found
                .insert((Severity::Warning, format!("{place}: an `enum` with {what}, which Gemini refuses")));
        }
    }
    for (keyword, value) in map {
        match (keyword.as_str(), value) {
            ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(members)) => {
                for (name, member) in members {
                    let is_argument = place == "its arguments" && keyword == "properties";
                    let named = format!("the argument `{name}`");
                    add_refused_forms(member, if is_argument { &named } else { place }, found);
                }
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(parts)) => {
                parts.iter().for_each(|part| add_refused_forms(part, place, found));
            }
            ("items" | "additionalProperties" | "not" | "contains", part) => {
                add_refused_forms(part, place, found);
            }
            _ => {}
        }
    }
}

fn is_blank(text: &Value) -> bool {
    text.as_str().is_none_or(|text| text.trim().is_empty())
}

/// The words of a name in any of the usual spellings, in lower case.
pub(crate) fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.into_iter().filter(|word| !word.is_empty())
}

fn has_remote_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, value)| match value.as_str() {
            Some(target) if key == "$ref" => !target.starts_with('#'),
            _ => has_remote_reference(value),
        }),
        Value::Array(items) => items.iter().any(has_remote_reference),
        _ => false,
    }
}

/// About how many tokens a text is: models differ, and none of them is asked.
pub(crate) fn estimate(text: &str) -> usize {
    let others = text.chars().filter(|c| !c.is_ascii()).count();
    let ascii = text.bytes().filter(u8::is_ascii).count();
    ascii.div_ceil(4) + others
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, changes: &Value) -> Value {
        let mut tool = json!({
            "name": name,
            "description": "Does it.",
            "inputSchema": { "type": "object", "properties": { "a": { "type": "string", "description": "An a" } } },
            "outputSchema": { "type": "object" },
        });
        for (key, value) in changes.as_object().into_iter().flatten() {
            tool[key.as_str()] = value.clone();
        }
        tool
    }

    fn found(tools: &[Value], budget: Option<usize>) -> Vec<(Severity, String)> {
        found_in(Revision::V2025_11_25, tools, budget)
    }

    fn found_in(revision: Revision, tools: &[Value], budget: Option<usize>) -> Vec<(Severity, String)> {
        let described = json!({ "server": { "name": "shop" }, "tools": tools });
        let findings = examine(&described, Some(revision), budget).findings;
        findings
            .into_iter()
            .map(|finding| (finding.severity, format!("{}: {}", finding.item, finding.text)))
            .collect()
    }

    #[test]
    fn keywords_of_an_output_schema_that_clients_pass_over_are_named() {
        let mut found = examine(&json!({ "tools": [tool("t", &json!({}))] }), None, None);
        found.add_unenforced("t", &["`pattern` at `#/a` cannot be enforced: look-around".to_owned()]);
        let text = found.to_text();
        assert!(text.contains("advice   tool t: its output schema: `pattern` at `#/a`"), "{text}");
    }

    #[test]
    fn what_clients_refuse_is_an_error_and_what_they_cut_a_warning() {
        use Severity::{Advice, Error, Warning};
        assert_eq!(found(&[tool("find_it", &json!({ "annotations": { "readOnlyHint": true } }))], None), []);
        let long = "x".repeat(64);
        for (name, changes, severity, text) in [
            ("a.b", json!({}), Error, "characters besides"),
            ("größe", json!({}), Error, "characters besides"),
            ("1st", json!({}), Warning, "begins with neither"),
            (&*long, json!({}), Error, "has 64 characters"),
            (&long[..56], json!({}), Warning, "Cursor leaves it out"),
            ("a", json!({ "description": " " }), Warning, "has no description"),
            ("a", json!({ "description": "x".repeat(2049) }), Warning, "cuts it at 2048"),
            ("a", json!({ "description": "x".repeat(1025) }), Advice, "more than 1024"),
            (
                "a",
                json!({ "inputSchema": { "$ref": "#/$defs/A", "type": "object" } }),
                Error,
                "`$ref` at the root",
            ),
            ("a", json!({ "inputSchema": { "type": "object", "anyOf": [] } }), Error, "has `anyOf`"),
            ("a", json!({ "inputSchema": { "type": "object" } }), Warning, "no `properties`"),
            (
                "a",
                json!({ "inputSchema": { "type": "object", "properties": { "b": {
                    "description": "b", "anyOf": [{ "type": "array", "prefixItems": [true] }]
                } } } }),
                Error,
                "the argument `b`: an array without `items`",
            ),
            (
                "a",
                json!({ "inputSchema": { "type": "object", "properties": { "b": {
                    "description": "b", "type": "array", "items": { "type": ["integer", "null"] }
                } } } }),
                Warning,
                "the argument `b`: a list of types, which Gemini refuses",
            ),
            (
                "a",
                json!({ "inputSchema": { "type": "object", "properties": { "b": { "description": "b", "type": "object" } } } }),
                Warning,
                "the argument `b`: an object without `properties`, which OpenAI refuses",
            ),
            (
                "a",
                json!({ "inputSchema": { "type": "object", "properties": { "b": { "description": "b", "enum": ["a", "a"] } } } }),
                Warning,
                "the argument `b`: an `enum` with a value twice, which Gemini refuses",
            ),
            (
                "a",
                json!({ "inputSchema": { "type": "object", "properties": { "b": { "description": "b", "enum": [] } } } }),
                Warning,
                "the argument `b`: an `enum` with no value, which Gemini refuses",
            ),
            ("a", json!({ "inputSchema": { "type": "object", "if": {} } }), Warning, "has `if`"),
            ("a", json!({ "inputSchema": {} }), Error, "no `\"type\": \"object\"` at the root"),
            (
                "a",
                json!({ "inputSchema": { "type": "object", "properties": { "b": { "$ref": "http://x/y", "description": "b" } } } }),
                Error,
                "a schema elsewhere",
            ),
            (
                "a",
                json!({ "inputSchema": { "type": "object", "properties": { "b": { "type": "string" } } } }),
                Warning,
                "`b` has no description",
            ),
            (
                "a",
                json!({ "inputSchema": { "type": "object", "properties": { "b c": { "description": "b" } } } }),
                Error,
                "the argument `b c`: Anthropic",
            ),
            ("a", json!({ "outputSchema": { "anyOf": [] } }), Error, "the whole list"),
            (
                "deleteAll",
                json!({ "annotations": { "readOnlyHint": true } }),
                Warning,
                "its name says `delete`",
            ),
            ("remove-x", json!({ "annotations": { "destructiveHint": false } }), Warning, "not destructive"),
            ("get_x", json!({}), Advice, "`readOnlyHint` is not set"),
        ] {
            let found = found(&[tool(name, &changes)], None);
            assert_eq!(found.len(), 1, "{name} {changes}: {found:?}");
            assert!(found[0].0 == severity && found[0].1.contains(text), "{name} {changes}: {found:?}");
        }
        let twice = [tool("a", &json!({})), tool("b", &json!({})), tool("a", &json!({}))];
        let text = "tool a: is listed 2 times: clients refuse the list, or reach only one of them";
        assert_eq!(found(&twice, None), [(Error, text.to_owned())]);
        let mut plain = tool("a", &json!({}));
        plain.as_object_mut().expect("a tool").remove("outputSchema");
        assert!(found(&[plain], None)[0].1.contains("no schema"));
        // a definition describes the arguments that refer to it
        let by_reference = json!({ "inputSchema": {
            "type": "object", "properties": { "b": { "$ref": "#/$defs/B" } }, "$defs": { "B": { "description": "A b" } }
        } });
        assert_eq!(found(&[tool("a", &by_reference)], None), []);
    }

    #[test]
    fn results_are_objects_before_2026_07_28_and_any_json_since_then() {
        for (schema, is_object) in
            [(json!({ "type": "object" }), true), (json!({ "type": "array" }), false), (json!({}), false)]
        {
            let tools = [tool("a", &json!({ "outputSchema": schema }))];
            for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
                assert_eq!(found_in(revision, &tools, None).is_empty(), is_object, "{revision} {schema}");
            }
            assert_eq!(found_in(Revision::V2026_07_28, &tools, None), [], "{schema}");
        }
    }

    #[test]
    fn a_budget_that_is_given_is_an_error_to_exceed_and_the_default_one_a_warning() {
        let big: Vec<Value> =
            (0..30).map(|n| tool(&format!("tool_{n}"), &json!({ "description": "é".repeat(900) }))).collect();
        let over = |found: &[(Severity, String)]| {
            found.iter().find(|(_, text)| text.contains("in the budget")).map(|(severity, _)| *severity)
        };
        assert_eq!(over(&found(&big, None)), Some(Severity::Warning));
        assert_eq!(over(&found(&big, Some(100))), Some(Severity::Error));
        assert_eq!(over(&found(&big, Some(100_000))), None);
        let tools: Vec<Value> = (0..129).map(|n| tool(&format!("t{n}"), &json!({}))).collect();
        assert!(found(&tools, Some(100_000))[0].1.contains("129 tools"));
        assert_eq!((estimate("abcdefgh"), estimate("日本"), estimate("")), (2, 2, 0));
    }

    #[test]
    fn lists_of_any_shape_are_examined() {
        for described in [
            json!({}),
            json!({ "tools": 5, "server": [] }),
            json!({ "tools": [null, { "name": 1, "inputSchema": "x", "annotations": [] }], "prompts": [{}] }),
        ] {
            let _found = examine(&described, None, None).to_json();
        }
    }
}
