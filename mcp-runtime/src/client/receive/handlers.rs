//! Functions of the program that answer the server's requests and receive its notifications. Registering one declares
//! the capability.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    client::large_text::run_elsewhere,
    core::{
        client_request::{Answer, Root},
        jsonrpc::ProtocolError,
        protocol::{LogLevel, Revision, TASKS_EXTENSION},
        visible_text::in_one_line,
    },
    schema::Validator,
};

pub(in crate::client) type AnswerFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
pub(in crate::client) type AsyncHandler<A, R> = Arc<dyn Fn(A) -> AnswerFuture<R> + Send + Sync>;
pub(in crate::client) type Listener<A> = Arc<dyn Fn(A) + Send + Sync>;

/// The return type of a function that answers the server: a future.
#[diagnostic::on_unimplemented(
    message = "a function that answers the server returns a future, and this one returns `{Self}`",
    label = "does not return a future",
    note = "write `|request| async move {{ .. }}`"
)]
pub trait AsyncAnswer {
    /// The output of the future.
    type Answer;
    #[doc(hidden)]
    fn answer(self) -> AnswerFuture<Self::Answer>
    where
        Self: Send + 'static;
}
#[diagnostic::do_not_recommend]
impl<F: Future> AsyncAnswer for F {
    type Answer = F::Output;

    fn answer(self) -> AnswerFuture<F::Output>
    where
        F: Send + 'static,
    {
        Box::pin(self)
    }
}

/// Boxes an async function.
pub(in crate::client) fn async_handler<A, R, F, Fut>(f: F) -> AsyncHandler<A, R>
where
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: AsyncAnswer<Answer = R> + Send + 'static,
{
    Arc::new(move |argument| f(argument).answer())
}

/// A form that the server asks the user to fill in: `elicitation/create`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FormRequest {
    /// The message to show to the user.
    pub message: String,
    /// `requestedSchema` on the wire: an object of strings, numbers, booleans and choices.
    pub schema: Value,
}

/// A URL that the server asks the user to visit.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UrlRequest {
    /// The message to show to the user.
    pub message: String,
    /// The URL. Show it to the user, and do not open it without consent.
    pub url: String,
    /// `elicitationId` on the wire, of revisions before 2026-07-28.
    pub id: Option<String>,
}

/// How the user answers a form or a URL; accepted, with the form's values, or an empty object for a URL.
pub type ElicitAnswer = Answer<Value>;

/// The wire's result of a URL.
fn url_result<T>(answer: &Answer<T>) -> Value {
    json!({ "action": answer.action() })
}

/// The wire's result of a form; defaults of the schema are filled in.
///
/// # Errors
/// The values are not what the form asks for: the server would refuse them, or believe them.
fn form_result(answer: ElicitAnswer, schema: &Value) -> Result<Value, String> {
    let Answer::Accept(mut content) = answer else { return Ok(url_result(&answer)) };
    if content.is_null() {
        content = json!({});
    }
    let Some(members) = content.as_object_mut() else {
        return Err("the answer to a form is not an object".to_owned());
    };
    fill_defaults(members, schema);
    let (validator, passed_over) = Validator::compile_foreign(schema);
    if let Some(first) = passed_over.first() {
        let first = in_one_line(&first.to_string()).to_string();
        tracing::debug!(first, "a part of the form's schema is not enforced");
    }
    let problems = validator.map(|validator| validator.check_formats().validate(&content));
    if let Some(problem) = problems.unwrap_or_default().first() {
        return Err(format!("the answer does not match the form: {problem}"));
    }
    Ok(json!({ "action": "accept", "content": content }))
}

fn fill_defaults(content: &mut Map<String, Value>, schema: &Value) {
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(default) = property.get("default").filter(|_| !content.contains_key(name)) {
            content.insert(name.clone(), default.clone());
        }
    }
}

/// A completion that the server asks this program's model for: `sampling/createMessage`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SampleRequest {
    /// The wire's params: `messages`, `maxTokens`, `systemPrompt`, `modelPreferences`, `tools` and others.
    pub params: Value,
}

/// The answer of the model.
#[derive(Debug, Clone)]
pub struct SampleAnswer(pub(in crate::client) Value);

