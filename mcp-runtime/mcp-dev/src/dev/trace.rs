//! What happens, for the author's log: a ring of events, bounded in number and bytes, which new readers get from its beginning.
//! Secrets are masked before an event is kept: arguments that a schema or a flag marks, members with telling names, values of
//! variables, and every other place where such a value occurs.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::broadcast::{self, error::RecvError},
};

use super::{
    message::{Kind, kind},
    session::KnownTools,
};

const MAX_EVENTS: usize = 1000;
const MAX_BYTES: usize = 8 << 20;
/// The largest event that is kept whole.
const MAX_EVENT: usize = 256 << 10;
/// Values that are masked wherever they occur.
const MAX_SECRETS: usize = 256;
/// The shortest of them: shorter ones occur by chance.
const SHORTEST_SECRET: usize = 4;
/// Readers that are further behind start again.
const READER_QUEUE: usize = 256;
const MASKED: &str = "•••";
/// Members that are masked whatever the schema says, in lower case and without separators.
const SECRET_NAMES: [&str; 16] = [
    "accesskey",
    "accesstoken",
    "apikey",
    "apisecret",
    "apitoken",
    "authorization",
    "authtoken",
    "bearertoken",
    "clientsecret",
    "cookie",
    "passwd",
    "password",
    "privatekey",
    "refreshtoken",
    "secret",
    "setcookie",
];

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
        Self(Arc::new(Shared { ring: Mutex::default(), readers, mask }))
    }

    /// A message that was passed on. `schema` is the one of what it answers.
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
            "tools/call" => shown["params"]["name"].as_str().and_then(|name| tools.schema(name)),
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
        if let Some(schema) = tool {
            self.0.mask.by_schema(&mut shown["params"]["arguments"], &schema);
        }
        if let (Some(schema), Some(content)) = (schema, shown.pointer_mut("/result/content")) {
            self.0.mask.by_schema(content, schema);
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

    /// A line for the author.
    pub(super) fn note(&self, session: &str, text: &str) {
        self.event("note", json!({ "session": session, "text": text }));
    }

    /// Masks what is not shown.
    pub(super) fn mask(&self, value: &mut Value) {
        self.0.mask.everywhere(value);
    }

    /// Masks a text from now on, wherever it occurs.
    pub(super) fn hide(&self, text: &str) {
        self.0.mask.remember(&text.into());
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
    /// Values of variables and headers.
    fixed: Vec<String>,
    found: Mutex<VecDeque<String>>,
}

impl Mask {
    /// `values` are masked wherever they occur, unless values are shown.
    pub(super) fn new(shows_values: bool, names: &[String], values: impl Iterator<Item = String>) -> Self {
        let mut fixed: Vec<String> = values.filter(|value| value.len() >= SHORTEST_SECRET).collect();
        // a value that is a part of another one must not uncover the rest
        fixed.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
        Self {
            shows_values,
            names: names.iter().map(|name| plain_name(name)).collect(),
            fixed,
            found: Mutex::default(),
        }
    }

    fn by_schema(&self, value: &mut Value, schema: &Value) {
        if !self.shows_values {
            self.walk_schema(value, schema, schema, 0);
        }
    }

    fn walk_schema(&self, value: &mut Value, schema: &Value, root: &Value, depth: usize) {
        if depth > 32 || value.is_null() {
            return;
        }
        if schema["format"] == "password" || schema["writeOnly"] == true || schema["x-secret"] == true {
            self.hide(value);
            return;
        }
        let target = schema["$ref"].as_str().and_then(|name| name.strip_prefix('#'));
        if let Some(target) = target.and_then(|target| root.pointer(target)) {
            self.walk_schema(value, target, root, depth + 1);
        }
        for member in ["allOf", "anyOf", "oneOf"] {
            for part in schema[member].as_array().into_iter().flatten() {
                self.walk_schema(value, part, root, depth + 1);
            }
        }
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let own = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
                    if let Some(own) = own {
                        self.walk_schema(value, own, root, depth + 1);
                    }
                }
            }
            Value::Array(values) => {
                for value in values {
                    self.walk_schema(value, &schema["items"], root, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Masks a value, and remembers the texts in it.
    fn hide(&self, value: &mut Value) {
        self.remember(value);
        *value = MASKED.into();
    }

    fn remember(&self, value: &Value) {
        match value {
            Value::String(text) if text.len() >= SHORTEST_SECRET && text != MASKED => {
                let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
                if found.contains(text) {
                    return;
                }
                if found.len() == MAX_SECRETS {
                    found.pop_front();
                }
                found.push_back(text.clone());
            }
            Value::Array(values) => values.iter().for_each(|value| self.remember(value)),
            Value::Object(members) => members.values().for_each(|value| self.remember(value)),
            _ => {}
        }
    }

    fn everywhere(&self, value: &mut Value) {
        if self.shows_values {
            return;
        }
        self.walk_names(value);
        let mut secrets: Vec<String> = self.fixed.clone();
        secrets.extend(self.found.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        secrets.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
        replace(value, &secrets);
    }

    fn walk_names(&self, value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(|value| self.walk_names(value)),
            Value::Object(members) => {
                for (name, value) in members {
                    let plain = plain_name(name);
                    let is_scalar = value.is_string() || value.is_number();
                    let is_flagged = self.names.contains(&plain) && !is_schema(value);
                    if is_flagged || (is_scalar && SECRET_NAMES.contains(&plain.as_str())) {
                        self.hide(value);
                    } else {
                        self.walk_names(value);
                    }
                }
            }
            _ => {}
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

/// Values of this process's environment whose names tell that they are secret.
pub(super) fn secret_variables() -> impl Iterator<Item = String> {
    const PARTS: [&str; 6] = ["PASSWORD", "SECRET", "TOKEN", "APIKEY", "API_KEY", "PRIVATE_KEY"];
    let is_secret = |name: &str| PARTS.iter().any(|part| name.to_ascii_uppercase().contains(part));
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    variables.filter(move |(name, value)| is_secret(name) && value.len() >= 8).map(|(_, value)| value)
}
