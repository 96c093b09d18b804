//! The audit log: one line of JSON for each call, and for each request that is refused. A function of the program gets
//! the lines, or they are `tracing` events with the target `mcp_runtime::audit`.
//!
//! A line says when, who, what, how it ended and how long it took:
//!
//! ```json
//! {"time":"2026-11-22T21:04:36.120Z","event":"call","method":"tools/call","kind":"tool","item":"transfer","arguments":["account","amount"],"outcome":"tool_error","issuer":"https://id.example.com","subject":"ada","address":"192.0.2.7","request":"7","trace":"0af7651916cd43dd8448eb211c80319c","ms":12.5}
//! ```
//!
//! | member | value |
//! |---|---|
//! | `event` | `call`; `task`, a call that went on as a task and has ended; `refused`, which no item got to see; `route`, a request to a [route](crate::addition::Addition::route) of an addition |
//! | `method`, `kind`, `item` | of a call: the method, `tool`, `resource` or `prompt`, and its wire name or URI; of a route: the method of HTTP, `route`, and its path |
//! | `arguments` | the names of the arguments; with [`values`](Audit::values) an object, but for those that are secret |
//! | `outcome` | `ok`, `tool_error`, `error`, `input_required`, `task`, `cancelled`, `refused` |
//! | `outcome` of a task | `completed`, `tool_error`, `failed`, `cancelled`, `expired` (no client asked for it in time) |
//! | `task` | the id of the task; its first eight characters if it belongs to no principal, since who has the id may see it |
//! | `reason` | why it was refused or has failed: `scopes`, `timeout`, `token_expired`, ..; see [the list](crate::guide::telemetry#reasons) |
//! | `scopes` | the scopes that the caller lacks, separated by spaces |
//! | `code`, `status` | of a JSON-RPC error; of a refusal over HTTP, or of the response of a route |
//! | `issuer`, `subject`, `client_id`, `address` | the caller, the OAuth client that it uses, and its address, as far as they are known; of a route, the [`Principal`](crate::Principal) among the extensions of its response |
//! | `request`, `trace` | the request's id as JSON text, and the trace that the request is part of |
//! | `ms` | milliseconds |
//!
//! More members of your own are [fields](Audit::field). A line has at most 16 KiB: texts are cut, and end with `…` then, the
//! values of arguments first. Characters that some readers take for the end of a line, such as U+2028, are escaped, so that a line
//! is a line for all of them.

use std::{
    borrow::Cow,
    net::IpAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value, value::RawValue};

use crate::core::{
    build_error::BuildError,
    callback::Callback,
    connection::Principal,
    dispatch::{ObservedItem, Request},
    invoke::discard,
    jsonrpc::{Object, decode_string, write_array, write_string},
    log_limit::{LogLimit, LogLine},
    observer::{AnyDetails, EndOutcome, EndedRequest, EndedTask, Observer, RefusedRequest},
    reason::Reason,
    server::ServerBuilder,
};

/// The target of lines that are `tracing` events; this crate's own events are not sent to clients.
const TARGET: &str = concat!(env!("CARGO_CRATE_NAME"), "::audit");

/// The function that gets the lines.
type Sink = Callback<dyn Fn(&str) + Send + Sync>;

/// The value of a field of a principal.
type FieldValue = Callback<dyn Fn(&Principal) -> Value + Send + Sync>;

/// Bytes of a line, at most.
const MAX_LINE: usize = 16 << 10;
/// Bytes of a line besides its arguments, at most.
const MAX_REST: usize = 4 << 10;
/// Bytes of a text as it is written, at most.
const MAX_TEXT: usize = 256;
/// Bytes of the value of a field, as it is written, at most.
const MAX_FIELD: usize = 128;
/// Fields, at most.
const MAX_FIELDS: usize = 8;
/// Bytes of the name of an argument, as it is written, at most.
const MAX_NAME: usize = 120;
/// Bytes of the id of a request, at most, beyond which it is written as a text.
const MAX_ID: usize = 256;
/// Names of arguments in one line, at most.
const MAX_NAMES: usize = 64;
/// The suffix of a text that was cut.
const CUT: &str = "…";

