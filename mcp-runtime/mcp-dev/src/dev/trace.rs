//! What happens, for the author's log: a ring of events, bounded in number and bytes, which new readers get from its beginning.
//! Secrets are masked before an event is kept: arguments that a schema or a flag marks, members with telling names, also of
//! JSON inside texts, secrets in URLs, values of variables, and every other place where such a value occurs, as it is or escaped.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use mcp_runtime::__dev::sounds_secret;
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::broadcast::{self, error::RecvError},
};

use super::{
    known_tools::KnownTools,
    members::without_members,
    message::{Kind, kind},
    secrets::{
        SHORTEST_SECRET, Sign, is_distinct, is_open, is_secret_value, masked_url, sign_of, spellings,
        without_secrets_of_urls,
    },
};
use crate::report;

const MAX_EVENTS: usize = 1000;
const MAX_BYTES: usize = 8 << 20;
/// The largest event that is kept whole.
const MAX_EVENT: usize = 256 << 10;
/// Values that are masked wherever they occur, of those that are marked and of those that names tell, and the bytes of each
/// kind. If there are more, everything is masked.
const MAX_SECRETS: usize = 1024;
const MAX_SECRET_BYTES: usize = 1 << 20;
/// Steps that the schemas of one value take; what is left of the value is masked.
const MAX_STEPS: usize = 100_000;
/// Questions whose schemas are known for the masks of their answers, and the schemas of one key; answers to others are masked.
const MAX_QUESTIONS: usize = 1024;
const MAX_SCHEMAS: usize = 8;
/// Members of an event or a message that are shown if everything is masked.
const ROUTE: [&str; 8] = ["jsonrpc", "id", "method", "session", "state", "kind", "question", "request"];
const FULL: &str = "more secrets were seen than are remembered: everything is masked from now on; start `mcp-dev` again, or with `--values`";
/// Readers that are further behind start again.
const READER_QUEUE: usize = 256;
/// Stands in place of what is not shown.
pub(super) const MASKED: &str = "•••";
#[derive(Clone, Copy)]
pub(super) enum Direction {
    ToServer,
    ToClient,
}

/// Clones are the same.
#[derive(Clone)]
pub(super) struct Trace(Arc<Shared>);

struct Shared {
    ring: Mutex<Ring>,
    readers: broadcast::Sender<Arc<str>>,
    mask: Mask,
    /// The schemas of what servers ask in results, by session and by the key of the question.
    questions: Mutex<HashMap<(String, String), Vec<Value>>>,
}

#[derive(Default)]
struct Ring {
    events: VecDeque<Arc<str>>,
    bytes: usize,
    count: u64,
    /// The last event of a build.
    build: Option<Arc<str>>,
}

impl Trace {
    pub(super) fn new(mask: Mask) -> Self {
        let (readers, _) = broadcast::channel(READER_QUEUE);
        Self(Arc::new(Shared { ring: Mutex::default(), readers, mask, questions: Mutex::default() }))
    }

    /// A message that was passed on. `schema` is the one of what it answers; `false` masks every value of a result, since the
    /// secrets in it are not known.
    pub(super) fn message(
        &self,
        session: &str,
        direction: Direction,
        message: &Value,
        took: Option<Duration>,
        tools: &KnownTools,
        schema: Option<&Value>,
    ) {
        let bytes = message.to_string().len();
        let mut shown = message.clone();
        let method = shown.get("method").and_then(Value::as_str).unwrap_or_default();
        let tool = match method {
            "tools/call" => Some(
                shown["params"]["name"]
                    .as_str()
                    .and_then(|name| tools.schema(name))
                    .unwrap_or(Value::Bool(false)),
            ),
            _ => None,
        };
        let (kind, id) = match kind(message) {
            Kind::Request { id, .. } => ("request", Some(id)),
            Kind::Notification { .. } => ("notification", None),
            Kind::Response { id } if message.get("error").is_some() => ("error", Some(id)),
            Kind::Response { id } => ("response", Some(id)),
            Kind::Other => ("invalid", None),
        };
        let id = id.cloned();
        self.0.mask.settle(tools);
        if let (Some(Value::Bool(false)), arguments) = (&tool, &message["params"]["arguments"]) {
            self.0.mask.wait_for_schema(&message["params"]["name"], arguments);
        }
        if let (Some(schema), Some(arguments)) = (tool, shown.pointer_mut("/params/arguments")) {
            self.0.mask.by_schema(arguments, &schema);
        }
        match schema {
            Some(Value::Bool(false)) => {
                for place in ["/result", "/error/message", "/error/data"] {
                    shown.pointer_mut(place).into_iter().for_each(|result| self.0.mask.values(result));
                }
                // whether a call has failed stays visible
                if let Some(is_error @ Value::Bool(_)) = message.pointer("/result/isError") {
                    shown["result"]["isError"] = is_error.clone();
                }
            }
            Some(schema) => {
                shown
                    .pointer_mut("/result/content")
                    .into_iter()
                    .for_each(|content| self.0.mask.by_schema(content, schema));
            }
            None => {}
        }
        match direction {
            Direction::ToClient => self.note_questions(session, message),
            Direction::ToServer => self.mask_answers(session, &mut shown),
        }
        self.0.mask.everywhere(&mut shown);
        let direction = match direction {
            Direction::ToServer => "to_server",
            Direction::ToClient => "to_client",
        };
        self.push(
            "traffic",
            json!({
                "session": session,
                "direction": direction,
                "kind": kind,
                "method": message.get("method"),
                "id": id,
                "bytes": bytes,
                "ms": took.map(|took| took.as_secs_f64() * 1000.0),
                "message": shown,
            }),
        );
    }

