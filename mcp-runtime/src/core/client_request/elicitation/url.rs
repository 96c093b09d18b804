//! URL mode: the user visits a URL, for what must not pass through the client.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::answer::{Answer, decode_result};
use crate::core::{
    client_request::engine::{ResponseFuture, with_meta},
    context::{ClientFeature, ClientRequestError, Context, PendingRequest},
    crypto::random_id,
    jsonrpc::{Object, notification},
    protocol::Revision,
};

impl Context {
    /// Requests that the user visits a URL, for what must not pass through the client: passwords, payments, the
    /// consent to use another service.
    ///
    /// Agreement means that the user opens the URL, not that they finish there. The URL must not contain secrets or
    /// grant access to anyone who has it.
    ///
    /// # Errors
    /// The user declined or dismissed the request, no request can be sent to the client, or the URL is neither `http`
    /// nor `https`.
    ///
    /// See [URL mode](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#url-mode-elicitation-requests).
    ///
    /// ```
    /// use mcp_runtime::prelude::*;
    ///
    /// /// Connects the user's calendar.
    /// #[mcp_tool]
    /// async fn connect(ctx: &Context) -> Result<&'static str, ToolError> {
    ///     ctx.elicit_url("consent", "Let us read your calendar.", "https://example.com/connect").await?;
    ///     Ok("continue in your browser")
    /// }
    /// ```
    pub fn elicit_url<'c>(
        &'c self,
        key: impl Into<Cow<'c, str>>,
        message: impl Into<Cow<'c, str>>,
        url: impl Into<Cow<'c, str>>,
    ) -> ElicitUrl<'c> {
        let (key, message, url) = (key.into(), message.into(), url.into());
        ElicitUrl { ctx: self, key, message, url, id: None, meta: Map::new() }
    }

    /// Notifies the client that the user is done at the URL of the elicitation with this id.
    ///
    /// Only 2025-11-25 has ids and this notification; clients of other revisions are not sent it.
    ///
    /// See [completion notifications](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#completion-notifications-for-url-mode-elicitation).
    pub fn elicitation_complete(&self, id: &str) {
        if self.revision() == Revision::V2025_11_25
            && let Some(connection) = &self.inner().request.connection
        {
            connection.notify(notification("notifications/elicitation/complete", |params| {
                params.str("elicitationId", id);
            }));
        }
    }
}

/// A URL for the user to visit, of [`Context::elicit_url`].
///
/// Awaited, it gives nothing, or an error if the user declined or dismissed it; [`answer`](Self::answer)
/// distinguishes these without an error. Nothing is sent before it is polled.
#[derive(Debug)]
#[must_use = "nothing is sent before `.await`"]
pub struct ElicitUrl<'c> {
    ctx: &'c Context,
    key: Cow<'c, str>,
    message: Cow<'c, str>,
    url: Cow<'c, str>,
    id: Option<Cow<'c, str>>,
    meta: Map<String, Value>,
}

impl<'c> ElicitUrl<'c> {
    /// Sets `elicitationId` on the wire, which only 2025-11-25 has; the default is random.
    ///
    /// [`Context::elicitation_complete`] refers to it.
    pub fn id(mut self, id: impl Into<Cow<'c, str>>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Adds a member to the `_meta` of the request, which only clients of 2025-11-25 see.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// The same elicitation, in which declining is an answer and not an error.
    pub fn answer(self) -> ResponseFuture<'c, Answer<()>> {
        Box::pin(self.request())
    }

    async fn request(self) -> Result<Answer<()>, ClientRequestError> {
        let Self { ctx, key, message, url, id, meta } = self;
        let id = match id {
            Some(id) => id,
            None => elicitation_id(&key)?.into(),
        };
        let params = url_params(&key, &message, &url, &id, ctx.revision())?;
        let request = PendingRequest {
            key: key.into(),
            requires: ClientFeature::ElicitationUrl,
            method: "elicitation/create",
            params: with_meta(params, &meta, ctx.revision()),
        };
        ctx.request_client(request, |result| decode_result(result, |_| Ok(()))).await
    }
}

impl<'c> IntoFuture for ElicitUrl<'c> {
    type Output = Result<(), ClientRequestError>;
    type IntoFuture = ResponseFuture<'c, ()>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let key = self.key.clone();
            self.request().await?.into_result(&key)
        })
    }
}

/// The params of an elicitation by URL; only 2025-11-25 has the id.
///
/// # Errors
/// The revision does not have this mode, or clients must not open the URL.
pub(super) fn url_params(
    key: &str,
    message: &str,
    url: &str,
    id: &str,
    revision: Revision,
) -> Result<Vec<u8>, ClientRequestError> {
    if !is_visitable(url) {
        let reason = "its URL is not a plain `https://` or `http://` URL\nwrite scheme, host and path, without user names";
        return Err(ClientRequestError::Unfit { key: key.into(), reason: reason.to_owned() });
    }
    if revision < Revision::V2025_11_25 {
        return Err(ClientRequestError::Revision("elicitation by URL"));
    }
    let mut out = Vec::with_capacity(192);
    let mut params = Object::new(&mut out);
    params.raw("mode", "\"url\"").str("message", message).str("url", url);
    if !revision.is_modern() {
        params.str("elicitationId", id);
    }
    params.end();
    Ok(out)
}

/// Whether a browser can open the URL, and shows its host.
fn is_visitable(url: &str) -> bool {
    let lower = url.to_ascii_lowercase();
    let rest = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let clean = !url.contains(|c: char| c.is_whitespace() || c.is_control());
    clean && !host.is_empty() && !host.contains(['@', '\\'])
}

fn elicitation_id(key: &str) -> Result<String, ClientRequestError> {
    random_id().map_err(|error| {
        let reason = format!("the operating system provides no randomness for its id: {error}");
        ClientRequestError::Unfit { key: key.into(), reason }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_web_urls_are_sent() {
        for good in ["https://example.com", "HTTPS://example.com/a?b=c#d", "http://127.0.0.1:8080/x"] {
            assert!(is_visitable(good), "{good}");
        }
        let bad = [
            "",
            "example.com",
            "https://",
            "https:///x",
            "javascript:alert(1)",
            "file:///etc",
            "https://a b",
        ];
        for bad in bad.into_iter().chain(["https://bank.example@evil.example/", "https://a\u{7}"]) {
            assert!(!is_visitable(bad), "{bad}");
        }
    }

    #[test]
    fn ids_differ() {
        let (one, other) =
            (elicitation_id("key").expect("randomness"), elicitation_id("key").expect("randomness"));
        assert_ne!(one, other);
        assert_eq!(one.len(), 32);
    }
}