/// The members whose names a field must not have.
const MEMBERS: [&str; 20] = [
    "time",
    "event",
    "method",
    "kind",
    "item",
    "arguments",
    "outcome",
    "reason",
    "scopes",
    "task",
    "code",
    "status",
    "issuer",
    "subject",
    "client_id",
    "address",
    "request",
    "trace",
    "ms",
    "",
];

/// Where the audit log goes, and what is in it; for [`ServerBuilder::audit`](crate::ServerBuilder::audit).
///
/// [`new`](Self::new) makes each line a `tracing` event, for the subscriber of the program to write; [`to`](Self::to) passes it
/// to a function.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use mcp_runtime::{audit::Audit, prelude::*, testing::TestServer};
/// use serde_json::{Value, json};
///
/// /// Signs in.
/// #[mcp_tool]
/// fn sign_in(user: String, #[mcp(secret)] password: String) -> String {
///     format!("welcome, {user} ({})", password.len())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> mcp_runtime::Result<()> {
/// let lines = Arc::new(Mutex::new(Vec::new()));
/// let sink = lines.clone();
/// let audit = Audit::to(move |line: &str| sink.lock().unwrap().push(line.to_owned())).values();
/// let server = TestServer::new(mcp_runtime::server!().tool::<sign_in>().audit(audit))?;
/// server.call("sign_in", json!({ "user": "ada", "password": "xyzzy" })).await.expect_ok();
///
/// let line: Value = serde_json::from_str(&lines.lock().unwrap()[0]).unwrap();
/// assert_eq!(line["item"], "sign_in");
/// assert_eq!(line["arguments"], json!({ "user": "ada", "password": "[secret]" }));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct Audit {
    /// `None` for `tracing` events.
    sink: Option<Sink>,
    values: bool,
    fields: Vec<(String, FieldValue)>,
}

impl Audit {
    /// Makes each line the message of a `tracing` event with the target `mcp_runtime::audit`, at level `INFO`. The program's
    /// subscriber writes it, and its filters can leave it out: [the guide](crate::guide::security#the-audit-log) has a layer
    /// that keeps all of them.
    pub fn new() -> Self {
        Self::default()
    }

    /// Passes each line, without its line end, to a function. The call waits for it, so it must not block.
    pub fn to(sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { sink: Some(Callback(Arc::new(sink))), ..Self::new() }
    }

    /// Writes the values of arguments of items that exist, but for those that are declared `#[mcp(secret)]` or with
    /// [`ToolBuilder::secret`](crate::tool::ToolBuilder::secret).
    pub fn values(mut self) -> Self {
        self.values = true;
        self
    }

    /// Adds a member to each line whose caller is known: text, a number, or nothing. At most 8 can be added, and a value
    /// of more than 128 bytes is cut.
    ///
    /// ```
    /// use mcp_runtime::audit::Audit;
    ///
    /// let audit = Audit::new().field("tenant", |principal| principal.claims()?.get("tenant").cloned());
    /// let server = mcp_runtime::server!().discover().audit(audit);
    /// ```
    pub fn field<V: Into<Value>>(
        mut self,
        name: impl Into<String>,
        value: impl Fn(&Principal) -> Option<V> + Send + Sync + 'static,
    ) -> Self {
        let value = move |principal: &Principal| value(principal).map_or(Value::Null, Into::into);
        self.fields.push((name.into(), Callback(Arc::new(value))));
        self
    }

    /// Checks the names and the number of the fields.
    fn check_fields(&self) -> Result<(), String> {
        let names: Vec<&str> = self.fields.iter().map(|(name, _)| name.as_str()).collect();
        if names.len() > MAX_FIELDS {
            return Err(format!(
                "the audit log has {} fields, and at most {MAX_FIELDS} are written",
                names.len()
            ));
        }
        for (index, name) in names.iter().enumerate() {
            if MEMBERS.contains(name) || names.iter().take(index).any(|earlier| earlier == name) {
                return Err(format!(
                    "the field `{name}` of the audit log has the name of another member\ngive it one of its own"
                ));
            }
            if name.len() > 32 {
                return Err(format!(
                    "the name of the field `{name}` of the audit log is longer than 32 bytes"
                ));
            }
        }
        Ok(())
    }
}