impl SampleAnswer {
    /// A text that the model ended itself.
    pub fn text(model: impl Into<String>, text: impl Into<String>) -> Self {
        Self(json!({
            "role": "assistant",
            "content": { "type": "text", "text": text.into() },
            "model": model.into(),
            "stopReason": "endTurn",
        }))
    }

    /// `CreateMessageResult` on the wire.
    #[must_use]
    pub fn from_value(result: Value) -> Self {
        Self(result)
    }
}

/// A log message of the server: `notifications/message`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LogMessage {
    /// Its severity.
    pub level: LogLevel,
    /// The part of the server that wrote it.
    pub logger: Option<String>,
    /// Its content, often a string.
    pub data: Value,
}

/// How far a call is: `notifications/progress`.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct ProgressUpdate {
    /// The amount of work done. A task that reports progress only in words adds one with each message.
    pub progress: f64,
    /// The total amount of work, if the server knows it.
    pub total: Option<f64>,
    /// A description of the current step, for people.
    pub message: Option<String>,
}

/// Something has changed on the server, or with the subscription to its changes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeEvent {
    /// The list of tools.
    Tools,
    /// The list of resources or of templates.
    Resources,
    /// The list of prompts.
    Prompts,
    /// The list of events.
    Events,
    /// A resource that is subscribed to.
    Resource {
        /// Its URI.
        uri: String,
    },
    /// No more changes follow: the server refuses to open the stream of changes again, or to have this resource in it, or
    /// the program closed the client.
    Ended,
    /// The stream of changes broke, or cannot be opened again yet. It is tried again; changes in between are not known.
    Lost,
    /// The stream of changes is open again, after it broke or the server ended it, or the session of a legacy server was
    /// replaced: read again what must be fresh.
    Restored,
    /// A tool was left out of the list: HTTP clients must not call it, or its definition cannot be read.
    ToolDropped {
        /// The tool's name; empty if that cannot be read either.
        name: String,
        /// The reason why its definition is invalid.
        reason: String,
    },
}

/// Every function that a client has.
#[derive(Clone, Default)]
pub(in crate::client) struct Handlers {
    pub(in crate::client) elicit: Option<AsyncHandler<FormRequest, ElicitAnswer>>,
    pub(in crate::client) elicit_url: Option<AsyncHandler<UrlRequest, ElicitAnswer>>,
    pub(in crate::client) sample: Option<AsyncHandler<SampleRequest, Result<SampleAnswer, String>>>,
    pub(in crate::client) sample_tools: bool,
    pub(in crate::client) roots: Option<AsyncHandler<(), Vec<Root>>>,
    pub(in crate::client) log: Option<Listener<LogMessage>>,
    pub(in crate::client) progress: Option<Listener<ProgressUpdate>>,
    pub(in crate::client) change: Option<Listener<ChangeEvent>>,
    /// Extensions that the program or its authorization has, with their settings.
    pub(in crate::client) extensions: Map<String, Value>,
    /// Lines over byte streams that are not messages, for `mcp-dev`.
    #[cfg(feature = "cli")]
    pub(in crate::client) stray_line: Option<Listener<String>>,
}

impl Handlers {
    /// The wire's capabilities of a client with these functions.
    pub(in crate::client) fn capabilities(&self, revision: Revision) -> Value {
        let mut capabilities = json!({});
        if self.elicit.is_some() || self.elicit_url.is_some() {
            let mut modes = json!({});
            // without any mode it means forms, the only one before 2025-11-25
            if self.elicit.is_some() {
                modes["form"] = json!({});
            }
            if self.elicit_url.is_some() {
                modes["url"] = json!({});
            }
            capabilities["elicitation"] = modes;
        }
        if self.sample.is_some() {
            capabilities["sampling"] = if self.sample_tools { json!({ "tools": {} }) } else { json!({}) };
        }
        if self.roots.is_some() {
            capabilities["roots"] =
                if revision.is_modern() { json!({}) } else { json!({ "listChanged": true }) };
        }
        if revision.is_modern() {
            let mut extensions = self.extensions.clone();
            extensions.insert(TASKS_EXTENSION.to_owned(), json!({}));
            capabilities["extensions"] = extensions.into();
        }
        capabilities
    }

