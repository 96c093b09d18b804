//! The error of a function that failed, as its client and the log get it: a public message, a report, a JSON-RPC error, or
//! only that it failed. The cause of a private error is in the log alone, unless the server is told otherwise.

#[cfg(feature = "tasks")]
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::core::{
    content::Content,
    error::{BoxError, Failure},
    invoke::{discard, panic_message},
    jsonrpc::ProtocolError,
    log_limit::{ItemLogLimits, LogLine, cut_for_log},
    protocol::{
        INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, Revision, is_defined_error, is_reserved_code,
    },
    reason::Reason,
};

/// The item that an error message or log entry is about.
#[derive(Clone, Copy)]
pub(crate) struct ErrorContext<'a> {
    /// Such as `tool`.
    pub(crate) kind: &'static str,
    pub(crate) name: &'a str,
    /// Whether clients see the causes of private errors.
    pub(crate) detailed: bool,
    /// How many lines the log gets.
    pub(crate) log_limits: &'a ItemLogLimits,
}

/// The client's view of a function that failed.
pub(crate) enum ClientError {
    /// The arguments are invalid; the text is the report.
    Arguments(String),
    /// The item does not exist.
    NotFound,
    /// A JSON-RPC error.
    Protocol(ProtocolError),
    /// A message for the model.
    Message(String, Vec<Content>),
}

impl Failure {
    /// The client's error: a public message, else only that the function failed; the log gets the chain of causes.
    pub(crate) fn into_client_error(self, context: ErrorContext<'_>, revision: Revision) -> ClientError {
        let ErrorContext { kind, name, detailed, log_limits } = context;
        let reason = self.reason();
        match self {
            Self::Arguments(report) => ClientError::Arguments(report),
            Self::TimedOut(limit) => {
                let text = format!("{kind} '{name}' took longer than its limit of {limit:?}");
                ClientError::Message(text, Vec::new())
            }
            Self::Limited(limit) => ClientError::Message(format!("{kind} '{name}' {limit}"), Vec::new()),
            Self::Protocol(error) | Self::VisitsRequired(error) => {
                ClientError::Protocol(map_error_code(error, context, revision))
            }
            Self::NotFound => ClientError::NotFound,
            Self::Public { message, content, cause } => {
                let mut message = message.into_owned();
                if let Some(cause) = cause {
                    let chain = error_chain(&*cause);
                    if let Some(LogLine { suppressed }) = log_limits.line(kind, name) {
                        tracing::error!(kind, name, suppressed, error = %cut_for_log(&chain), "call failed");
                    }
                    #[cfg(any(feature = "testing", test))]
                    private_causes::record(&chain);
                    if detailed {
                        message = format!("{message}: {chain}");
                    }
                }
                ClientError::Message(message, content)
            }
            Self::Private(cause) => private_error(cause, reason, context),
        }
    }
}

/// The error of a function whose cause the log alone gets, unless the server tells clients.
fn private_error(cause: BoxError, reason: Option<Reason>, context: ErrorContext<'_>) -> ClientError {
    let ErrorContext { kind, name, detailed, log_limits } = context;
    // the user's `Display` may panic
    let chain = catch_unwind(AssertUnwindSafe(|| error_chain(&*cause)));
    discard(cause);
    let Ok(chain) = chain.map_err(|panic| {
        if let Some(LogLine { suppressed }) = log_limits.line(kind, name) {
            tracing::error!(
                kind,
                name,
                suppressed,
                error = &*cut_for_log(panic_message(&*panic)),
                "panicked while an error was written"
            );
        }
        discard(panic);
    }) else {
        return ClientError::Protocol(ProtocolError::internal("the reply could not be written"));
    };
    let label = reason.map(Reason::as_str);
    if let Some(LogLine { suppressed }) = log_limits.line(kind, name) {
        tracing::error!(
            kind,
            name,
            reason = label,
            suppressed,
            error = %cut_for_log(&chain),
            "call failed"
        );
    }
    #[cfg(any(feature = "testing", test))]
    private_causes::record(&chain);
    let text = format!("{kind} '{name}' failed");
    if !detailed && reason == Some(Reason::Private) && log_limits.advises(kind, name) {
        tracing::warn!(
            kind,
            name,
            "the client was told only `{text}`: errors are private unless the function writes them for the model\n\
                         if the model should read why, return `ToolError::new(\"..\")`, or write `.public()?` or `.public_context(\"..\")?`\n\
                         this warning is logged once for each item"
        );
    }
    ClientError::Message(if detailed { format!("{text}: {chain}") } else { text }, Vec::new())
}

