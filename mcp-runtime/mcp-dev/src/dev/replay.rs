//! The parts of a client's messages by which it survives the replacement of its server: the handshake and what is repeated of
//! it, the requests that may be sent twice, the streams that go on, and the ids of what servers ask.

use std::collections::{BTreeMap, HashMap, hash_map::Entry};

use serde_json::{Value, json};

use super::{
    known_tools::KnownTools,
    message::{self, Pass},
};

/// The largest number of requests in flight, of either side.
pub(super) const MAX_CALLS: usize = 1024;
/// The largest number of subscriptions that are repeated.
const MAX_SUBSCRIPTIONS: usize = 4096;

pub(super) const META_REVISION: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const META_SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Capability, filter of `subscriptions/listen`, and notification.
const LISTS: [(&str, &str, &str); 3] = [
    ("tools", "toolsListChanged", "notifications/tools/list_changed"),
    ("prompts", "promptsListChanged", "notifications/prompts/list_changed"),
    ("resources", "resourcesListChanged", "notifications/resources/list_changed"),
];
/// Requests that change nothing on the server.
const READS: [&str; 10] = [
    "completion/complete",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "server/discover",
    "tools/list",
    "events/list",
];

/// Whether a request may be sent to a second process. `retry_safe` adds calls of tools whose annotations allow it.
pub(super) fn may_repeat(method: &str, message: &Value, retry_safe: bool, tools: &KnownTools) -> bool {
    let name = || message["params"]["name"].as_str().unwrap_or_default();
    READS.contains(&method)
        || matches!(method, "initialize" | "logging/setLevel" | "subscriptions/listen" | "events/stream")
        || matches!(method, "resources/subscribe" | "resources/unsubscribe")
        || (method == "tools/call" && retry_safe && tools.is_repeatable(name()))
}

/// What the end of a request changes.
pub(super) enum Effect {
    None,
    Initialize,
    Discover,
    Tools,
    Level(Value),
    Subscribe {
        uri: String,
        params: Value,
    },
    Unsubscribe(String),
    Listen {
        filter: Value,
        is_acknowledged: bool,
    },
    /// A stream of events.
    Stream,
}

impl Effect {
    pub(super) fn of(method: &str, params: &Value) -> Self {
        let uri = || params["uri"].as_str().unwrap_or_default().to_owned();
        match method {
            "initialize" => Self::Initialize,
            "server/discover" => Self::Discover,
            "tools/list" => Self::Tools,
            "logging/setLevel" => Self::Level(params.clone()),
            "resources/subscribe" => Self::Subscribe { uri: uri(), params: params.clone() },
            "resources/unsubscribe" => Self::Unsubscribe(uri()),
            "subscriptions/listen" => {
                Self::Listen { filter: params["notifications"].clone(), is_acknowledged: false }
            }
            "events/stream" => Self::Stream,
            _ => Self::None,
        }
    }

