//! A request with its options, which is sent when it is awaited and cancelled when it is dropped.

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use serde_json::{Map, Value, value::RawValue};

use super::{
    client_handle::{call_tool_raw, result_of_task},
    result_types,
};
use crate::{
    client::{
        Error,
        connect::shared_client::{CallOptions, SharedClient},
        exchange::{RequestParams, RoundOutcome},
        large_text::parse_text,
        operation::{Operation, OperationKind},
        receive::handlers::ProgressUpdate,
    },
    core::arguments::BoxFuture,
};

/// Sends a request within the limits of its operation, if it begins one.
type SendFn<T> =
    Box<dyn FnOnce(Option<Operation>, Arc<SharedClient>, CallOptions) -> BoxFuture<Result<T, Error>> + Send>;

/// A request to a server. Nothing is sent before `.await`; dropping the future cancels the request, in the way of its
/// transport.
#[must_use = "nothing is sent before `.await`"]
pub struct PendingCall<T> {
    shared: Arc<SharedClient>,
    kind: OperationKind,
    options: CallOptions,
    send: Sending<T>,
}

/// How a request is sent.
enum Sending<T> {
    Function(SendFn<T>),
    /// One of any method, by a function that depends on what is wanted of its result.
    Any(Box<AnyRequest>, fn(Box<AnyRequest>) -> SendFn<T>),
}

/// A request of any method.
pub(super) struct AnyRequest {
    pub(super) method: String,
    pub(super) params: RequestParams,
}

/// The outcome of one round of a request, of [`PendingCall::round`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Round {
    /// The result of the request, as the server wrote it.
    Complete(Box<RawValue>),
    /// The server requires input: send the request again with [`PendingCall::answered`].
    Input {
        /// `inputRequests` on the wire: requests by key, each with a `method` and `params`.
        requests: Map<String, Value>,
        /// `requestState` on the wire, which the next round must contain.
        state: Option<Box<RawValue>>,
    },
}

impl<T> fmt::Debug for PendingCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingCall").finish_non_exhaustive()
    }
}

/// Whether kept results may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// Ask the server.
    Yes,
    /// Use what is kept, if the server allows.
    No,
}

impl<T> PendingCall<T> {
    pub(in crate::client) fn new<F, Fut>(shared: &Arc<SharedClient>, kind: OperationKind, send: F) -> Self
    where
        F: FnOnce(Arc<SharedClient>, CallOptions) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let send = Sending::Function(sending(send));
        Self { shared: shared.clone(), kind, options: CallOptions::default(), send }
    }

    /// The same request with the options of another one.
    pub(in crate::client) fn with_options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets how long the call may take with everything that it causes: all pages of a list, rounds and questions, the task
    /// that the server makes of it, a new handshake. Then it is cancelled, in the way of its transport, and a task as well.
    /// The [client's limit](crate::client::ClientBuilder::timeout) by default.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.options.timeout = Some(limit);
        self
    }

    /// Sets how long each request of the call may wait for its response; the
    /// [client's limit](crate::client::ClientBuilder::request_timeout) by default.
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.options.request_timeout = Some(limit);
        self
    }

    /// Begins the [limit of a request](Self::request_timeout) anew with every progress notification. The limit of the whole
    /// call stays.
    pub fn progress_extends_timeout(mut self) -> Self {
        self.options.progress_extends = true;
        self
    }

    /// Receives the progress of this call, also if the server makes it a task: the task's status message is the message.
    /// The function must not block.
    pub fn on_progress(mut self, f: impl Fn(ProgressUpdate) + Send + Sync + 'static) -> Self {
        self.options.on_progress = Some(Arc::new(f));
        self
    }

    /// Adds a member to the request's `_meta`.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.options.meta.insert(key.into(), value.into());
        self
    }

    /// Decides whether a list or a resource that is kept may be used; by default it may, if the server allows.
    pub fn refresh(mut self, refresh: Refresh) -> Self {
        self.options.refresh = refresh == Refresh::Yes;
        self
    }
}

/// Sends by this function.
fn sending<T, F, Fut>(send: F) -> SendFn<T>
where
    F: FnOnce(Arc<SharedClient>, CallOptions) -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, Error>> + Send + 'static,
{
    Box::new(|operation, shared, options| {
        Box::pin(async move {
            // it is large, and is not moved
            let sent = pin!(send(shared, options));
            match operation {
                Some(operation) => operation.run(sent).await,
                None => sent.await,
            }
        })
    })
}

/// Of [`Client::send`](crate::client::Client::send).
impl PendingCall<Value> {
    pub(super) fn any(shared: &Arc<SharedClient>, method: String, params: RequestParams) -> Self {
        let prepare = |request: Box<AnyRequest>| {
            sending(|shared, options| async move {
                let AnyRequest { method, params } = *request;
                let reply = shared.request(&method, params, &options).await?;
                parse_text(reply.json, move |json| result_types::parse(json, &method)).await
            })
        };
        let (kind, request) = (OperationKind::Call, Box::new(AnyRequest { method, params }));
        let (shared, options) = (shared.clone(), CallOptions::default());
        Self { shared, kind, options, send: Sending::Any(request, prepare) }
    }

