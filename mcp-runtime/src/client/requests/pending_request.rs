//! A request with its options, which is sent when it is awaited and cancelled when it is dropped.

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use serde_json::Value;

use crate::{
    client::{
        Error,
        connect::shared_client::{CallOptions, SharedClient},
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
    send: SendFn<T>,
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
        let send: SendFn<T> = Box::new(|operation, shared, options| {
            Box::pin(async move {
                // it is large, and is not moved
                let sent = pin!(send(shared, options));
                match operation {
                    Some(operation) => operation.run(sent).await,
                    None => sent.await,
                }
            })
        });
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

impl<T: 'static> IntoFuture for PendingCall<T> {
    type Output = Result<T, Error>;
    type IntoFuture = BoxFuture<Self::Output>;

    /// Begins the time of the call.
    fn into_future(self) -> Self::IntoFuture {
        let Self { shared, kind, mut options, send } = self;
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