    /// Answers a request of the server. `None`: the client has no function for it.
    ///
    /// # Errors
    /// The function failed, or the client did not declare what the request is for.
    pub(in crate::client) async fn answer(
        &self,
        method: &str,
        params: &Value,
    ) -> Option<Result<Value, ProtocolError>> {
        let failed = |message: String| ProtocolError::new(-1, message);
        let undeclared =
            |what: &str| Some(Err(ProtocolError::invalid_params(format!("the client does not have {what}"))));
        let text = |key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
        match method {
            "elicitation/create" if self.elicit.is_none() && self.elicit_url.is_none() => None,
            "elicitation/create" if params.get("mode").and_then(Value::as_str) == Some("url") => {
                let Some(handler) = &self.elicit_url else { return undeclared("elicitation by URL") };
                let request = UrlRequest {
                    message: text("message").unwrap_or_default(),
                    url: text("url").unwrap_or_default(),
                    id: text("elicitationId"),
                };
                Some(Ok(url_result(&handler(request).await)))
            }
            "elicitation/create" => {
                let mode = params.get("mode").filter(|mode| !mode.is_null());
                if mode.is_some_and(|mode| mode != "form") {
                    return undeclared("this mode of elicitation");
                }
                let Some(handler) = &self.elicit else { return undeclared("elicitation by form") };
                let schema = params.get("requestedSchema").filter(|schema| !schema.is_null());
                let schema = schema.cloned().unwrap_or_else(|| json!({}));
                let request =
                    FormRequest { message: text("message").unwrap_or_default(), schema: schema.clone() };
                let answer = handler(request).await;
                // a server decides how long it takes
                let checked = run_elsewhere(move || form_result(answer, &schema)).await;
                Some(checked.map_err(|error| error.to_string()).flatten().map_err(failed))
            }
            "sampling/createMessage" => {
                let handler = self.sample.as_ref()?;
                if !self.sample_tools
                    && ["tools", "toolChoice"]
                        .iter()
                        .any(|key| params.get(key).is_some_and(|value| !value.is_null()))
                {
                    return undeclared("`sampling.tools`");
                }
                let answer = handler(SampleRequest { params: params.clone() }).await;
                Some(answer.map(|answer| answer.0).map_err(failed))
            }
            "roots/list" => {
                let roots = self.roots.as_ref()?(()).await;
                let entry = |root: &Root| match &root.name {
                    Some(name) => json!({ "uri": root.uri, "name": name }),
                    None => json!({ "uri": root.uri }),
                };
                Some(Ok(json!({ "roots": roots.iter().map(entry).collect::<Vec<_>>() })))
            }
            _ => None,
        }
    }

    /// Whether the server may send requests.
    pub(in crate::client) fn answers_requests(&self) -> bool {
        self.elicit.is_some() || self.elicit_url.is_some() || self.sample.is_some() || self.roots.is_some()
    }

    pub(in crate::client) fn notify_change(&self, event: ChangeEvent) {
        if let Some(listener) = &self.change {
            call_listener(listener, event);
        }
    }
}

/// Calls a function of the program where the server's messages are read: a panic must not end that.
pub(in crate::client) fn call_listener<T>(listener: &Listener<T>, value: T) {
    let _panicked = call_and_contain(&**listener, value);
}

/// Calls a function of the program and returns its result; `None` if it panicked.
pub(in crate::client) fn call_and_contain<T, R>(
    function: &(dyn Fn(T) -> R + Send + Sync),
    value: T,
) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(|| function(value))) {
        Ok(returned) => Some(returned),
        Err(panic) => {
            crate::core::invoke::discard(panic);
            tracing::error!("a function that receives notifications of the server panicked");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_a_form_has_the_format_of_its_field() {
        let of = |format: &str| json!({ "properties": { "field": { "type": "string", "format": format } } });
        for (format, good, bad) in [
            ("email", "a@example.com", "tea"),
            ("uri", "https://example.com", "tea"),
            ("date", "2026-07-28", "28.7.2026"),
            ("date-time", "2026-07-28T12:00:00Z", "2026-07-28"),
        ] {
            let answer = |text: &str| form_result(Answer::Accept(json!({ "field": text })), &of(format));
            assert!(answer(good).is_ok(), "{format}");
            let problem = answer(bad).expect_err(format);
            assert!(problem.starts_with("the answer does not match the form: field: "), "{problem}");
        }
    }
}