impl ServerBuilder {
    /// Writes an [audit log](crate::audit): one line for each call, and for each request that is refused. A second one is
    /// written as well.
    ///
    /// ```
    /// use mcp_runtime::audit::Audit;
    ///
    /// let server = mcp_runtime::server!().discover().audit(Audit::new());
    /// ```
    pub fn audit(mut self, audit: Audit) -> Self {
        self.errors.extend(audit.check_fields().err().map(BuildError::new));
        self.observers.push(Arc::new(audit));
        self
    }
}

/// Who has sent a request, and what it calls.
struct RequestDetails {
    /// The name or URI that the client sent, if it is not secret.
    name: Option<String>,
    /// As the observer writes them.
    arguments: Vec<u8>,
    caller: Option<Arc<Principal>>,
    address: Option<IpAddr>,
    /// Raw JSON.
    id: Box<str>,
    trace: Option<String>,
}

impl Observer for Audit {
    fn details(
        &self,
        request: &Request<'_>,
        item: &ObservedItem,
        trace: &dyn Fn() -> Option<String>,
    ) -> Option<AnyDetails> {
        let name = match item {
            // the secret is in the URI
            ObservedItem::Found { name, secrets, .. }
                if !secrets.is_empty() && item.name_of("resource").is_some() =>
            {
                Some(name.clone())
            }
            _ => request.params.name.or(request.params.uri).and_then(decode_string).map(Cow::into_owned),
        };
        Some(Box::new(RequestDetails {
            name,
            arguments: self.arguments(request.params.arguments.map_or("{}", RawValue::get), item),
            caller: request.context.caller.clone(),
            address: request.context.address,
            id: request.id.into(),
            trace: trace(),
        }))
    }

    fn request_ended(&self, request: &EndedRequest<'_>) {
        let details = request.details.and_then(|details| details.downcast_ref::<RequestDetails>());
        let Some(details) = details else { return };
        let is_call = !matches!(request.item, ObservedItem::None);
        if !is_call && request.outcome != EndOutcome::Refused {
            return;
        }
        self.write(if is_call { "call" } else { "refused" }, &|line| {
            line.str("method", request.method);
            if is_call {
                line.str("kind", request.item.kind());
            }
            if let Some(name) = &details.name {
                write_text(line, "item", name);
            }
            if is_call {
                line.key("arguments").extend_from_slice(&details.arguments);
            }
            line.str("outcome", request.outcome.as_str())
                .opt_str("reason", request.reason.map(Reason::as_str));
            line.opt_str("task", request.task);
            if let (Some(Reason::Scopes), ObservedItem::Missing { scopes, .. }) =
                (request.reason, request.item)
            {
                write_text(line, "scopes", &scopes.join(" "));
            }
            if let Some(code) = request.code {
                line.raw("code", code);
            }
            self.write_caller(line, details.caller.as_deref(), details.address);
            if details.id.len() <= MAX_ID {
                line.raw("request", &details.id);
            } else {
                write_text(line, "request", &details.id);
            }
            line.opt_str("trace", details.trace.as_deref());
            line.value("ms", &milliseconds(request.duration));
        });
    }

    fn refused(&self, refused: &RefusedRequest, caller: Option<&Principal>, address: Option<IpAddr>) {
        self.write("refused", &|line| {
            line.str("outcome", "refused").str("reason", refused.reason.as_str());
            if !refused.scopes.is_empty() {
                write_text(line, "scopes", &refused.scopes);
            }
            if let Some(status) = refused.status {
                line.value("status", &status);
            }
            self.write_caller(line, caller, address);
        });
    }

