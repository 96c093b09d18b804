//! Asking the client which folders its user works in.
//!
//! Functions start it with [`Context::roots`].

use std::{
    borrow::Cow,
    fmt,
    pin::Pin,
    task::{self, Poll},
};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::client_request::with_meta;
use crate::context::{AskError, Asking, ClientFeature, Context, Question};

/// A folder, or a file, that a client's user works in.
///
/// See [roots](https://modelcontextprotocol.io/specification/2026-07-28/client/roots#root).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[non_exhaustive]
pub struct Root {
    /// The wire's `uri`, which begins with `file://`.
    pub uri: String,
    /// The wire's `name`, for people.
    pub name: Option<String>,
}

/// The question for a client's folders, of [`Context::roots`]. Nothing is sent before it is polled.
#[must_use = "nobody is asked before `.await`"]
pub struct Roots<'c> {
    ctx: &'c Context,
    key: Cow<'c, str>,
    meta: Map<String, Value>,
    asking: Option<Asking<Vec<Root>>>,
}

impl<'c> Roots<'c> {
    pub(super) fn new(ctx: &'c Context, key: Cow<'c, str>) -> Self {
        Self { ctx, key, meta: Map::new(), asking: None }
    }

    /// Adds a member to the `_meta` of the request, which only clients of 2025-11-25 see.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }
}

/// The wire's `ListRootsResult`.
#[derive(Deserialize)]
struct Wire {
    roots: Vec<Root>,
}

fn read(result: &str) -> Result<Vec<Root>, String> {
    let Ok(wire) = serde_json::from_str::<Wire>(result) else {
        return Err("the answer has no list `roots` of objects with a `uri`".to_owned());
    };
    if wire.roots.iter().all(|root| root.uri.starts_with("file://")) {
        Ok(wire.roots)
    } else {
        Err("a root has a `uri` that does not begin with `file://`".to_owned())
    }
}

impl Future for Roots<'_> {
    type Output = Result<Vec<Root>, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let asking = this.asking.get_or_insert_with(|| {
            let question = Question {
                key: this.key.as_ref().into(),
                needs: ClientFeature::Roots,
                method: "roots/list",
                params: with_meta(b"{}".to_vec(), &this.meta, this.ctx.revision()),
            };
            this.ctx.ask(Ok(question), read)
        });
        Pin::new(asking).poll(cx)
    }
}

impl fmt::Debug for Roots<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roots").field("key", &self.key).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_read() {
        let roots = read(r#"{"roots":[{"uri":"file:///a","name":"A","_meta":{}},{"uri":"file:///b"}]}"#);
        let roots = roots.expect("roots");
        assert_eq!(roots[0].name.as_deref(), Some("A"));
        assert_eq!((&*roots[1].uri, &roots[1].name), ("file:///b", &None));
        assert_eq!(read(r#"{"roots":[]}"#), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_list_of_roots_is_refused() {
        for bad in
            ["{}", "[]", "3", r#"{"roots":[{}]}"#, r#"{"roots":{}}"#, r#"{"roots":[{"uri":"https://a"}]}"#]
        {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