    /// Notes the schemas of what the server asks in a result.
    fn note_questions(&self, session: &str, message: &Value) {
        let note = |key: String, question: &Value| {
            let Some(schema) = question.pointer("/params/requestedSchema") else { return };
            let mut questions = self.0.questions.lock().unwrap_or_else(PoisonError::into_inner);
            if questions.len() >= MAX_QUESTIONS {
                questions.clear();
            }
            let schemas = questions.entry((session.to_owned(), key)).or_default();
            if !schemas.contains(schema) {
                if schemas.len() == MAX_SCHEMAS {
                    *schemas = vec![Value::Bool(false)];
                }
                schemas.push(schema.clone());
            }
        };
        // a task has them in its state, too
        for place in ["/result/inputRequests", "/params/inputRequests"] {
            for (key, question) in message.pointer(place).and_then(Value::as_object).into_iter().flatten() {
                note(key.clone(), question);
            }
        }
    }

    /// Masks answers to what the server asked by every schema of that question, and all values of an answer to an unknown
    /// question.
    fn mask_answers(&self, session: &str, shown: &mut Value) {
        let answers = shown.pointer_mut("/params/inputResponses").and_then(Value::as_object_mut);
        for (key, answer) in answers.into_iter().flatten() {
            let Some(content) = answer.get_mut("content") else { continue };
            let questions = self.0.questions.lock().unwrap_or_else(PoisonError::into_inner);
            let schemas = questions.get(&(session.to_owned(), key.clone())).cloned();
            drop(questions);
            for schema in schemas.unwrap_or_else(|| vec![Value::Bool(false)]) {
                self.0.mask.by_schema(content, &schema);
            }
        }
    }

    /// A line for the author.
    pub(super) fn note(&self, session: &str, text: &str) {
        self.event("note", json!({ "session": session, "text": text }));
    }

    /// Masks what is not shown.
    pub(super) fn mask(&self, value: &mut Value) {
        self.0.mask.everywhere(value);
    }

    /// The same text without what is not shown.
    pub(super) fn masked(&self, text: &str) -> String {
        let mut value = Value::from(text);
        self.mask(&mut value);
        value.as_str().unwrap_or_default().to_owned()
    }

    /// What has become of the process of a session.
    pub(super) fn state(&self, session: &str, state: &str, text: &str) {
        self.event("server", json!({ "session": session, "state": state, "text": text }));
    }

    /// Any other event.
    pub(super) fn event(&self, event: &str, mut data: Value) {
        self.0.mask.everywhere(&mut data);
        self.push(event, data);
    }

