//! The requests of a client that its server has not answered: which of them another process gets, and which are lost with
//! theirs.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use tokio::time::Instant;

use super::{
    message::{self, Pass, not_answered},
    replay::{Effect, MAX_CALLS},
    session_log::SessionLog,
    trace::Direction,
};

/// The requests that are not answered, in the order in which they came.
#[derive(Default)]
pub(super) struct Calls(Vec<Call>);

/// A request that the server has not answered.
pub(super) struct Call {
    id: Value,
    batch: Option<u64>,
    since: Instant,
    pub(super) effect: Effect,
    /// Its line, if it may be sent to another process; once, unless it begins anew there.
    again: Option<Vec<u8>>,
    /// It calls a tool whose secrets are not known.
    pub(super) is_unknown: bool,
}

impl Call {
    /// How long the server has had it.
    pub(super) fn took(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Calls {
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= MAX_CALLS
    }

    /// Notes a request, which is a part of this batch. `again` is its line, if it may be sent to another process.
    pub(super) fn note(
        &mut self,
        id: &Value,
        batch: Option<u64>,
        effect: Effect,
        again: Option<Vec<u8>>,
        is_unknown: bool,
    ) {
        self.take(id);
        self.0.push(Call { id: id.clone(), batch, since: Instant::now(), effect, again, is_unknown });
    }

    /// The request with this id, which has got its response.
    pub(super) fn take(&mut self, id: &Value) -> Option<Call> {
        let at = self.0.iter().position(|call| call.id == *id)?;
        Some(self.0.remove(at))
    }

    /// The client cancels a request: it gets no response, but that of a handshake.
    pub(super) fn cancel(&mut self, id: &Value) {
        self.0.retain(|call| call.id != *id || matches!(call.effect, Effect::Initialize));
    }

    /// Whether a request has opened a stream, which goes on with the next process.
    pub(super) fn is_stream(&self, id: &Value) -> bool {
        self.0.iter().any(|call| call.id == *id && call.effect.is_stream())
    }

    /// Takes a notification of the stream that the request with this id has opened.
    pub(super) fn take_notification(&mut self, id: &Value, method: &str, message: &Value) -> Pass {
        match self.0.iter_mut().find(|call| call.id == *id) {
            Some(call) => call.effect.take_notification(&mut call.again, method, message),
            None => Pass::AsItIs,
        }
    }

    /// The notifications by which the client's streams learn that lists may have changed.
    pub(super) fn list_changes(&self) -> impl Iterator<Item = Value> {
        self.0.iter().flat_map(|call| call.effect.list_changes(&call.id))
    }

    /// The lines that a new process gets. It is the last one for requests that do not begin anew.
    pub(super) fn again(&mut self) -> impl Iterator<Item = Vec<u8>> {
        self.0
            .iter_mut()
            .filter_map(|call| if call.effect.begins_anew() { call.again.clone() } else { call.again.take() })
    }

    /// Requests wait for another process no longer, but for those that only it can answer; whether there were others.
    pub(super) fn wait_no_longer(&mut self) -> bool {
        let mut is_any = false;
        for call in self.0.iter_mut().filter(|call| !call.effect.begins_anew()) {
            (call.again, is_any) = (None, true);
        }
        is_any
    }

    /// Ends the requests that the next process does not get, or all of them. Returns the lines that the client gets.
    pub(super) fn end(
        &mut self,
        is_all: bool,
        reason: &str,
        detail: &str,
        log: &SessionLog,
    ) -> impl Iterator<Item = Vec<u8>> + use<> {
        let (mut lines, mut batches) = (Vec::new(), BTreeMap::<u64, Vec<Value>>::new());
        for call in self.0.extract_if(.., |call| is_all || call.again.is_none()) {
            let answer = not_answered(&call.id, reason, detail.trim_end());
            log.answer(Direction::ToClient, &answer, Some(call.took()), None);
            match call.batch {
                Some(batch) => batches.entry(batch).or_default().push(answer),
                None => lines.push(message::to_line(&answer)),
            }
        }
        let batches = batches.into_values().map(|answers| message::to_line(&Value::Array(answers)));
        lines.into_iter().chain(batches)
    }
}
