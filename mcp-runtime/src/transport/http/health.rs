//! Answers the probes of orchestrators and load balancers: whether the process is alive, and whether it should get
//! requests. No check of a host, origin or caller comes before, since a probe names the server by its address; what
//! is revealed is that there is a server, and nothing else.

use std::{
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    task::Poll,
    time::Duration,
};

use http::{HeaderValue, Method, Response, StatusCode, header};
use tokio::{sync::Mutex as AsyncMutex, time::Instant};

use super::{http_error::method_not_allowed, response_body::ResponseBody};
use crate::config::{HealthOptions, ReadinessCheck};

/// How long the outcome of the checks is good for, so that frequent probes do not become load on what they check.
const CHECKED_FOR: Duration = Duration::from_secs(1);

/// The health of one server.
pub(super) struct Health {
    options: HealthOptions,
    stopping: AtomicBool,
    /// When the checks ran for the last time, and whether all of them passed. Probes that come together wait for one run.
    last: AsyncMutex<Option<(Instant, bool)>>,
}

impl Health {
    pub(super) fn new(options: &HealthOptions) -> Self {
        Self { options: options.clone(), stopping: AtomicBool::new(false), last: AsyncMutex::new(None) }
    }

    /// From now on the server is not ready.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Whether the server has been told to stop.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Answers whether the process is alive.
    pub(super) fn answer_live(method: &Method) -> Response<ResponseBody> {
        if is_read(method) { probe_response(StatusCode::OK, "alive\n") } else { method_not_allowed(METHODS) }
    }

    /// Answers whether the server should get requests.
    pub(super) async fn answer_ready(&self, method: &Method) -> Response<ResponseBody> {
        if !is_read(method) {
            return method_not_allowed(METHODS);
        }
        if self.is_stopping() {
            return probe_response(StatusCode::SERVICE_UNAVAILABLE, "stopping\n");
        }
        if self.is_ready().await {
            probe_response(StatusCode::OK, "ready\n")
        } else {
            probe_response(StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
        }
    }

    /// Whether all checks pass, or have passed a moment ago.
    async fn is_ready(&self) -> bool {
        if self.options.checks.is_empty() {
            return true;
        }
        let mut last = self.last.lock().await;
        if let Some((at, passed)) = *last
            && at.elapsed() < CHECKED_FOR
        {
            return passed;
        }
        let mut passed = true;
        let deadline = Instant::now() + self.options.timeout;
        for check in &self.options.checks {
            // the log, not the client, gets to know which one it was
            let reason = match tokio::time::timeout_at(deadline, run(check)).await {
                Ok(Some(true)) => continue,
                Ok(Some(false)) => "failed",
                Ok(None) => "panicked",
                Err(_) => "took too long",
            };
            tracing::warn!(check = check.name, reason, "the server is not ready");
            passed = false;
            break;
        }
        *last = Some((Instant::now(), passed));
        passed
    }
}

const METHODS: &str = "GET, HEAD";

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

fn probe_response(status: StatusCode, text: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::complete(text.as_bytes()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Runs one check; `None` if it panics.
async fn run(check: &ReadinessCheck) -> Option<bool> {
    let future = catch_unwind(AssertUnwindSafe(|| (check.run)())).ok()?;
    let mut future = pin!(future);
    poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        polled.map_or(Poll::Ready(None), |polled| polled.map(Some))
    })
    .await
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health").field("stopping", &self.stopping).finish_non_exhaustive()
    }
}
