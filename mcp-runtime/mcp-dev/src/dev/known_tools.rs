//! What the loop knows of the tools of a server: their hints, which tell what may be repeated, and their schemas, which tell
//! what is secret.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Value, json};

/// The largest number of tools whose hints are known.
const MAX_KNOWN: usize = 4096;

/// What the lists of a server have said about its tools, for hints and masks.
#[derive(Clone, Default)]
pub(super) struct KnownTools(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    tools: HashMap<String, Value>,
    /// The generation of the program whose schemas they are.
    generation: u64,
}

impl KnownTools {
    /// Another program may have other schemas; hints stay for the calls in flight.
    pub(super) fn begin(&self, generation: u64) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.generation != generation {
            known.generation = generation;
            for tool in known.tools.values_mut() {
                tool["inputSchema"] = Value::Null;
            }
        }
    }

    pub(super) fn learn(&self, result: &Value) {
        let known = &mut self.0.lock().unwrap_or_else(PoisonError::into_inner).tools;
        for tool in result.get("tools").and_then(Value::as_array).into_iter().flatten() {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            if known.len() < MAX_KNOWN || known.contains_key(name) {
                known.insert(
                    name.to_owned(),
                    json!({
                        "inputSchema": tool.get("inputSchema"),
                        "annotations": tool.get("annotations"),
                    }),
                );
            }
        }
    }

    /// Whether a call may be sent twice.
    pub(super) fn is_repeatable(&self, name: &str) -> bool {
        let known = &self.0.lock().unwrap_or_else(PoisonError::into_inner).tools;
        let hints = known.get(name).map(|tool| &tool["annotations"]);
        hints.is_some_and(|hints| hints["readOnlyHint"] == true || hints["idempotentHint"] == true)
    }

    /// The schema of a tool's arguments; `None` if the running program has not listed it.
    pub(super) fn schema(&self, name: &str) -> Option<Value> {
        let known = &self.0.lock().unwrap_or_else(PoisonError::into_inner).tools;
        known.get(name).map(|tool| tool["inputSchema"].clone()).filter(|schema| !schema.is_null())
    }

    /// Whether a request calls a tool that is not known, so that its values are masked.
    pub(super) fn is_unknown_call(&self, message: &Value) -> bool {
        message["method"] == "tools/call"
            && message["params"]["name"].as_str().is_none_or(|name| self.schema(name).is_none())
    }
}
