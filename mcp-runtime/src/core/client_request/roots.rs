//! The folders that the client's user works in.
//!
//! See [roots](https://modelcontextprotocol.io/specification/2026-07-28/client/roots).

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::engine::{ResponseFuture, with_meta};
use crate::core::context::{ClientFeature, ClientRequestError, Context, PendingRequest};

impl Context {
    /// Requests the folders that the client's user works in.
    ///
    /// Deprecated by the protocol since 2026-07-28, where clients may still offer it.
    ///
    /// # Errors
    /// The client refused, or no request can be sent to it.
    ///
    /// See [roots](https://modelcontextprotocol.io/specification/2026-07-28/client/roots).
    ///
    /// ```
    /// use mcp_runtime::prelude::*;
    ///
    /// /// Lists the folders that are open.
    /// #[mcp_tool]
    /// async fn folders(ctx: &Context) -> Result<Vec<String>, ToolError> {
    ///     Ok(ctx.roots("folders").await?.into_iter().map(|root| root.uri).collect())
    /// }
    /// ```
    pub fn roots<'c>(&'c self, key: impl Into<Cow<'c, str>>) -> Roots<'c> {
        Roots { ctx: self, key: key.into(), meta: Map::new() }
    }
}

/// A request for the folders that the client's user works in, of [`Context::roots`]. Nothing is sent before it is polled.
#[derive(Debug)]
#[must_use = "nothing is sent before `.await`"]
pub struct Roots<'c> {
    ctx: &'c Context,
    key: Cow<'c, str>,
    meta: Map<String, Value>,
}

impl Roots<'_> {
    /// Adds a member to the `_meta` of the request, which only clients of 2025-11-25 see.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }
}

impl<'c> IntoFuture for Roots<'c> {
    type Output = Result<Vec<Root>, ClientRequestError>;
    type IntoFuture = ResponseFuture<'c, Vec<Root>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { ctx, key, meta } = self;
        let request = PendingRequest {
            key: key.into(),
            requires: ClientFeature::Roots,
            method: "roots/list",
            params: with_meta(b"{}".to_vec(), &meta, ctx.revision()),
        };
        Box::pin(ctx.request_client(request, decode_result))
    }
}

/// A folder, or a file, that a client's user works in.
///
/// See [roots](https://modelcontextprotocol.io/specification/2026-07-28/client/roots#root).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[non_exhaustive]
pub struct Root {
    /// `uri` on the wire, which begins with `file://`.
    pub uri: String,
    /// `name` on the wire, for people.
    pub name: Option<String>,
}

impl Root {
    /// A folder or a file: a URI that begins with `file://`.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: None }
    }

    /// Sets the name for people.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

#[derive(Deserialize)]
struct ListRootsResult {
    roots: Vec<Root>,
}

fn decode_result(result: &str) -> Result<Vec<Root>, String> {
    let Ok(ListRootsResult { roots }) = serde_json::from_str(result) else {
        return Err("the result has no list `roots` of objects with a `uri`".to_owned());
    };
    if roots.iter().all(|root| root.uri.starts_with("file://")) {
        Ok(roots)
    } else {
        Err("a root has a `uri` that does not begin with `file://`".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_decode_result() {
        let roots =
            decode_result(r#"{"roots":[{"uri":"file:///a","name":"A","_meta":{}},{"uri":"file:///b"}]}"#);
        let roots = roots.expect("roots");
        assert_eq!(roots[0].name.as_deref(), Some("A"));
        assert_eq!((&*roots[1].uri, &roots[1].name), ("file:///b", &None));
        assert_eq!(decode_result(r#"{"roots":[]}"#), Ok(Vec::new()));
    }

    #[test]
    fn a_malformed_list_of_roots_is_refused() {
        for bad in
            ["{}", "[]", "3", r#"{"roots":[{}]}"#, r#"{"roots":{}}"#, r#"{"roots":[{"uri":"https://a"}]}"#]
        {
            assert!(decode_result(bad).is_err(), "{bad}");
        }
    }
}
