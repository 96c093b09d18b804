//! Asking the user to visit a URL.
//!
//! Functions start it with [`Context::elicit_url`].

use std::{
    borrow::Cow,
    fmt,
    pin::Pin,
    task::{self, Poll},
};

use serde_json::{Map, Value};

use crate::client_request::{
    Refusal,
    elicit::{Answer, Answering, read},
    lower, with_meta,
};
use crate::context::{AskError, Asking, ClientFeature, Context, Question};

/// A URL for the user to visit, of [`Context::elicit_url`].
///
/// Awaited, it gives nothing, and an error if the user declined or dismissed it; [`answer`](Self::answer) tells these
/// apart without an error. Nothing is sent before it is polled.
#[must_use = "nobody is asked before `.await`"]
pub struct ElicitUrl<'c> {
    ctx: &'c Context,
    key: Cow<'c, str>,
    message: Cow<'c, str>,
    url: Cow<'c, str>,
    id: Option<Cow<'c, str>>,
    meta: Map<String, Value>,
    answering: Option<Answering<'c, ()>>,
}

impl<'c> ElicitUrl<'c> {
    pub(super) fn new(ctx: &'c Context, key: Cow<'c, str>, message: Cow<'c, str>, url: Cow<'c, str>) -> Self {
        Self { ctx, key, message, url, id: None, meta: Map::new(), answering: None }
    }

    /// Sets the wire's `elicitationId`, which only 2025-11-25 has; without this it is random.
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

    /// The same question, whose refusal is an answer and no error.
    pub fn answer(self) -> Answering<'c, ()> {
        match self.answering {
            Some(answering) => answering,
            None => {
                let Self { ctx, key, message, url, id, meta, .. } = self;
                Answering::new(key, move |key| ask(ctx, key, &message, &url, id, &meta))
            }
        }
    }
}

fn ask(
    ctx: &Context,
    key: &str,
    message: &str,
    url: &str,
    id: Option<Cow<'_, str>>,
    meta: &Map<String, Value>,
) -> Asking<Answer<()>> {
    let params = visitable(url).and_then(|()| {
        let id = match id {
            Some(id) => id,
            None => random_id()?.into(),
        };
        lower::url(message, url, &id, ctx.revision())
    });
    let question = params.map_err(|refusal| refusal.into_error(key)).map(|params| Question {
        key: key.into(),
        needs: ClientFeature::ElicitationUrl,
        method: "elicitation/create",
        params: with_meta(params, meta, ctx.revision()),
    });
    ctx.ask(question, |result| read(result, |_| Ok(())))
}

/// Whether a browser can be sent there, and shows where that is.
pub(super) fn visitable(url: &str) -> Result<(), Refusal> {
    let lower = url.to_ascii_lowercase();
    let rest = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let clean = !url.contains(|c: char| c.is_whitespace() || c.is_control());
    if clean && !host.is_empty() && !host.contains(['@', '\\']) {
        return Ok(());
    }
    let text =
        "its URL is no plain `https://` or `http://` URL\nwrite scheme, host and path, without user names";
    Err(Refusal::Unfit(text.to_owned()))
}

fn random_id() -> Result<String, Refusal> {
    let mut random = [0; 16];
    match getrandom::fill(&mut random) {
        Ok(()) => Ok(format!("{:032x}", u128::from_ne_bytes(random))),
        Err(error) => Err(Refusal::Unfit(format!("there is no randomness for its id: {error}"))),
    }
}

impl Future for ElicitUrl<'_> {
    type Output = Result<(), AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let answering = this.answering.get_or_insert_with(|| {
            let (ctx, message, url) = (this.ctx, this.message.clone(), this.url.clone());
            let (id, meta) = (this.id.take(), std::mem::take(&mut this.meta));
            Answering::new(this.key.clone(), move |key| ask(ctx, key, &message, &url, id, &meta))
        });
        let answer = task::ready!(Pin::new(answering).poll(cx));
        Poll::Ready(answer.and_then(|answer| answer.into_result(&this.key)))
    }
}

impl fmt::Debug for ElicitUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElicitUrl").field("key", &self.key).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_web_addresses_are_sent() {
        for good in ["https://example.com", "HTTPS://example.com/a?b=c#d", "http://127.0.0.1:8080/x"] {
            assert_eq!(visitable(good), Ok(()), "{good}");
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
            assert!(matches!(visitable(bad), Err(Refusal::Unfit(_))), "{bad}");
        }
    }

    #[test]
    fn ids_differ() {
        let (one, other) = (random_id().expect("randomness"), random_id().expect("randomness"));
        assert_ne!(one, other);
        assert_eq!(one.len(), 32);
    }
}
