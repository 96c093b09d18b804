//! Asking the user to fill in a form.
//!
//! Functions start it with [`Context::elicit`].

use std::{
    borrow::Cow,
    fmt,
    pin::Pin,
    task::{self, Poll},
};

use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::client_request::{form::Form, lower, with_meta};
use crate::context::{AskError, Asking, ClientFeature, Context, Question};

/// Types that a user can be asked for.
///
/// A struct of strings, numbers, booleans, enums without data and lists of such enums; or one of these by itself.
/// `()` asks for nothing but agreement.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be asked for",
    label = "not a type that a form can ask for",
    note = "put `#[mcp_type]` on `{Self}`, or derive `serde::Deserialize` and `schemars::JsonSchema` (1.x)"
)]
pub trait Elicitable: DeserializeOwned + JsonSchema + Send + 'static {}
#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> Elicitable for T {}

/// What a user did with a question: the wire's `action`, with the value if there is one.
///
/// See [response actions](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#response-actions).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<T> {
    /// `accept`: the user agreed, and this is what they filled in.
    Accept(T),
    /// `decline`: the user said no.
    Decline,
    /// `cancel`: the user dismissed the question without saying yes or no.
    Cancel,
}

impl<T> Answer<T> {
    /// The wire's `action`: `accept`, `decline` or `cancel`.
    #[must_use]
    pub const fn action(&self) -> &'static str {
        match self {
            Self::Accept(_) => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }

    /// What the user filled in, if they agreed.
    #[must_use]
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accept(value) => Some(value),
            Self::Decline | Self::Cancel => None,
        }
    }

    /// The value, or the error that says what the user did instead.
    pub(super) fn into_result(self, key: &str) -> Result<T, AskError> {
        match self {
            Self::Accept(value) => Ok(value),
            Self::Decline => Err(AskError::Declined { key: key.into() }),
            Self::Cancel => Err(AskError::Cancelled { key: key.into() }),
        }
    }
}

/// A form for the user to fill in, of [`Context::elicit`].
///
/// Awaited, it gives the value, and an error if the user declined or dismissed it; [`answer`](Self::answer) tells
/// these apart without an error. Nothing is sent before it is polled.
#[must_use = "nobody is asked before `.await`"]
pub struct Elicit<'c, T> {
    ctx: &'c Context,
    key: Cow<'c, str>,
    message: Cow<'c, str>,
    meta: Map<String, Value>,
    answering: Option<Answering<'c, T>>,
}

impl<'c, T: Elicitable> Elicit<'c, T> {
    pub(super) fn new(ctx: &'c Context, key: Cow<'c, str>, message: Cow<'c, str>) -> Self {
        Self { ctx, key, message, meta: Map::new(), answering: None }
    }

    /// Adds a member to the `_meta` of the request, which only clients of 2025-11-25 see.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// The same question, whose refusal is an answer and no error.
    ///
    /// ```
    /// # use mcp_runtime::{prelude::*, AskError, Answer};
    /// # async fn ask(ctx: &Context) -> Result<&'static str, AskError> {
    /// Ok(match ctx.elicit::<bool>("overwrite", "Overwrite the file?").answer().await? {
    ///     Answer::Accept(true) => "overwritten",
    ///     Answer::Accept(false) | Answer::Decline => "kept",
    ///     Answer::Cancel => "nobody said what to do",
    /// })
    /// # }
    /// ```
    pub fn answer(self) -> Answering<'c, T> {
        match self.answering {
            Some(answering) => answering,
            None => {
                let Self { ctx, key, message, meta, .. } = self;
                Answering::new(key, move |key| ask(ctx, key, &message, &meta))
            }
        }
    }
}

impl<T: Elicitable> Future for Elicit<'_, T> {
    type Output = Result<T, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let answering = this.answering.get_or_insert_with(|| {
            let (ctx, message, meta) = (this.ctx, this.message.clone(), std::mem::take(&mut this.meta));
            Answering::new(this.key.clone(), move |key| ask(ctx, key, &message, &meta))
        });
        let answer = task::ready!(Pin::new(answering).poll(cx));
        Poll::Ready(answer.and_then(|answer| answer.into_result(&this.key)))
    }
}

fn ask<T: Elicitable>(
    ctx: &Context,
    key: &str,
    message: &str,
    meta: &Map<String, Value>,
) -> Asking<Answer<T>> {
    let form = Form::of::<T>();
    let params = form.as_ref().map_err(Clone::clone);
    let params = params.and_then(|form| lower::form(message, form, ctx.revision()));
    let question = params.map_err(|refusal| refusal.into_error(key)).map(|params| Question {
        key: key.into(),
        needs: ClientFeature::Elicitation,
        method: "elicitation/create",
        params: with_meta(params, meta, ctx.revision()),
    });
    ctx.ask(question, move |result| match &form {
        Ok(form) => read(result, |content| form.decode(content)),
        // a question that is not put has no answer
        Err(_) => Err("nothing was asked".to_owned()),
    })
}

type Start<'c, T> = Box<dyn FnOnce(&str) -> Asking<Answer<T>> + Send + 'c>;

/// A question to the user whose refusal is no error, of [`Elicit::answer`].
#[must_use = "nobody is asked before `.await`"]
pub struct Answering<'c, T> {
    key: Cow<'c, str>,
    step: Step<'c, T>,
}

enum Step<'c, T> {
    /// Taken when it is polled first.
    Start(Option<Start<'c, T>>),
    Asked(Asking<Answer<T>>),
}

impl<'c, T> Answering<'c, T> {
    pub(super) fn new(key: Cow<'c, str>, ask: impl FnOnce(&str) -> Asking<Answer<T>> + Send + 'c) -> Self {
        Self { key, step: Step::Start(Some(Box::new(ask))) }
    }
}

impl<T> Future for Answering<'_, T> {
    type Output = Result<Answer<T>, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Step::Start(start) = &mut this.step
            && let Some(start) = start.take()
        {
            this.step = Step::Asked(start(&this.key));
        }
        match &mut this.step {
            Step::Asked(asking) => Pin::new(asking).poll(cx),
            Step::Start(_) => Poll::Pending,
        }
    }
}

/// The wire's `ElicitResult`; content is looked at only if the user agreed.
#[derive(Deserialize)]
struct Wire {
    action: String,
    #[serde(default)]
    content: Option<Value>,
}

/// Reads what a client answered; `accept` makes the value of the content.
///
/// # Errors
/// What is wrong with it, without quoting the user.
pub(super) fn read<T>(
    result: &str,
    accept: impl FnOnce(Option<Value>) -> Result<T, String>,
) -> Result<Answer<T>, String> {
    let Ok(wire) = serde_json::from_str::<Wire>(result) else {
        return Err("the answer is no object with an `action`".to_owned());
    };
    match wire.action.as_str() {
        "accept" => accept(wire.content).map(Answer::Accept),
        "decline" => Ok(Answer::Decline),
        "cancel" => Ok(Answer::Cancel),
        _ => Err("`action` is not `accept`, `decline` or `cancel`".to_owned()),
    }
}

impl<T> fmt::Debug for Elicit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elicit").field("key", &self.key).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Answering<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answering").field("key", &self.key).finish_non_exhaustive()
    }
}
