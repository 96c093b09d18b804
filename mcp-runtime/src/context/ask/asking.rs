//! One question on its way to its answer: a future that `ask` wraps in types.

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::Ordering,
    task::{Context as TaskContext, Poll},
};

use serde::Deserialize;
use tokio::{
    sync::oneshot,
    time::{Sleep, sleep},
};

use super::{AskError, MAX_TRIES, Put, Question};
use crate::{connection::PendingResponse, context::Context, jsonrpc::notification};

type Read<T> = Box<dyn Fn(&str) -> Result<T, String> + Send>;

/// The answer to one question. Nothing is asked before it is polled.
#[must_use = "nothing is asked before `.await`"]
pub(crate) struct Asking<T> {
    context: Context,
    read: Read<T>,
    step: Step,
}

enum Step {
    Start(Result<Question, AskError>),
    /// Only another request can bring the answer: the call ends.
    Pending,
    Requested(Box<Requested>),
    Shown(Box<Shown>),
    Over,
}

/// A question of which a task tells.
struct Shown {
    question: Question,
    inputs: std::sync::Arc<dyn super::Inputs>,
    answer: oneshot::Receiver<Box<str>>,
    tries: u8,
    _waiting: Waiting,
}

/// A request of ours that is with the client.
struct Requested {
    question: Question,
    /// Gone once the response is there.
    expected: Option<PendingResponse>,
    limit: Pin<Box<Sleep>>,
    tries: u8,
    waiting: Waiting,
}

/// Counts a call as one that waits for its client.
struct Waiting(Context);

impl Waiting {
    fn new(context: &Context) -> Self {
        context.inner().asks.waiting.fetch_add(1, Ordering::Relaxed);
        Self(context.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.inner().asks.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The error member of a response.
#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

impl<T> Asking<T> {
    pub(super) fn new(context: Context, question: Result<Question, AskError>, read: Read<T>) -> Self {
        Self { context, read, step: Step::Start(question) }
    }

    fn start(&mut self, question: Question) -> Result<Poll<T>, AskError> {
        // in another task it could neither end the call nor be dropped with it
        if !self.context.is_current() {
            return Err(AskError::Detached { key: question.key });
        }
        match self.context.put(&question)? {
            Put::Pending => {
                self.step = Step::Pending;
                Ok(Poll::Pending)
            }
            Put::Answered(raw, tries) => match (self.read)(raw.get()) {
                Ok(value) => {
                    self.context.keep(&question, raw);
                    Ok(Poll::Ready(value))
                }
                Err(reason) if tries >= MAX_TRIES => Err(AskError::Malformed { key: question.key, reason }),
                Err(reason) => {
                    tracing::debug!(
                        key = &*question.key,
                        reason,
                        "an answer does not fit: it is asked for again"
                    );
                    self.context.put_again(&question, tries + 1);
                    self.step = Step::Pending;
                    Ok(Poll::Pending)
                }
            },
            Put::Request => {
                self.step = Step::Requested(Box::new(Requested::send(&self.context, question)?));
                Ok(Poll::Pending)
            }
            Put::Shown(inputs) => {
                let answer = inputs.ask(&question);
                let waiting = Waiting::new(&self.context);
                let shown = Shown { question, inputs, answer, tries: 0, _waiting: waiting };
                self.step = Step::Shown(Box::new(shown));
                Ok(Poll::Pending)
            }
        }
    }
}

impl<T> Future for Asking<T> {
    type Output = Result<T, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if matches!(this.step, Step::Start(_)) {
            let Step::Start(question) = std::mem::replace(&mut this.step, Step::Over) else {
                return Poll::Pending;
            };
            match question.and_then(|question| this.start(question)) {
                Ok(Poll::Ready(value)) => return Poll::Ready(Ok(value)),
                Ok(Poll::Pending) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let polled = match &mut this.step {
            Step::Requested(requested) => requested.poll(&this.read, cx),
            Step::Shown(shown) => shown.poll(&this.read, cx),
            Step::Start(_) | Step::Pending | Step::Over => return Poll::Pending,
        };
        if polled.is_ready() {
            this.step = Step::Over;
        }
        polled
    }
}

// nothing in it is ever pinned in place
impl<T> Unpin for Asking<T> {}

impl Requested {
    fn send(context: &Context, question: Question) -> Result<Self, AskError> {
        let expected = Self::request(context, &question)?;
        let limit = Box::pin(sleep(context.inner().settings.ask_timeout));
        Ok(Self { question, expected: Some(expected), limit, tries: 0, waiting: Waiting::new(context) })
    }

    fn request(context: &Context, question: &Question) -> Result<PendingResponse, AskError> {
        let connection = context.inner().request.connection.as_ref();
        let sent = match connection {
            Some(connection) => connection.request(question.method, &question.params),
            None => Err("this request stands alone"),
        };
        sent.map_err(|why| AskError::Unavailable { why })
    }

    fn poll<T>(&mut self, read: &Read<T>, cx: &mut TaskContext<'_>) -> Poll<Result<T, AskError>> {
        let question = &self.question;
        let key = || question.key.clone();
        loop {
            let Some(expected) = &mut self.expected else { return Poll::Pending };
            let Poll::Ready(response) = expected.poll(cx) else { break };
            self.expected = None;
            let reason = match response {
                None => return Poll::Ready(Err(AskError::Disconnected { key: key() })),
                Some(Err(error)) => {
                    let refusal = serde_json::from_str(&error)
                        .unwrap_or(Refusal { code: 0, message: "it sent no proper error".into() });
                    let Refusal { code, message } = refusal;
                    return Poll::Ready(Err(AskError::Refused { key: key(), code, message }));
                }
                Some(Ok(result)) => match read(&result) {
                    Ok(value) => return Poll::Ready(Ok(value)),
                    Err(reason) => reason,
                },
            };
            if self.tries >= MAX_TRIES {
                return Poll::Ready(Err(AskError::Malformed { key: key(), reason }));
            }
            self.tries += 1;
            match Self::request(&self.waiting.0, &self.question) {
                Ok(expected) => self.expected = Some(expected),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        if self.limit.as_mut().poll(cx).is_ready() {
            self.withdraw("no answer came in time");
            return Poll::Ready(Err(AskError::TimedOut { key: self.question.key.clone() }));
        }
        Poll::Pending
    }

    /// Tells the client that its answer is no longer wanted.
    fn withdraw(&mut self, reason: &str) {
        let Some(expected) = self.expected.take() else { return };
        let Some(connection) = &self.waiting.0.inner().request.connection else { return };
        connection.notify(notification("notifications/cancelled", |params| {
            params.raw("requestId", expected.id()).str("reason", reason);
        }));
    }
}

impl Drop for Requested {
    fn drop(&mut self) {
        self.withdraw("the call that needed the answer is over");
    }
}

impl Shown {
    fn poll<T>(&mut self, read: &Read<T>, cx: &mut TaskContext<'_>) -> Poll<Result<T, AskError>> {
        loop {
            let key = || self.question.key.clone();
            let answer = match Pin::new(&mut self.answer).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_closed)) => return Poll::Ready(Err(AskError::Disconnected { key: key() })),
                Poll::Ready(Ok(answer)) => answer,
            };
            match read(&answer) {
                Ok(value) => return Poll::Ready(Ok(value)),
                Err(reason) if self.tries >= MAX_TRIES => {
                    return Poll::Ready(Err(AskError::Malformed { key: key(), reason }));
                }
                Err(_) => {
                    self.tries += 1;
                    self.answer = self.inputs.ask(&self.question);
                }
            }
        }
    }
}