    /// Whether the request lasts, and goes on with the next process.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self, Self::Listen { .. } | Self::Stream)
    }

    /// Whether the next process gets the request as if it were the first: a handshake, or a stream.
    pub(super) fn begins_anew(&self) -> bool {
        self.is_stream() || matches!(self, Self::Initialize)
    }

    /// Takes a notification of the stream that this request has opened. `again` is the request as the next process gets it.
    pub(super) fn take_notification(
        &mut self,
        again: &mut Option<Vec<u8>>,
        method: &str,
        message: &Value,
    ) -> Pass {
        let params = &message["params"];
        match (method, self) {
            ("notifications/subscriptions/acknowledged", Self::Listen { filter, is_acknowledged }) => {
                if *is_acknowledged {
                    return Pass::Drop;
                }
                *is_acknowledged = true;
                let Some(accepted) = params.get("notifications").filter(|own| own.is_object()) else {
                    return Pass::AsItIs;
                };
                // of changes of lists this program tells, also for a server that never does
                let mut own = accepted.clone();
                for (_, member, _) in LISTS.iter().filter(|(_, member, _)| filter[*member] == true) {
                    own[*member] = true.into();
                }
                *filter = own;
                if *filter != *accepted {
                    let mut message = message.clone();
                    message["params"]["notifications"] = filter.clone();
                    return Pass::Changed(message);
                }
            }
            (
                "notifications/events/active"
                | "notifications/events/event"
                | "notifications/events/heartbeat",
                Self::Stream,
            ) => {
                if let Some(cursor) = params.get("cursor").filter(|cursor| !cursor.is_null())
                    && let Some(line) = again
                    && let Ok(mut request) = serde_json::from_slice::<Value>(line)
                {
                    // the next process goes on after it
                    request["params"]["cursor"] = cursor.clone();
                    *line = message::to_line(&request);
                }
            }
            _ => {}
        }
        Pass::AsItIs
    }

    /// The notifications by which an acknowledged listen stream with this id learns that lists may have changed.
    pub(super) fn list_changes(&self, id: &Value) -> Vec<Value> {
        let Self::Listen { filter, is_acknowledged: true } = self else { return Vec::new() };
        let wanted = LISTS.iter().filter(|(_, member, _)| filter[*member] == true);
        wanted
            .map(|(_, _, method)| {
                let meta = json!({ META_SUBSCRIPTION_ID: id });
                json!({ "jsonrpc": "2.0", "method": method, "params": { "_meta": meta } })
            })
            .collect()
    }

    /// Notes what a response changes. Returns another message if the client gets one.
    pub(super) fn take_response(
        self,
        message: &Value,
        handshake: Option<&mut Handshake>,
        tools: &KnownTools,
    ) -> Option<Value> {
        let result = message.get("result")?;
        match self {
            Self::Initialize => {
                let changed = with_list_changes(message);
                if let Some(handshake) = handshake {
                    handshake.take_result(result);
                }
                return changed;
            }
            Self::Discover => return with_list_changes(message),
            Self::Tools => tools.learn(result),
            Self::Level(params) => {
                if let Some(handshake) = handshake {
                    handshake.level = Some(params);
                }
            }
            Self::Subscribe { uri, params } => {
                if let Some(handshake) = handshake.filter(|own| own.subscriptions.len() < MAX_SUBSCRIPTIONS) {
                    handshake.subscriptions.insert(uri, params);
                }
            }
            Self::Unsubscribe(uri) => {
                if let Some(handshake) = handshake {
                    handshake.subscriptions.remove(&uri);
                }
            }
            Self::Listen { .. } | Self::Stream | Self::None => {}
        }
        None
    }
}

/// The same response, which declares the notifications that this program sends; `None` if it does already.
fn with_list_changes(message: &Value) -> Option<Value> {
    let mut changed = message.clone();
    let capabilities = changed.get_mut("result")?.get_mut("capabilities")?;
    let mut is_changed = false;
    for (capability, ..) in LISTS {
        if let Some(own) = capabilities.get_mut(capability).and_then(Value::as_object_mut)
            && own.get("listChanged") != Some(&Value::Bool(true))
        {
            own.insert("listChanged".to_owned(), true.into());
            is_changed = true;
        }
    }
    is_changed.then_some(changed)
}

/// What a new process must be told.
pub(super) struct Handshake {
    pub(super) params: Value,
    /// The server's answer.
    pub(super) result: Option<Value>,
    pub(super) is_initialized: bool,
    /// The lists that any version of the server has had: the client may keep them.
    lists: [bool; LISTS.len()],
    level: Option<Value>,
    subscriptions: BTreeMap<String, Value>,
}

impl Handshake {
    /// Of a client that has sent `initialize`.
    pub(super) fn new(params: Value) -> Self {
        Self {
            params,
            result: None,
            is_initialized: false,
            lists: [false; LISTS.len()],
            level: None,
            subscriptions: BTreeMap::new(),
        }
    }

    fn take_result(&mut self, result: &Value) {
        for (had, (capability, ..)) in self.lists.iter_mut().zip(LISTS) {
            *had |= result["capabilities"].get(capability).is_some();
        }
        self.result = Some(result.clone());
    }