    fn push(&self, event: &str, mut data: Value) {
        if self.0.mask.has_filled_up() {
            report(&format!("mcp-dev: {FULL}"));
            self.push("note", json!({ "text": FULL }));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut ring = self.0.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.count += 1;
        data["event"] = event.into();
        data["seq"] = ring.count.into();
        data["at"] = u64::try_from(now.as_millis()).unwrap_or_default().into();
        let mut text = data.to_string();
        if text.len() > MAX_EVENT {
            let start: String = data["message"].to_string().chars().take(MAX_EVENT / 8).collect();
            data["message"] = Value::Null;
            data["beginning"] = start.into();
            text = data.to_string();
        }
        let text: Arc<str> = text.into();
        ring.bytes += text.len();
        ring.events.push_back(text.clone());
        if event == "build" {
            ring.build = Some(text.clone());
        }
        while ring.events.len() > MAX_EVENTS || ring.bytes > MAX_BYTES {
            let Some(oldest) = ring.events.pop_front() else { break };
            ring.bytes -= oldest.len();
        }
        // there may be no reader; under the lock, so that each reader gets every event once
        let _readers = self.0.readers.send(text);
    }

    /// Writes every event, until the program ends.
    pub(super) async fn write(self, mut file: impl AsyncWrite + Unpin) {
        let (kept, mut coming) = self.subscribe();
        let mut next: VecDeque<Arc<str>> = kept.into();
        drop(self);
        loop {
            let mut line = match next.pop_front() {
                Some(text) => text.to_string(),
                None => match coming.recv().await {
                    Ok(text) => text.to_string(),
                    Err(RecvError::Lagged(count)) => json!({ "event": "lost", "count": count }).to_string(),
                    Err(RecvError::Closed) => return,
                },
            };
            line.push('\n');
            if file.write_all(line.as_bytes()).await.is_err() || file.flush().await.is_err() {
                return;
            }
        }
    }

    /// The events that are kept, with the last one of a build, and those that come.
    pub(super) fn subscribe(&self) -> (Vec<Arc<str>>, broadcast::Receiver<Arc<str>>) {
        let ring = self.0.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let is_kept = |build: &&Arc<str>| ring.events.iter().any(|event| Arc::ptr_eq(event, build));
        let build = ring.build.iter().filter(|build| !is_kept(build));
        (build.chain(&ring.events).cloned().collect(), self.0.readers.subscribe())
    }
}

/// What is not shown.
pub(super) struct Mask {
    shows_values: bool,
    /// Names of members that a flag marks.
    names: Vec<String>,
    /// Values of variables and headers, in all spellings.
    fixed: Vec<String>,
    found: Mutex<Found>,
}

/// Secrets that were seen. None of them is forgotten: someone who may send many could uncover the others.
#[derive(Default)]
struct Found {
    /// Those that a schema or a flag marks.
    marked: Remembered,
    /// Those that names tell.
    guessed: Remembered,
    /// The tools and arguments of calls whose schemas are not known: any text of them may be secret.
    unlisted: Vec<(String, Value)>,
    /// The texts of these.
    suspected: Remembered,
    is_full: bool,
    /// Whether the author was told.
    was_told: bool,
}

#[derive(Default)]
struct Remembered {
    /// The spellings of each, itself first.
    spellings: Vec<Vec<String>>,
    bytes: usize,
}

impl Remembered {
    /// Whether there is room for a secret, which is remembered.
    fn add(&mut self, secret: &str) -> bool {
        if self.spellings.iter().any(|spellings| spellings.first().is_some_and(|own| own == secret)) {
            return true;
        }
        let has_room = self.spellings.len() < MAX_SECRETS && self.bytes + secret.len() <= MAX_SECRET_BYTES;
        if has_room {
            self.bytes += secret.len();
            self.spellings.push(spellings(secret));
        }
        has_room
    }

    /// Whether there is room for the texts in a value that are not too short.
    fn add_all(&mut self, value: &Value) -> bool {
        let all = |has_room, value| self.add_all(value) && has_room;
        match value {
            Value::String(text) if text.len() >= SHORTEST_SECRET && text != MASKED => self.add(text),
            Value::Array(values) => values.iter().fold(true, all),
            Value::Object(members) => members.values().fold(true, all),
            _ => true,
        }
    }
}

impl Mask {
    /// `values` are masked wherever they occur, unless values are shown.
    pub(super) fn new(shows_values: bool, names: &[String], values: impl Iterator<Item = String>) -> Self {
        let is_secret = |value: &String| value.len() >= SHORTEST_SECRET && !is_open("", value);
        Self {
            shows_values,
            names: names.iter().map(|name| plain_name(name)).collect(),
            fixed: values.filter(is_secret).flat_map(|value| spellings(&value)).collect(),
            found: Mutex::default(),
        }
    }

    fn by_schema(&self, value: &mut Value, schema: &Value) {
        if !self.shows_values {
            self.walk_schema(value, schema, schema, 0, &mut 0);
        }
    }

