//! Progress notifications of one call.

use serde_json::{Map, Value};

use super::{Context, notification_meta};
use crate::core::{jsonrpc::notification, protocol::Revision, sync::Mutex};

/// The client's `progressToken`, and the last value that was sent with it.
pub(crate) struct ProgressToken {
    /// Raw JSON.
    json: Box<str>,
    last: Mutex<Option<f64>>,
}

impl ProgressToken {
    pub(crate) fn new(json: &str) -> Self {
        Self { json: json.into(), last: Mutex::new(None) }
    }
}

/// Numbers for progress: floats and integers of every size.
///
/// The wire has doubles only, so integers beyond 2⁵³ are rounded.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an amount of progress",
    label = "not a number",
    note = "progress is a number of any unit: `ctx.progress(50).total(100).message(\"halfway\")`"
)]
pub trait Amount {
    #[doc(hidden)]
    fn to_f64(self) -> f64;
}

macro_rules! amounts {
    ($($t:ty)*) => {$(
        impl Amount for $t {
            #[allow(clippy::cast_lossless, clippy::cast_precision_loss)]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    )*};
}
amounts!(f32 f64 i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

/// A progress report under construction; see [`Context::progress`].
#[derive(Debug)]
#[must_use = "nothing is reported before `.send()`"]
pub struct Progress<'a> {
    context: &'a Context,
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
    meta: Map<String, Value>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(context: &'a Context, progress: impl Amount) -> Self {
        Self { context, progress: progress.to_f64(), total: None, message: None, meta: Map::new() }
    }

    /// The value at which the work is done: `total` on the wire.
    pub fn total(mut self, total: impl Amount) -> Self {
        self.total = Some(total.to_f64());
        self
    }

    /// A description of the current step: `message` on the wire; clients before 2025-03-26 do not see it.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Adds a member to the notification's `_meta`; clients before 2025-11-25 do not see it.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// Sends it: at once, without waiting, and only to a client that requested progress.
    ///
    /// In a [task](crate::Context::start_task) it sets the task's status message instead, whether or not the client
    /// requested progress: the message, or else the values.
    // Dropped here: without a `progressToken`, if a value is not finite or not above the last one, and after the call. Dropped
    // later, if the client does not read or takes no event stream: `ClientConnection::notify` in `core/connection/mod.rs`.
    pub fn send(self) {
        let inner = self.context.inner();
        if let Some(task) = self.context.client_requests().task() {
            if self.progress.is_finite() && inner.cancel.is_running() {
                task.report_progress(self.progress, self.total, self.message);
            }
            return;
        }
        let (Some(token), Some(connection)) = (&self.context.call().progress, &inner.request.connection)
        else {
            return;
        };
        // a spawned task may outlive the call
        if !self.progress.is_finite() || !inner.cancel.is_running() {
            return;
        }
        let mut last = token.last.lock();
        if last.is_some_and(|last| self.progress <= last) {
            return;
        }
        *last = Some(self.progress);
        // sent under the lock, so that values of two threads stay in order
        connection.notify(notification("notifications/progress", |params| {
            params.raw("progressToken", &token.json).value("progress", &ProgressNumber(self.progress));
            if let Some(total) = self.total.filter(|t| t.is_finite()) {
                params.value("total", &ProgressNumber(total));
            }
            if inner.revision >= Revision::V2025_03_26 {
                params.opt_str("message", self.message.as_deref());
            }
            notification_meta(params, &self.meta, inner.revision);
        }));
    }
}

/// Serializes integral values as integers: `50`, not `50.0`.
struct ProgressNumber(f64);

impl serde::Serialize for ProgressNumber {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[allow(clippy::cast_possible_truncation)]
        if self.0.fract() == 0.0 && self.0.abs() < 9e15 {
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}
