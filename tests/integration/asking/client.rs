//! A client that answers what it is asked, and remembers the questions. The other files of this folder ask it.

use std::sync::{Arc, Mutex};

use mcp_runtime::{Revision, ServerBuilder, testing::TestServer};
use serde_json::{Value, json};

use crate::common::{LEGACY, serve};

/// The questions that a client was asked: `method` and `params`, oldest first.
#[derive(Clone, Default)]
pub(super) struct Questions(Arc<Mutex<Vec<(String, Value)>>>);

impl Questions {
    /// Those since the last time.
    pub(super) fn take(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.0.lock().expect("questions"))
    }
}

/// Everything that a client can declare.
pub(super) fn everything() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {}, "context": {} }, "roots": {} })
}

/// A client that can do everything and gives these answers, and what it is asked.
pub(super) fn client(
    builder: ServerBuilder,
    answer: impl Fn(&str, &Value) -> Value + Send + Sync + 'static,
) -> (TestServer, Questions) {
    let questions = Questions::default();
    let seen = questions.clone();
    let server = serve(builder).answering(everything(), move |method, params| {
        seen.0.lock().expect("questions").push((method.to_owned(), params.clone()));
        Ok(answer(method, params))
    });
    (server, questions)
}

/// Every revision from one on.
pub(super) fn since(first: Revision) -> impl Iterator<Item = Revision> {
    LEGACY.into_iter().chain([Revision::LATEST]).filter(move |revision| *revision >= first)
}
