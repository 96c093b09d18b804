//! The messages, notes and states of one session, which the trace gets under its name.

use std::time::Duration;

use serde_json::Value;

use super::{
    known_tools::KnownTools,
    trace::{Direction, Trace},
};

/// The log of a session.
pub(super) struct SessionLog {
    name: String,
    trace: Trace,
    tools: KnownTools,
}

impl SessionLog {
    pub(super) fn new(name: String, trace: Trace, tools: KnownTools) -> Self {
        Self { name, trace, tools }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn trace(&self) -> &Trace {
        &self.trace
    }

    /// What is known of the tools, by which messages are masked.
    pub(super) fn tools(&self) -> &KnownTools {
        &self.tools
    }

    pub(super) fn message(&self, direction: Direction, message: &Value) {
        self.trace.message(&self.name, direction, message, None, &self.tools, None);
    }

    /// A message with the time that it took, and the schema that tells what in it is secret.
    pub(super) fn answer(
        &self,
        direction: Direction,
        message: &Value,
        took: Option<Duration>,
        schema: Option<&Value>,
    ) {
        self.trace.message(&self.name, direction, message, took, &self.tools, schema);
    }

    pub(super) fn note(&self, text: &str) {
        self.trace.note(&self.name, text);
    }

    pub(super) fn state(&self, state: &str, text: &str) {
        self.trace.state(&self.name, state, text);
    }
}
