//! What stands around every call of a user's function, on every transport: layers see the method, the item, its raw
//! arguments and the caller, and may answer in place of the function, replace its reply, or delay it. Without any, a
//! call costs what it costs without this file. Only tests have layers so far.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use super::{Request, call::ItemCall, response::Reply};
use crate::connection::Caller;

type ReplyFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// A call as layers see it.
#[derive(Debug, Clone)]
#[cfg_attr(not(test), expect(dead_code, reason = "only tests have layers so far"))]
pub(crate) struct LayeredCall {
    pub(crate) method: Box<str>,
    /// The name of the tool or prompt, or the URI of the resource.
    pub(crate) item: Box<str>,
    /// Raw JSON.
    pub(crate) arguments: Box<str>,
    pub(crate) caller: Option<Arc<Caller>>,
}

impl LayeredCall {
    pub(super) fn new<C: ItemCall>(request: &Request<'_>, call: &C) -> Self {
        Self {
            method: request.method.into(),
            item: call.name().into(),
            arguments: call.arguments().into(),
            caller: request.context.caller.clone(),
        }
    }
}

/// Something around calls.
pub(crate) trait Layer: Send + Sync {
    /// The reply to a call; `next` is the rest of the way to the function, which runs only if this is awaited.
    fn call(&self, call: &LayeredCall, next: ReplyFuture) -> ReplyFuture;
}

/// The layers of a server, outermost first.
#[derive(Clone, Default)]
pub(crate) struct Layers(Vec<Arc<dyn Layer>>);

impl Layers {
    #[cfg(test)]
    pub(crate) fn new(layers: Vec<Arc<dyn Layer>>) -> Self {
        Self(layers)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts the layers around a call.
    pub(super) fn around(&self, call: &LayeredCall, next: ReplyFuture) -> ReplyFuture {
        self.0.iter().rev().fold(next, |next, layer| layer.call(call, next))
    }
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layers({})", self.0.len())
    }
}