    fn walk_schema(&self, value: &mut Value, schema: &Value, root: &Value, depth: usize, steps: &mut usize) {
        if value.is_null() || *value == MASKED {
            return;
        }
        *steps += 1;
        // what a schema without an end marks is not known
        if *schema == false || depth > 32 || *steps > MAX_STEPS {
            self.values(value);
            return;
        }
        if schema["format"] == "password" || schema["writeOnly"] == true || schema["x-secret"] == true {
            self.remember(value, true);
            *value = MASKED.into();
            return;
        }
        let target = schema["$ref"].as_str().and_then(|name| name.strip_prefix('#'));
        if let Some(target) = target.and_then(|target| root.pointer(target)) {
            self.walk_schema(value, target, root, depth + 1, steps);
        }
        for member in ["allOf", "anyOf", "oneOf"] {
            for part in schema[member].as_array().into_iter().flatten() {
                self.walk_schema(value, part, root, depth + 1, steps);
            }
        }
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let own = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
                    if let Some(own) = own {
                        self.walk_schema(value, own, root, depth + 1, steps);
                    }
                }
            }
            Value::Array(values) => {
                for value in values {
                    self.walk_schema(value, &schema["items"], root, depth + 1, steps);
                }
            }
            _ => {}
        }
    }

    /// Masks every text, number and boolean in a value; they are not remembered, since most are not secret.
    fn values(&self, value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(|value| self.values(value)),
            Value::Object(members) => members.values_mut().for_each(|value| self.values(value)),
            Value::Null => {}
            _ if self.shows_values => {}
            _ => *value = MASKED.into(),
        }
    }

    /// Remembers the texts in a value; `is_marked` are those that no name tells.
    fn remember(&self, value: &Value, is_marked: bool) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let remembered = if is_marked { &mut found.marked } else { &mut found.guessed };
        let has_room = remembered.add_all(value);
        found.is_full |= !has_room;
    }

    /// Masks every text of the arguments of a call wherever it occurs, until the schema of its tool tells which are secret.
    fn wait_for_schema(&self, tool: &Value, arguments: &Value) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let call = (tool.as_str().unwrap_or_default().to_owned(), arguments.clone());
        if self.shows_values || found.unlisted.contains(&call) {
            return;
        }
        let has_room = found.unlisted.len() < MAX_SECRETS && found.suspected.add_all(arguments);
        found.is_full |= !has_room;
        if has_room {
            found.unlisted.push(call);
        }
    }

    /// Remembers what is secret in the calls whose tools are known now, and forgets the rest of them.
    fn settle(&self, tools: &KnownTools) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let mut listed = Vec::new();
        found.unlisted.retain_mut(|(tool, arguments)| match tools.schema(tool) {
            Some(schema) => {
                listed.push((arguments.take(), schema));
                false
            }
            None => true,
        });
        if listed.is_empty() {
            return;
        }
        let mut suspected = Remembered::default();
        let fits =
            found.unlisted.iter().fold(true, |fits, (_, arguments)| suspected.add_all(arguments) && fits);
        (found.suspected, found.is_full) = (suspected, found.is_full || !fits);
        drop(found);
        for (mut arguments, schema) in listed {
            self.by_schema(&mut arguments, &schema);
            self.walk_names(&mut arguments);
        }
    }

    /// Whether everything is masked since the last time that this was asked.
    fn has_filled_up(&self) -> bool {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = found.is_full && !found.was_told;
        found.was_told |= is_new;
        is_new
    }

    fn everywhere(&self, value: &mut Value) {
        if self.shows_values {
            return;
        }
        self.walk_names(value);
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let all = [&found.marked, &found.guessed, &found.suspected];
        let all = all.into_iter().flat_map(|remembered| &remembered.spellings).flatten();
        let mut secrets: Vec<String> = self.fixed.iter().chain(all).cloned().collect();
        let is_full = found.is_full;
        drop(found);
        if is_full {
            match &mut *value {
                Value::Object(members) => {
                    let hidden = members.iter_mut().filter(|(name, _)| !ROUTE.contains(&name.as_str()));
                    hidden.for_each(|(_, value)| self.values(value));
                }
                other => self.values(other),
            }
        }
        // a value that is a part of another one must not uncover the rest
        secrets.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
        replace(value, &secrets);
    }

    fn walk_names(&self, value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(|value| self.walk_names(value)),
            Value::Object(members) => {
                for (name, value) in members {
                    if !self.hide_member(name, value) {
                        self.walk_names(value);
                    }
                }
            }
            Value::String(text) => {
                let may_hide = |name: &str| sign_of(name).is_some() || self.names.contains(&plain_name(name));
                let shown =
                    without_members(text, may_hide, |name, mut value| self.hide_member(name, &mut value));
                if let Some(shown) = shown {
                    *text = shown;
                }
                if let Some((shown, secrets)) = without_secrets_of_urls(text) {
                    *text = shown;
                    secrets.iter().for_each(|secret| self.remember_distinct(secret));
                }
            }
            _ => {}
        }
    }

    /// Masks a value whose name tells that it is secret or that a flag marks; returns whether it does.
    fn hide_member(&self, name: &str, value: &mut Value) -> bool {
        let is_marked = self.names.contains(&plain_name(name)) && !is_schema(value);
        match (sign_of(name), &*value) {
            _ if is_marked => self.remember(value, true),
            (Some(Sign::Sure), Value::Number(_))
            | (Some(Sign::Sure | Sign::SurePlural), Value::String(_)) => self.remember(value, false),
            // headers that occur several times
            (Some(Sign::Sure | Sign::SurePlural), Value::Array(values))
                if values.iter().any(Value::is_string) =>
            {
                values.iter().filter_map(Value::as_str).for_each(|text| self.remember_distinct(text));
            }
            (Some(Sign::Likely), Value::String(text)) if !is_open(name, text) => {
                self.remember_distinct(text);
            }
            _ => return false,
        }
        *value = MASKED.into();
        true
    }

    /// Remembers a text unless it occurs by chance.
    fn remember_distinct(&self, text: &str) {
        if is_distinct(text) {
            self.remember(&text.into(), false);
        }
    }
}