    fn route_answered(
        &self,
        path: &str,
        (method, status): (&str, u16),
        caller: Option<&Principal>,
        address: Option<IpAddr>,
        duration: Duration,
    ) {
        self.write("route", &|line| {
            write_text(line, "method", method);
            line.str("kind", "route").str("item", path).value("status", &status);
            self.write_caller(line, caller, address);
            line.value("ms", &milliseconds(duration));
        });
    }

    fn task_ended(&self, task: &EndedTask<'_>) {
        self.write("task", &|line| {
            line.str("kind", "tool").str("item", task.tool).str("task", task.id);
            line.str("outcome", task.outcome.as_str()).opt_str("reason", task.reason.map(Reason::as_str));
            if let Some(code) = task.code {
                line.raw("code", code);
            }
            self.write_caller(line, task.caller, task.address);
            line.opt_str("trace", task.trace);
            line.value("ms", &milliseconds(task.duration));
        });
    }
}

impl Audit {
    /// The arguments of a request, as a line has them.
    fn arguments(&self, json: &str, item: &ObservedItem) -> Vec<u8> {
        match item {
            ObservedItem::None => Vec::new(),
            // of an item that is not there, nothing says which arguments are secret
            _ if self.values && !matches!(item, ObservedItem::Missing { .. }) => {
                self.values_of(&item.without_secrets(json))
            }
            _ => self.names_of(&serde_json::from_str(json).unwrap_or_default()),
        }
    }

