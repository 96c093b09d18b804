//! Client requests: elicitation, sampling and roots, in calls of legacy and modern clients.

pub(crate) mod before_initialized;
mod elicitation;
mod other_functions;
mod sampling_and_roots;
mod url_elicitation;
mod url_elicitation_required;

use crate::prelude::*;

/// Every capability that a client can declare.
fn everything() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {}, "context": {} }, "roots": {} })
}

/// A client with every capability that gives these answers, and the requests that it receives.
fn client(
    builder: ServerBuilder,
    answer: impl Fn(&str, &Value) -> Value + Send + Sync + 'static,
) -> (TestServer, ClientRequests) {
    answering(serve(builder), everything(), move |method, params| Ok(answer(method, params)))
}

/// Every revision since `first`.
fn since(first: Revision) -> impl Iterator<Item = Revision> {
    LEGACY.into_iter().chain([Revision::LATEST]).filter(move |revision| *revision >= first)
}