/// Whether it describes a value, and is none.
fn is_schema(value: &Value) -> bool {
    value.is_object()
        && ["type", "description", "$ref", "anyOf"].iter().any(|member| value.get(member).is_some())
}

fn plain_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn replace(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(text) => {
            for secret in secrets {
                if text.contains(secret.as_str()) {
                    *text = text.replace(secret.as_str(), MASKED);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| replace(value, secrets)),
        Value::Object(members) => {
            let is_named =
                members.keys().any(|name| secrets.iter().any(|secret| name.contains(secret.as_str())));
            if is_named {
                let renamed: Map<String, Value> = std::mem::take(members)
                    .into_iter()
                    .map(|(name, value)| {
                        let name =
                            secrets.iter().fold(name, |name, secret| name.replace(secret.as_str(), MASKED));
                        (name, value)
                    })
                    .collect();
                *members = renamed;
            }
            members.values_mut().for_each(|value| replace(value, secrets));
        }
        _ => {}
    }
}

/// The words of a command for the page, without the values of flags, variables, headers and parameters of URLs whose names tell
/// that they are secret; and these values.
pub(super) fn masked_words(words: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut shown, mut secrets) = (Vec::new(), Vec::new());
    // the flag whose value comes next
    let mut flag: Option<&String> = None;
    for word in words {
        // `--no-auth --port 80` has no value of a secret
        if let Some(name) = flag.take().filter(|_| !word.starts_with("--")) {
            secrets.extend(is_secret_value(name, word).then(|| word.clone()));
            shown.push(MASKED.to_owned());
            continue;
        }
        if let Some(url) = masked_url(word, &mut secrets) {
            shown.push(url);
            continue;
        }
        // `--token=x`, `TOKEN=x` and `Authorization: x`
        let named = word.find(['=', ':']).filter(|at| sounds_secret(&word[..*at]));
        if let Some(at) = named {
            let (name, value) = word.split_at(at + 1);
            let spaces = value.len() - value.trim_start().len();
            let parts = value.split_whitespace().chain([value.trim()]);
            secrets.extend(parts.filter(|part| is_secret_value(&word[..at], part)).map(str::to_owned));
            shown.push(format!("{name}{}{MASKED}", &value[..spaces]));
            continue;
        }
        if word.starts_with('-') && !word.contains('=') && sounds_secret(word) {
            flag = Some(word);
        }
        // `--database=postgres://..`
        match without_secrets_of_urls(word) {
            Some((text, own)) => {
                shown.push(text);
                secrets.extend(own);
            }
            None => shown.push(word.clone()),
        }
    }
    (shown, secrets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_command_are_shown_without_secrets() {
        for (word, expected) in [
            ("--token=planted-secret", "--token=•••"),
            ("RATES_KEY=planted-secret", "RATES_KEY=•••"),
            ("Authorization: Bearer planted-secret", "Authorization: •••"),
            (
                "http://127.0.0.1:1/mcp?a=b&api_key=planted-secret#c",
                "http://127.0.0.1:1/mcp?a=b&api_key=•••#c",
            ),
            ("postgres://ada:planted-secret@db/x", "postgres://ada:masked@db/x"),
            ("--database=postgres://ada:planted-secret@db/x", "--database=postgres://ada:masked@db/x"),
            ("--author=Ada Lovelace", "--author=Ada Lovelace"),
            ("--database=ledger.db", "--database=ledger.db"),
            ("http://127.0.0.1:1?a=b", "http://127.0.0.1:1?a=b"),
        ] {
            let (shown, secrets) = masked_words(&[word.to_owned()]);
            assert_eq!(shown, [expected]);
            let is_secret = word.contains("planted");
            assert_eq!(
                secrets.iter().any(|secret| secret == "planted-secret"),
                is_secret,
                "{word}: {secrets:?}"
            );
        }
        let words = ["server", "--token", "S3CRET", "--no-auth", "--port", "80"].map(str::to_owned);
        let (shown, _) = masked_words(&words);
        assert_eq!(shown, ["server", "--token", "•••", "--no-auth", "--port", "80"]);
    }

    /// Of a message that a client sends to a tool without secrets in its schema.
    fn shown_arguments(mask: Mask, arguments: &[Value]) -> Vec<Value> {
        let trace = Trace::new(mask);
        let tools = KnownTools::default();
        tools.learn(&json!({ "tools": [{ "name": "t", "inputSchema": {} }] }));
        for own in arguments {
            let params = json!({ "name": "t", "arguments": own, "_meta": { "progressToken": "progress-1" } });
            let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
            trace.message("s", Direction::ToServer, &call, None, &tools, None);
        }
        let event = |text: &Arc<str>| serde_json::from_str::<Value>(text).expect("JSON");
        trace.subscribe().0.iter().map(|text| event(text)["message"]["params"].take()).collect()
    }

    #[test]
    fn arguments_are_masked_by_their_names_and_those_with_similar_names_are_shown() {
        let named = json!({
            "token": "planted-1", "secret_key": "planted", "headers": { "X-Api-Key": "planted", "Cookie": ["planted"] },
            "auth": "planted", "bearer": "planted", "credentials": "planted", "passphrase": "planted", "pwd": "planted",
            "pin": "planted", "url": "http://u:planted-2@h/?api_key=planted-3&page=1", "password": 4711,
        });
        let shown = json!({
            "author": "Ada", "maxTokens": 4096, "tokens": "12", "cursor": "c1", "nextPageToken": "p1", "key": "colour",
            "pin": 13, "auth": "none", "pwd": "/srv/ada", "secrets": 2, "url": "http://h/?author=ada", "token": "",
        });
        let echo = json!({ "text": "planted-1 planted-2 planted-3 author" });
        let params =
            shown_arguments(Mask::new(false, &[], std::iter::empty()), &[named.clone(), shown.clone(), echo]);
        let all = Value::from(params.clone()).to_string();
        assert!(!all.contains("planted") && !all.contains("4711"), "{all}");
        assert_eq!(params[0]["arguments"]["url"], "http://u:masked@h/?api_key=•••&page=1");
        assert_eq!(params[0]["_meta"]["progressToken"], "progress-1");
        assert_eq!(params[1]["arguments"], shown);
        assert_eq!(params[2]["arguments"]["text"], "••• ••• ••• author");
        let params = shown_arguments(Mask::new(true, &[], std::iter::empty()), std::slice::from_ref(&named));
        assert_eq!(params[0]["arguments"], named);
    }

    #[test]
    fn members_of_json_inside_a_text_of_a_result_are_masked_by_their_names_and_so_is_the_value_elsewhere() {
        let trace = Trace::new(Mask::new(false, &["mine".to_owned()], std::iter::empty()));
        let shown = |text: String| {
            let result = json!({ "content": [{ "type": "text", "text": text }] });
            let response = json!({ "jsonrpc": "2.0", "id": 7, "result": result });
            trace.message("s", Direction::ToClient, &response, None, &KnownTools::default(), None);
            let last = trace.subscribe().0.last().cloned().expect("an event");
            let event: Value = serde_json::from_str(&last).expect("JSON");
            event["message"]["result"]["content"][0]["text"].as_str().expect("a text").to_owned()
        };
        let inner = json!({
            "password": "planted-1", "api_keys": ["planted-2", "planted-3"], "pin": "planted-4", "secret": 4_711_081_547_110_815_i64, "mine": { "a": "planted-5" },
            "author": "Ada", "maxTokens": 4096, "auth": "none", "schema": { "password": { "type": "string" } }, "secrets": 2,
        });
        let expected = json!({
            "password": "•••", "api_keys": "•••", "pin": "•••", "secret": "•••", "mine": "•••",
            "author": "Ada", "maxTokens": 4096, "auth": "none", "schema": { "password": { "type": "string" } }, "secrets": 2,
        });
        assert_eq!(shown(format!("{inner:#}")), format!("{expected:#}"));
        assert_eq!(shown(format!("Saved: {inner}.")), format!("Saved: {expected}."));
        assert_eq!(shown(json!([inner.to_string()]).to_string()), json!([expected.to_string()]).to_string());
        assert_eq!(shown("planted-1 to planted-5 of Ada".to_owned()), "••• to ••• of Ada");
        // a text that is cut
        assert_eq!(
            shown(r#"{"user":"ada","password":"planted-6"#.to_owned()),
            r#"{"user":"ada","password":"•••""#
        );
        trace.event("stderr", json!({ "text": r#"sent {"password":"planted-7"} to db"# }));
        let seen = trace.subscribe().0.iter().map(ToString::to_string).collect::<String>();
        assert!(!seen.contains("planted") && !seen.contains("4711081547110815"), "{seen}");
    }

    #[test]
    fn secrets_are_masked_where_they_are_escaped_too_and_the_longest_first() {
        let secret = r#"pl"anted\quote"#;
        let values = ["planted1", "planted1-REST", secret, "true"].map(str::to_owned);
        let inner = json!({ "password_was": secret }).to_string();
        let encoded: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        let texts = json!({ "text": format!("{inner} {encoded} /x/planted1-REST/y true") });
        let params = shown_arguments(Mask::new(false, &[], values.into_iter()), &[texts]);
        assert_eq!(params[0]["arguments"]["text"], "{\"password_was\":\"•••\"} ••• /x/•••/y true");
    }

    #[test]
    fn answers_are_masked_by_the_schema_of_the_question_and_unknown_tools_entirely() {
        let trace = Trace::new(Mask::new(false, &[], std::iter::empty()));
        let tools = KnownTools::default();
        let send = |direction, message: &Value| trace.message("s", direction, message, None, &tools, None);
        let schema = json!({ "type": "object", "properties": { "pin": { "type": "string", "format": "password" }, "name": { "type": "string" } } });
        let question = json!({ "method": "elicitation/create", "params": { "requestedSchema": schema } });
        send(
            Direction::ToClient,
            &json!({ "jsonrpc": "2.0", "id": 1, "result": { "inputRequests": { "q": question } } }),
        );
        let answer = |key: &str, value: &str| {
            let content = json!({ "action": "accept", "content": { "pin": value, "name": "Ada" } });
            json!({ "jsonrpc": "2.0", "id": 2, "method": "prompts/get", "params": { "inputResponses": { key: content } } })
        };
        send(Direction::ToServer, &answer("q", "planted-one"));
        send(Direction::ToServer, &answer("other", "planted-two"));
        let arguments = json!({ "a": ["planted-three"], "pin": 4711, "sure": true, "none": null });
        let arguments = json!({ "name": "unknown", "arguments": arguments });
        send(
            Direction::ToServer,
            &json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": arguments }),
        );
        let seen: Vec<String> = trace.subscribe().0.iter().map(ToString::to_string).collect();
        assert!(seen.iter().all(|event| !event.contains("planted")), "{seen:?}");
        assert!(seen[1].contains(r#""name":"Ada""#) && !seen[2].contains("Ada"), "{seen:?}");
        let unknown: Value = serde_json::from_str(&seen[3]).expect("JSON");
        let masked = json!({ "a": ["•••"], "pin": "•••", "sure": "•••", "none": null });
        assert_eq!(unknown["message"]["params"]["arguments"], masked);
    }

    #[test]
    fn the_secret_of_a_call_is_remembered_although_its_tool_is_listed_later() {
        let trace = Trace::new(Mask::new(false, &[], std::iter::empty()));
        let tools = KnownTools::default();
        let call = |tool: &str, arguments: Value| {
            let params = json!({ "name": tool, "arguments": arguments });
            let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
            trace.message("s", Direction::ToServer, &call, None, &tools, None);
        };
        let shown = || {
            trace.note("s", "open with planted-one and planted-two by Adalbert");
            let last = trace.subscribe().0.last().cloned().expect("an event");
            serde_json::from_str::<Value>(&last).expect("JSON")["text"].clone()
        };
        call("open", json!({ "code": "planted-one", "name": "Adalbert" }));
        call("other", json!({ "codes": ["planted-two"] }));
        assert_eq!(shown(), "open with ••• and ••• by •••", "any of them may be secret");
        let secret = json!({ "type": "string", "writeOnly": true });
        let schema = json!({ "properties": { "code": secret, "codes": { "items": secret } } });
        tools.learn(&json!({ "tools": [{ "name": "open", "inputSchema": schema }] }));
        call("open", json!({}));
        assert_eq!(shown(), "open with ••• and ••• by Adalbert", "the other tool is not known");
        tools.learn(&json!({ "tools": [{ "name": "other", "inputSchema": { "properties": {} } }] }));
        call("open", json!({}));
        assert_eq!(shown(), "open with ••• and planted-two by Adalbert");
    }

    #[test]
    fn values_of_a_result_of_an_unknown_tool_are_masked_and_whether_it_has_failed_is_shown() {
        let shown = |shows_values: bool, response: Value| {
            let trace = Trace::new(Mask::new(shows_values, &[], std::iter::empty()));
            let (tools, unknown) = (KnownTools::default(), Value::Bool(false));
            trace.message("s", Direction::ToClient, &response, None, &tools, Some(&unknown));
            let event: Value = serde_json::from_str(&trace.subscribe().0[0]).expect("JSON");
            event["message"].clone()
        };
        for is_error in [true, false] {
            let result = json!({ "content": [], "structuredContent": { "pin": 4711, "sure": true }, "isError": is_error });
            let response = json!({ "jsonrpc": "2.0", "id": 7, "result": result });
            let event = shown(false, response.clone());
            assert_eq!(event["result"]["structuredContent"], json!({ "pin": "•••", "sure": "•••" }));
            assert_eq!((&event["result"]["isError"], &event["id"]), (&json!(is_error), &json!(7)));
            assert_eq!(shown(true, response.clone()), response);
        }
        let error = json!({ "code": -32000, "message": "planted", "data": { "pin": 4711 } });
        let event = shown(false, json!({ "jsonrpc": "2.0", "id": 7, "error": error }));
        assert_eq!(event["error"], json!({ "code": -32000, "message": "•••", "data": { "pin": "•••" } }));
    }

    /// Shown results of one tool that is known.
    fn shown_results(trace: &Trace, results: &[Value]) -> Vec<String> {
        let tools = KnownTools::default();
        let shown = |result: &Value| {
            let response = json!({ "jsonrpc": "2.0", "id": 7, "result": result });
            trace.message("s", Direction::ToClient, &response, None, &tools, None);
            trace.subscribe().0.last().expect("an event").to_string()
        };
        results.iter().map(shown).collect()
    }

    #[test]
    fn a_secret_is_not_forgotten_for_others_and_everything_is_masked_when_they_are_too_many() {
        let trace = Trace::new(Mask::new(false, &["mine".to_owned()], std::iter::empty()));
        let keys = |from: usize, to: usize| -> Vec<Value> {
            (from..to).map(|n| json!({ "api_key": format!("guessed-{n}") })).collect()
        };
        let planted = json!({ "password": "planted-1", "mine": "planted-2" });
        let echo = json!({ "text": "planted-1 planted-2 of Ada" });
        let shown = shown_results(&trace, &[planted, json!({ "keys": keys(0, 400) }), echo]);
        assert!(shown.iter().all(|event| !event.contains("planted")), "{shown:?}");
        assert!(shown[2].contains("••• ••• of Ada"), "{}", shown[2]);
        // more than are remembered
        let later = json!({ "password": "planted-3" });
        let echo = json!({ "text": "planted-1 planted-2 planted-3 of Ada" });
        let shown = shown_results(&trace, &[json!({ "keys": keys(400, 2000) }), later, echo]);
        assert!(
            shown.iter().all(|event| !event.contains("planted") && !event.contains("guessed")),
            "{shown:?}"
        );
        assert!(!shown[2].contains("Ada") && shown[2].contains(r#""id":7"#), "{}", shown[2]);
        trace.event("stderr", json!({ "session": "s", "text": "planted-3 of Ada" }));
        assert_eq!(trace.masked("planted-3 of Ada"), MASKED);
        let events: Vec<String> = trace.subscribe().0.iter().map(ToString::to_string).collect();
        let told = events.iter().filter(|event| event.contains("everything is masked from now on")).count();
        assert_eq!(told, 1, "{events:?}");
        assert!(
            events.last().is_some_and(|event| !event.contains("Ada") && event.contains(r#""session":"s""#))
        );
    }

    #[test]
    fn what_a_schema_without_an_end_marks_is_masked() {
        let trace = Trace::new(Mask::new(false, &[], std::iter::empty()));
        let mut deep = json!({ "pin": 4711, "name": "planted" });
        for _ in 0..40 {
            deep = json!({ "next": deep });
        }
        // ten ways from each step to the next
        let wide: Vec<Value> = (0..10).map(|_| json!({ "$ref": "#" })).collect();
        for schema in [
            json!({ "properties": { "next": { "$ref": "#" }, "name": { "writeOnly": true } } }),
            json!({ "anyOf": wide, "properties": { "name": { "writeOnly": true } } }),
        ] {
            let response = json!({ "jsonrpc": "2.0", "id": 7, "result": { "content": deep } });
            trace.message("s", Direction::ToServer, &response, None, &KnownTools::default(), Some(&schema));
            let shown = trace.subscribe().0.last().expect("an event").to_string();
            assert!(!shown.contains("planted"), "{shown}");
        }
    }
}