    fn write(&self, event: &str, members: &dyn Fn(&mut Object<'_>)) {
        match &self.sink {
            // without the spans of the request, which a subscriber would write before the line
            None => tracing::info!(target: TARGET, parent: None, "{}", line(event, members)),
            Some(sink) => {
                let line = line(event, members);
                // a user's code, of which a panic loses the line
                let _contained = catch_unwind(AssertUnwindSafe(|| sink(&line))).map_err(discard);
            }
        }
    }

    /// The names of arguments as JSON, as many as a line may have.
    fn names_of(&self, arguments: &Map<String, Value>) -> Vec<u8> {
        let (mut out, mut room) = (Vec::new(), MAX_LINE - MAX_REST);
        let mut is_cut = arguments.len() > MAX_NAMES;
        let fits = |name: &&String| {
            let size = written(&cut(name, MAX_NAME)) + 3;
            is_cut |= size > room;
            room = room.saturating_sub(size);
            room > 0
        };
        let mut names: Vec<Cow<'_, str>> =
            arguments.keys().take(MAX_NAMES).take_while(fits).map(|name| cut(name, MAX_NAME)).collect();
        if is_cut {
            names.push(CUT.into());
        }
        write_array(&mut out, names, |out, name| write_string(out, &name));
        out
    }

    /// Arguments with their values as JSON, as much as a line may have: each has its share of the room that is left.
    fn values_of(&self, arguments: &Map<String, Value>) -> Vec<u8> {
        let room = MAX_LINE - MAX_REST;
        let mut out = Vec::new();
        let mut object = Object::new(&mut out);
        let mut used = 2;
        for (index, (name, value)) in arguments.iter().enumerate() {
            let left = room.saturating_sub(used);
            let others = arguments.len() - index;
            let name = cut(name, MAX_NAME);
            let Some(share) = (left / others.min(8)).checked_sub(MAX_NAME + 8).filter(|share| *share > 64)
            else {
                object.value(CUT, &format!("{others} more"));
                break;
            };
            let json = escape_line_ends(value.to_string());
            used += written(&name) + 6;
            if json.len() <= share {
                used += json.len();
                object.escaped_key(&name).extend_from_slice(json.as_bytes());
            } else {
                let text = value.as_str().unwrap_or(&json);
                let start = cut(text, share - 48);
                let text = format!("{start} ({} bytes)", text.len());
                used += written(&text) + 2;
                write_string(object.escaped_key(&name), &text);
            }
        }
        object.end();
        out
    }

    /// Writes who has sent a request, as far as it is known.
    fn write_caller(&self, line: &mut Object<'_>, caller: Option<&Principal>, address: Option<IpAddr>) {
        if let Some(caller) = caller {
            write_text(line, "issuer", caller.issuer());
            write_text(line, "subject", caller.subject());
            if let Some(client) = caller.client_id() {
                write_text(line, "client_id", client);
            }
            for (name, value) in &self.fields {
                // a user's code
                let value = catch_unwind(AssertUnwindSafe(|| value(caller)));
                match value.unwrap_or_else(|panic| {
                    discard(panic);
                    static LIMIT: LogLimit = LogLimit::new();
                    if let Some(LogLine { suppressed }) = LIMIT.line() {
                        tracing::error!(
                            suppressed,
                            field = name,
                            "the function of a field of the audit log panicked"
                        );
                    }
                    Value::Null
                }) {
                    Value::Null => {}
                    Value::String(text) => write_string(line.escaped_key(name), &cut(&text, MAX_FIELD)),
                    value => {
                        let json = value.to_string();
                        if written(&json) <= MAX_FIELD {
                            line.escaped_key(name).extend_from_slice(json.as_bytes());
                        } else {
                            write_string(line.escaped_key(name), &cut(&json, MAX_FIELD));
                        }
                    }
                }
            }
        }
        line.opt_str("address", address.map(|address| address.to_string()).as_deref());
    }
}

/// Writes a text that may come from a client, cut if it is long.
fn write_text(line: &mut Object<'_>, key: &str, text: &str) {
    line.str(key, &cut(text, MAX_TEXT));
}

/// Bytes of a character in a line.
fn width(c: char) -> usize {
    match c {
        '"' | '\\' => 2,
        c if c < ' ' || ends_line(c) => 6,
        c => c.len_utf8(),
    }
}

/// Bytes of a text in a line.
fn written(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// Cuts a text to this many bytes in a line, with a mark if it was longer.
fn cut(text: &str, bytes: usize) -> Cow<'_, str> {
    let (mut used, mut end) = (0, 0);
    for (at, c) in text.char_indices() {
        used += width(c);
        if used > bytes {
            return format!("{}{CUT}", text.get(..end).unwrap_or_default()).into();
        }
        if used + CUT.len() <= bytes {
            end = at + c.len_utf8();
        }
    }
    text.into()
}

/// Whether some reader takes a character, which JSON does not escape, for the end of a line, or lets it change how the
/// line looks.
fn ends_line(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// JSON without such characters.
fn escape_line_ends(json: String) -> String {
    use std::fmt::Write as _;
    if json.is_ascii() && !json.contains('\u{7f}') {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if ends_line(c) {
            // writing to a string cannot fail
            let _written = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// With microseconds as decimals.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// One line without its end.
fn line(event: &str, members: &dyn Fn(&mut Object<'_>)) -> String {
    let mut out = Vec::with_capacity(384);
    let mut object = Object::new(&mut out);
    object.str("time", &humantime::format_rfc3339_millis(SystemTime::now()).to_string());
    object.str("event", event);
    members(&mut object);
    object.end();
    escape_line_ends(String::from_utf8(out).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::core::observer::Network;

    #[test]
    fn the_id_of_a_request_is_bounded_whatever_its_client_sends() {
        for (length, is_whole) in [(MAX_ID - 2, true), (MAX_ID, false)] {
            let lines = Arc::<Mutex<Vec<String>>>::default();
            let sink = lines.clone();
            let id = format!("\"{}\"", "a".repeat(length));
            let details = RequestDetails {
                name: None,
                arguments: b"[]".to_vec(),
                caller: None,
                address: None,
                id: id.clone().into(),
                trace: None,
            };
            Audit::to(move |line| sink.lock().unwrap().push(line.to_owned())).request_ended(&EndedRequest {
                method: "tools/call",
                item: &ObservedItem::Unregistered,
                outcome: EndOutcome::Ok,
                error: None,
                reason: None,
                code: None,
                task: None,
                revision: "2026-07-28",
                network: Network { transport: None, version: None },
                duration: Duration::from_millis(1),
                details: Some(&details),
            });
            let line: Value = serde_json::from_str(&lines.lock().unwrap()[0]).unwrap();
            let request = line["request"].to_string();
            assert_eq!(request == id, is_whole, "{line}");
        }
    }
}
