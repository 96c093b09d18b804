//! A request with its options, which is sent when it is awaited and cancelled when it is dropped.

use std::{fmt, future::IntoFuture, sync::Arc, time::Duration};

use serde_json::Value;

use crate::client::{
    Error,
    connect::shared_client::{CallOptions, SharedClient},
    operation::{Operation, OperationKind},
    receive::handlers::{AnswerFuture, ProgressUpdate},
};

type SendFn<T> =
    Box<dyn FnOnce(Arc<SharedClient>, CallOptions, bool) -> AnswerFuture<Result<T, Error>> + Send>;

/// A request to a server. Nothing is sent before `.await`; dropping the future cancels the request, in the way of its
/// transport.
#[must_use = "nothing is sent before `.await`"]
pub struct PendingCall<T> {
    shared: Arc<SharedClient>,
    options: CallOptions,
    refresh: bool,
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
        F: FnOnce(Arc<SharedClient>, CallOptions, bool) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let send: SendFn<T> = Box::new(move |shared, mut options, refresh| {
            Box::pin(async move {
                if options.operation.is_some() {
                    // a part of another call
                    return send(shared, options, refresh).await;
                }
                let operation = Operation::new(kind, options.timeout, &shared.options);
                options.operation = Some(operation.clone());
                operation.run(send(shared, options, refresh)).await
            })
        });
        Self { shared: shared.clone(), options: CallOptions::default(), refresh: false, send }
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

    /// Receives the progress of this call. The function must not block.
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
        self.refresh = refresh == Refresh::Yes;
        self
    }
}

impl<T: 'static> IntoFuture for PendingCall<T> {
    type Output = Result<T, Error>;
    type IntoFuture = AnswerFuture<Result<T, Error>>;

    fn into_future(self) -> Self::IntoFuture {
        (self.send)(self.shared, self.options, self.refresh)
    }
}
