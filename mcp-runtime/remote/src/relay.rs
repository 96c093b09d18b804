//! Requests to the other server, as calls of this one's items cause them. Of the caller's request go up its arguments, the
//! members of `_meta` that are not the protocol's, and its trace: neither headers, nor `baggage`, nor its progress token.

use std::{collections::HashSet, future::poll_fn, sync::Arc, task::Poll};

use mcp_runtime::{
    Completion, Context, ProtocolError, Revision, ToolError, ToolResult,
    client::{Error, PendingCall, ProgressUpdate, Round},
    prompt::{PromptCall, PromptResult},
    resource::{ResourceCall, ResourceResult},
    tool::ToolCall,
};
use serde::{Deserialize, Serialize};
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};

use crate::upstream::{Link, Upstream};

/// The methods whose results may be requests for input.
const TAKE_INPUT: [&str; 3] = ["tools/call", "resources/read", "prompts/get"];
/// The beginning of the keys under which rounds are kept.
const STEP: &str = "round ";
/// Rounds of one request.
const MAX_ROUNDS: usize = 16;
/// The code for an unknown resource in revisions before 2026-07-28.
const RESOURCE_NOT_FOUND: i64 = -32002;
/// The code with which servers of 2025-11-25 send users to a URL.
const URL_REQUIRED: i64 = -32042;

impl Upstream {
    pub(crate) async fn call_tool(
        self: &Arc<Self>,
        name: &str,
        call: &ToolCall,
    ) -> Result<ToolResult, ToolError> {
        let members = json!({ "name": name });
        let json = self.request("tools/call", members, call.raw_arguments(), &call.context).await?;
        ToolResult::from_wire(&json).map_err(|error| self.unusable(&error))
    }

    pub(crate) async fn get_prompt(
        self: &Arc<Self>,
        name: &str,
        call: PromptCall,
    ) -> Result<PromptResult, ToolError> {
        let mut members = json!({ "name": name });
        if !call.arguments.is_empty() {
            members["arguments"] = json!(call.arguments);
        }
        let json = self.request("prompts/get", members, None, &call.context).await?;
        PromptResult::from_wire(&json).map_err(|error| self.unusable(&error))
    }

    /// Reads a resource, or an instance of a template by the URI that the client wrote.
    pub(crate) async fn read_resource(
        self: &Arc<Self>,
        exact: Option<&str>,
        call: ResourceCall,
    ) -> Result<ResourceResult, ToolError> {
        let own = || match self.prefix() {
            "" => call.uri.clone(),
            prefix => call.uri.replacen(&format!("://{prefix}/"), "://", 1),
        };
        let members = json!({ "uri": exact.map_or_else(own, str::to_owned) });
        let json = self.request("resources/read", members, None, &call.context).await?;
        ResourceResult::from_wire(&json).map_err(|error| self.unusable(&error))
    }