/// Replaces the code that 2026-07-28 has removed, so that functions need not know the revision of their client, and the
/// codes that only the specification may define.
fn map_error_code(error: ProtocolError, context: ErrorContext<'_>, revision: Revision) -> ProtocolError {
    let code = error.code;
    if code == RESOURCE_NOT_FOUND && revision.is_modern() {
        return ProtocolError { code: INVALID_PARAMS, ..error };
    }
    if !is_reserved_code(code) || is_defined_error(code, error.data.as_ref(), revision) {
        return error;
    }
    let ErrorContext { kind, name, log_limits, .. } = context;
    if let Some(LogLine { suppressed }) = log_limits.line(kind, name) {
        tracing::warn!(
            kind,
            name,
            code,
            suppressed,
            message = &*cut_for_log(&error.message),
            "error codes from -32020 to -32099 are MCP's: the client gets -32603\nuse a code above -32000"
        );
    }
    ProtocolError { code: INTERNAL_ERROR, ..error }
}

/// An error and its causes in one line; many errors have their cause in their own text.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    for cause in causes(error) {
        let line = cause.to_string();
        if !text.contains(&line) {
            text.push_str(": ");
            text.push_str(&line);
        }
    }
    text
}

/// The causes of an error, the nearest first: so many at most, since an error may be its own cause.
pub(crate) fn causes<'a>(
    error: &'a (dyn std::error::Error + 'a),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    const MOST: usize = 64;
    std::iter::successors(error.source(), |error| error.source()).take(MOST)
}

/// Runs a task on behalf of the current call: its private failures are reported to a test like the call's own
/// failures.
#[cfg(feature = "tasks")]
pub(crate) fn for_current_call(
    task: impl Future<Output = ()> + Send + 'static,
) -> impl Future<Output = ()> + Send + 'static {
    #[cfg(any(feature = "testing", test))]
    let task = private_causes::inherit(task);
    task
}

/// The private causes of failures, for tests that fail because of them: clients never see these.
#[cfg(any(feature = "testing", test))]
pub(crate) mod private_causes {
    use std::{future::Future, sync::Arc};

    use crate::core::sync::Mutex;

    type Causes = Arc<Mutex<Vec<String>>>;

    tokio::task_local! {
        static CAUSES: Causes;
    }

    pub(super) fn record(cause: &str) {
        // fails where nothing collects them
        let _recorded = CAUSES.try_with(|causes| causes.lock().push(cause.to_owned()));
    }

    /// The output of a future, and the causes of what failed privately in it. If an outer future collects as well, it
    /// gets them.
    pub(crate) async fn collect<T>(future: impl Future<Output = T>) -> (T, Vec<String>) {
        if CAUSES.try_with(|_| ()).is_ok() {
            return (future.await, Vec::new());
        }
        let causes = Causes::default();
        let output = CAUSES.scope(causes.clone(), future).await;
        let causes = std::mem::take(&mut *causes.lock());
        (output, causes)
    }

    #[cfg(feature = "tasks")]
    pub(super) fn inherit(
        task: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        let causes = CAUSES.try_with(Arc::clone).unwrap_or_default();
        CAUSES.scope(causes, task)
    }
}