    fn change(mut self, change: impl FnOnce(&mut RequestParams)) -> Self {
        if let Sending::Any(request, _) = &mut self.send {
            change(&mut request.params);
        }
        self
    }

    fn prepared_by<U>(self, prepare: fn(Box<AnyRequest>) -> SendFn<U>) -> PendingCall<U> {
        let Self { shared, kind, options, send } = self;
        let send = match send {
            Sending::Any(request, _) => Sending::Any(request, prepare),
            Sending::Function(_) => unreachable!("a request whose result is a `Value` is one of any method"),
        };
        PendingCall { shared, kind, options, send }
    }

    /// Sets `arguments` of the params to JSON that is sent as it is written: numbers keep their digits.
    pub fn arguments(self, arguments: &RawValue) -> Self {
        self.change(|params| {
            params.members.remove("arguments");
            params.set_raw("arguments", arguments.get().to_owned());
        })
    }

    /// Gets the result as the server wrote it. Of `tools/call`, a task is awaited, and its result is that of the call.
    ///
    /// ```no_run
    /// # use serde_json::{json, value::RawValue};
    /// # async fn example(
    /// #     client: &mcp_runtime::client::Client, arguments: &RawValue,
    /// # ) -> Result<(), mcp_runtime::client::Error> {
    /// let result = client.send("tools/call", json!({ "name": "search" })).arguments(arguments).raw().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn raw(self) -> PendingCall<Box<RawValue>> {
        self.prepared_by(|request| {
            sending(|shared, options| async move {
                let AnyRequest { method, params } = *request;
                to_raw(match &*method {
                    "tools/call" => call_tool_raw(&shared, params, &options).await?,
                    _ => shared.request(&method, params, &options).await?.json,
                })
            })
        })
    }

    /// Sends the request once and answers nothing: input that the server requires is for the program to give, with
    /// [`answered`](Self::answered), in another request and perhaps in another process. No function of the client runs. A
    /// task is awaited as for [`raw`](Self::raw).
    ///
    /// ```no_run
    /// # use serde_json::{Map, json};
    /// # use mcp_runtime::client::Round;
    /// # async fn example(client: &mcp_runtime::client::Client) -> Result<(), mcp_runtime::client::Error> {
    /// let call = || client.send("tools/call", json!({ "name": "book" }));
    /// if let Round::Input { requests, state } = call().capabilities(json!({ "elicitation": {} })).round().await? {
    ///     let decline = |key| (key, json!({ "action": "decline" }));
    ///     let answers: Map<_, _> = requests.into_iter().map(|(key, _)| decline(key)).collect();
    ///     let next = call().answered(answers, state).round().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn round(self) -> PendingCall<Round> {
        self.prepared_by(|request| {
            sending(|shared, options| async move {
                let AnyRequest { method, params } = *request;
                let json = shared.send_in_span(&method, &params, &options).await?;
                let outcome = RoundOutcome::read(&json)
                    .map_err(|what| Error::invalid(format!("the result of `{method}`: {what}")))?;
                Ok(match outcome {
                    RoundOutcome::Input(required) => {
                        let state = required.state.map(to_raw).transpose()?;
                        Round::Input { requests: required.requests, state }
                    }
                    RoundOutcome::Task if method == "tools/call" => {
                        Round::Complete(to_raw(result_of_task(&shared, &params, json, &options).await?)?)
                    }
                    _ => Round::Complete(to_raw(json)?),
                })
            })
        })
    }

    /// Answers the input that a [round](Self::round) has required: by key, with the state that came with the requests.
    pub fn answered(self, responses: Map<String, Value>, state: Option<Box<RawValue>>) -> Self {
        self.change(|params| {
            if !responses.is_empty() {
                params.members.insert("inputResponses".to_owned(), responses.into());
            }
            match state {
                Some(state) => params.set_raw("requestState", state.get().to_owned()),
                None => params.remove_raw("requestState"),
            }
        })
    }

    /// Declares other capabilities for this request than the client has: those that a [round](Self::round) can be answered
    /// with. Servers before 2026-07-28 know only those of the client.
    pub fn capabilities(mut self, capabilities: impl Into<Value>) -> Self {
        self.options.client_meta = Some(self.shared.client_meta(&capabilities.into()).into());
        self
    }
}

fn to_raw(json: String) -> Result<Box<RawValue>, Error> {
    RawValue::from_string(json).map_err(|error| Error::invalid(format!("a result is not JSON: {error}")))
}

impl<T: 'static> IntoFuture for PendingCall<T> {
    type Output = Result<T, Error>;
    type IntoFuture = BoxFuture<Self::Output>;

    /// Begins the time of the call.
    fn into_future(self) -> Self::IntoFuture {
        let Self { shared, kind, mut options, send } = self;
        let send = match send {
            Sending::Function(send) => send,
            Sending::Any(request, prepare) => prepare(request),
        };
        // a part of another call is limited by that, and has its progress
        if options.operation.is_some() {
            return send(None, shared, options);
        }
        let operation = Operation::new(kind, options.timeout, &shared.options);
        options.operation = Some(operation.clone());
        if options.progress_extends || options.on_progress.is_some() {
            options.progress = Some(shared.expect_progress(options.on_progress.take()));
        }
        send(Some(operation), shared, options)
    }
}