    pub(crate) async fn complete(
        self: &Arc<Self>,
        reference: Value,
        completion: Completion,
        context: &Context,
    ) -> Result<Vec<String>, ToolError> {
        let Completion { argument, value, arguments, .. } = completion;
        let mut members = json!({ "ref": reference, "argument": { "name": argument, "value": value } });
        if !arguments.is_empty() {
            members["context"] = json!({ "arguments": arguments });
        }
        let json = self.request("completion/complete", members, None, context).await?;
        let result: Value = serde_json::from_str(json.get()).map_err(|error| self.unusable(&error))?;
        let values = result.pointer("/completion/values").and_then(Value::as_array);
        Ok(values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// Sends a request for a call of this server, and waits for its result within the limits of the other server.
    async fn request(
        self: &Arc<Self>,
        method: &str,
        members: Value,
        arguments: Option<&RawValue>,
        context: &Context,
    ) -> Result<Box<RawValue>, ToolError> {
        let _used = self.used();
        let link = self.link_for(context).await?;
        let _permit = self.permit(context).await?;
        let request = || {
            let mut request = link.client.send(method, members.clone());
            if let Some(arguments) = arguments {
                request = request.arguments(arguments);
            }
            for (key, value) in passed_on(context.all_meta()) {
                request = request.meta(key, value);
            }
            request
        };
        let is_modern = link.client.revision().is_some_and(Revision::is_modern);
        let offered = offered(&context.client_capabilities());
        if is_modern
            && offered.as_object().is_some_and(|offered| offered.len() > 1)
            && TAKE_INPUT.contains(&method)
        {
            return self.in_rounds(&link, request, &offered, context).await;
        }
        let result = self.with_progress(request().raw(), context).await;
        result.map_err(|error| self.failure(&link, error))
    }

    /// Sends a request in rounds: what the other server requires is asked of the caller. Of a caller of 2026-07-28 the call
    /// ends with each question, and the next run of it, here or at another replica, goes on after the rounds that its
    /// request state has.
    async fn in_rounds(
        &self,
        link: &Link,
        request: impl Fn() -> PendingCall<Value>,
        offered: &Value,
        context: &Context,
    ) -> Result<Box<RawValue>, ToolError> {
        let (mut answers, mut state, mut keys) = (Map::new(), None, HashSet::new());
        for round in 0..MAX_ROUNDS {
            let send = || async {
                let request =
                    request().capabilities(offered.clone()).answered(answers.clone(), state.clone());
                let outcome = self.with_progress(request.round(), context).await;
                Ok(match outcome.map_err(|error| self.failure(link, error))? {
                    Round::Complete(result) => Step { result: Some(result), ..Step::default() },
                    Round::Input { requests, state } => Step { requests, state, ..Step::default() },
                    _ => return Err(ToolError::new(format!("`{}` has failed", self.name()))),
                })
            };
            let Step { result, requests, state: next } =
                context.once(&format!("{STEP}{round}"), send).await?;
            if let Some(result) = result {
                return Ok(result);
            }
            let asked = requests.into_iter().map(|(key, request)| {
                // the caller sees the key of the other server, unless it was used in this call
                let mut shown = key.clone();
                while shown.starts_with(STEP) || !keys.insert(shown.clone()) {
                    shown = format!("{round}/{shown}");
                }
                Question { key, shown, request }
            });
            answers = self.ask_all(asked.collect(), offered, context).await?;
            state = next;
        }
        Err(ToolError::new(format!("`{}` requires input in more than {MAX_ROUNDS} rounds", self.name())))
    }

    /// Asks the caller what the other server requires, all at once.
    async fn ask_all(
        &self,
        questions: Vec<Question>,
        offered: &Value,
        context: &Context,
    ) -> Result<Map<String, Value>, ToolError> {
        let asked = questions.into_iter().map(|Question { key, shown, request }| async move {
            let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
            let feature = method.split('/').next().unwrap_or_default();
            if feature == "elicitation" && offered.get(feature).is_none() {
                tracing::warn!(
                    remote = self.name(),
                    "a question is declined, which the caller cannot be asked"
                );
                return Ok((key, json!({ "action": "decline" })));
            }
            let params = to_raw_value(request.get("params").unwrap_or(&json!({})))?;
            let answer = context.ask(shown, method, &params).await?;
            Ok::<_, ToolError>((key, serde_json::from_str(answer.get())?))
        });
        join_all(asked).await.into_iter().collect()
    }

    async fn with_progress<T: 'static>(
        &self,
        request: PendingCall<T>,
        context: &Context,
    ) -> Result<T, Error> {
        let request = request.request_timeout(self.timeout()).progress_extends_timeout();
        let context = context.clone();
        let report = move |update: ProgressUpdate| {
            let mut progress = context.progress(update.progress);
            if let Some(total) = update.total {
                progress = progress.total(total);
            }
            if let Some(message) = update.message {
                progress = progress.message(message);
            }
            progress.send();
        };
        request.on_progress(report).await
    }

    /// The failure of a call whose request has failed.
    fn failure(&self, link: &Link, error: Error) -> ToolError {
        let name = self.name();
        match error {
            Error::Protocol { code: RESOURCE_NOT_FOUND, .. } | Error::NotFound { .. } => {
                ToolError::not_found()
            }
            // the caller cannot be told when the visit is over
            Error::Protocol { code: URL_REQUIRED, .. } => {
                ToolError::new(format!("`{name}` requires its user to visit a URL, which is not passed on"))
            }
            Error::Protocol { code, message, data } => {
                let error = ProtocolError::new(code, message);
                data.map_or(error.clone(), |data| error.with_data(data)).into()
            }
            Error::NotConnected { .. } | Error::Closed { .. } => {
                self.lost(link, &error);
                ToolError::new(format!("`{name}` cannot be reached"))
            }
            Error::Timeout { after, .. } => {
                ToolError::new(format!("`{name}` has not answered within {after:?}"))
            }
            Error::Unauthorized { .. } | Error::Forbidden { .. } | Error::Authorization { .. } => {
                tracing::warn!(remote = name, error = %error.to_string().escape_debug(), "the credentials are refused");
                let whose = if link.is_of_caller() { "the caller" } else { "this server" };
                ToolError::new(format!("`{name}` does not accept the credentials of {whose}"))
            }
            error => {
                tracing::warn!(remote = name, error = %error.to_string().escape_debug(), "a request has failed");
                ToolError::new(format!("`{name}` has failed"))
            }
        }
    }

    fn unusable(&self, error: &serde_json::Error) -> ToolError {
        tracing::warn!(remote = self.name(), %error, "a result is not what the protocol requires");
        ToolError::new(format!("`{}` has sent a result that is not one of the protocol", self.name()))
    }
}

/// What the other server requires, by its key, and by that under which the caller is asked.
struct Question {
    key: String,
    shown: String,
    request: Value,
}

/// One round of a request, as the request state of the caller keeps it.
#[derive(Default, Serialize, Deserialize)]
struct Step {
    result: Option<Box<RawValue>>,
    requests: Map<String, Value>,
    state: Option<Box<RawValue>>,
}

/// What a caller of these capabilities can be asked, and tasks, which are awaited.
fn offered(capabilities: &Value) -> Value {
    let mut offered = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    for feature in ["elicitation", "sampling", "roots"] {
        if let Some(declared) = capabilities.get(feature).filter(|declared| declared.is_object()) {
            offered[feature] = declared.clone();
        }
    }
    // that its list changes is said to this server alone
    if let Some(Value::Object(roots)) = offered.get_mut("roots") {
        roots.remove("listChanged");
    }
    offered
}

/// The outputs of all of these, which are polled together so that questions are sent together.
async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|cx| {
        let mut is_ready = true;
        for (future, output) in &mut pending {
            if output.is_none() {
                match future.as_mut().poll(cx) {
                    Poll::Ready(ready) => *output = Some(ready),
                    Poll::Pending => is_ready = false,
                }
            }
        }
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    pending.into_iter().filter_map(|(_, output)| output).collect()
}

/// The members of a caller's `_meta` that the other server gets. Those of the protocol are of one connection: the client
/// writes its own.
fn passed_on(meta: Map<String, Value>) -> impl Iterator<Item = (String, Value)> {
    meta.into_iter().filter(|(key, _)| !is_kept(key))
}

/// Whether a member of `_meta` does not leave this server.
fn is_kept(key: &str) -> bool {
    let Some((prefix, _)) = key.split_once('/') else { return matches!(key, "progressToken" | "baggage") };
    let second = prefix.split('.').nth(1).unwrap_or_default();
    ["modelcontextprotocol", "mcp"].iter().any(|reserved| second.eq_ignore_ascii_case(reserved))
}
