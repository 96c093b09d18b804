//! Log messages of one call to its client.

use std::{borrow::Cow, fmt, sync::atomic::Ordering};

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Context, notification_meta};
use crate::core::{
    jsonrpc::notification,
    log_limit::{LogLimit, LogLine},
    protocol::LogLevel,
};

/// The level of a legacy client that has set none; the specification leaves it to servers.
const DEFAULT_LEVEL: LogLevel = LogLevel::Info;

/// A log message under construction; see [`Context::log`].
#[must_use = "nothing is logged before `.send()`"]
pub struct Log<'a, T> {
    context: &'a Context,
    level: LogLevel,
    data: T,
    logger: Option<Cow<'a, str>>,
    meta: Map<String, Value>,
}

impl<'a, T: Serialize> Log<'a, T> {
    /// Sets `logger` on the wire: the part of the program that logs.
    pub fn logger(mut self, name: impl Into<Cow<'a, str>>) -> Self {
        self.logger = Some(name.into());
        self
    }

    /// Adds a member to the notification's `_meta`; clients before 2025-11-25 do not see it.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// Sends it: at once, without waiting, and only to a client that gets messages of this level.
    pub fn send(self) {
        let settings = &self.context.inner().settings;
        if !settings.logging {
            if !settings.logging_hint_logged.swap(true, Ordering::Relaxed) {
                tracing::debug!(
                    "`ctx.log` reaches no client: the server is built without `.telemetry(|telemetry| telemetry.client_logging())`"
                );
            }
            return;
        }
        if self.context.log_threshold().is_none_or(|minimum| self.level < minimum) {
            return;
        }
        match serde_json::to_vec(&self.data) {
            Ok(data) => self.context.send_log(self.level, self.logger.as_deref(), &data, &self.meta),
            Err(error) => {
                static LIMIT: LogLimit = LogLimit::new();
                if let Some(LogLine { suppressed }) = LIMIT.line() {
                    tracing::warn!(suppressed, %error, "the data of a log message cannot be written as JSON");
                }
            }
        }
    }
}

impl<T> fmt::Debug for Log<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("level", &self.level)
            .field("logger", &self.logger)
            .finish_non_exhaustive()
    }
}

impl Context {
    /// Sends a log message to the client: `ctx.log(LogLevel::Info, "started").send()`; the data may be anything that
    /// implements `Serialize`.
    ///
    /// The server must be built with [`client_logging`](crate::config::TelemetryOptions::client_logging). A client of 2026-07-28 sets a
    /// level with each request, and gets nothing without one. A client of an earlier revision gets the level that it set
    /// last; before that, messages of [`LogLevel::Info`] and above.
    ///
    /// See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).
    ///
    /// ```
    /// use mcp_runtime::{Context, context::LogLevel};
    /// use serde_json::json;
    ///
    /// fn import(rows: usize, ctx: &Context) {
    ///     ctx.log(LogLevel::Info, "import started").send();
    ///     ctx.log(LogLevel::Debug, json!({ "rows": rows })).logger("import").send();
    /// }
    /// # import(3, &Context::for_test());
    /// ```
    pub fn log<T: Serialize>(&self, level: LogLevel, data: T) -> Log<'_, T> {
        Log { context: self, level, data, logger: None, meta: Map::new() }
    }

    /// The minimum level that the client of this call gets; `None` if it gets no messages.
    fn log_threshold(&self) -> Option<LogLevel> {
        self.requested_level().or_else(|| {
            let inner = self.inner();
            (inner.settings.logging && !inner.revision.is_modern()).then_some(DEFAULT_LEVEL)
        })
    }

    /// The minimum level that the client of this call requested.
    pub(super) fn requested_level(&self) -> Option<LogLevel> {
        let inner = self.inner();
        if !inner.settings.logging {
            return None;
        }
        if inner.revision.is_modern() { inner.log_level } else { inner.request.session()?.level() }
    }

    /// Sends raw JSON, unless the call has completed.
    pub(super) fn send_log(
        &self,
        level: LogLevel,
        logger: Option<&str>,
        data: &[u8],
        meta: &Map<String, Value>,
    ) {
        let inner = self.inner();
        let Some(connection) = inner.request.connection.as_ref().filter(|_| inner.cancel.is_running()) else {
            return;
        };
        // the reply to the call was sent already, and MCP defines no log for tasks
        if self.client_requests().task().is_some() {
            return;
        }
        connection.notify(notification("notifications/message", |params| {
            params.str("level", level.as_str()).opt_str("logger", logger);
            params.key("data").extend_from_slice(data);
            notification_meta(params, meta, inner.revision);
        }));
    }
}