    /// Takes the answer of a new process to the same `initialize`. Returns lines for the author about what has changed; `None`
    /// if the process refuses it.
    pub(super) fn take_repeated(&mut self, message: &Value) -> Option<Vec<String>> {
        let result = message.get("result").filter(|result| result.get("protocolVersion").is_some())?;
        let old = self.result.as_ref();
        let changed = ["protocolVersion", "capabilities", "instructions"]
            .into_iter()
            .filter(|member| old.and_then(|old| old.get(*member)) != result.get(*member));
        let notes = changed.map(|member| {
            format!("`{member}` of the server has changed: its client sees that when it connects again")
        });
        let notes = notes.collect();
        self.take_result(result);
        Some(notes)
    }

    /// Methods and parameters of the requests that a new process gets after the handshake.
    pub(super) fn repeated(&self) -> Vec<(&'static str, Value)> {
        let level = self.level.clone().into_iter().map(|level| ("logging/setLevel", level));
        level
            .chain(self.subscriptions.values().cloned().map(|params| ("resources/subscribe", params)))
            .collect()
    }

    /// The notifications by which the client learns that lists may have changed.
    pub(super) fn list_changes(&self) -> Vec<Value> {
        let had = self.lists.into_iter().zip(LISTS).filter(|(had, _)| *had && self.is_initialized);
        had.map(|(_, (_, _, method))| json!({ "jsonrpc": "2.0", "method": method })).collect()
    }
}

/// Requests of servers that the client has not answered, by the id that it knows.
#[derive(Default)]
pub(super) struct Asked(HashMap<String, AskedOnce>);

struct AskedOnce {
    /// Its id there; `None` if the process is gone.
    id: Option<Value>,
    schema: Option<Value>,
}

/// Where the response of a client belongs.
pub(super) enum Answered {
    /// To the request with this id there.
    Process { id: Value, schema: Option<Value> },
    /// To a process that is gone.
    Gone,
    /// Nothing is known about it.
    Unknown,
}

impl Asked {
    /// Whether the client has as many requests in flight as are noted; those of processes that are gone are forgotten then.
    pub(super) fn is_full(&mut self) -> bool {
        if self.0.len() >= MAX_CALLS {
            self.0.retain(|_, asked| asked.id.is_some());
        }
        self.0.len() >= MAX_CALLS
    }

    /// Notes a request. Returns another id if the client has one with this id already.
    pub(super) fn note(
        &mut self,
        id: &Value,
        schema: Option<Value>,
        fresh: impl FnOnce() -> String,
    ) -> Option<Value> {
        let asked = AskedOnce { id: Some(id.clone()), schema };
        if let Entry::Vacant(entry) = self.0.entry(id.to_string()) {
            entry.insert(asked);
            return None;
        }
        let fresh = Value::from(fresh());
        self.0.insert(fresh.to_string(), asked);
        Some(fresh)
    }

    pub(super) fn answer(&mut self, id: &Value) -> Answered {
        match self.0.remove(&id.to_string()) {
            Some(AskedOnce { id: Some(id), schema }) => Answered::Process { id, schema },
            Some(AskedOnce { id: None, .. }) => Answered::Gone,
            None => Answered::Unknown,
        }
    }

    /// The id by which the client knows the request that has this id there.
    pub(super) fn shown(&self, id: &Value) -> Option<Value> {
        let (shown, _) = self.0.iter().find(|(_, asked)| asked.id.as_ref() == Some(id))?;
        serde_json::from_str(shown).ok()
    }

    /// Withdraws the requests of a process that is gone; returns the notifications that tell the client.
    pub(super) fn withdraw(&mut self) -> Vec<Value> {
        let open = self.0.iter_mut().filter_map(|(key, asked)| asked.id.take().map(|_| key));
        let ids = open.map(|key| serde_json::from_str::<Value>(key).unwrap_or_default());
        ids.map(|id| {
            let params = json!({ "requestId": id, "reason": "the server was restarted" });
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
        })
        .collect()
    }
}
