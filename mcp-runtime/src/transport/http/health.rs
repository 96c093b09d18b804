//! Answers the probes of orchestrators and load balancers: whether the process is alive, and whether it should get
//! requests. No check of a host, origin or caller comes before, since a probe names the server by its address; what
//! is revealed is that there is a server, and nothing else.

use std::{
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use http::{HeaderValue, Method, Response, StatusCode, header};
use tokio::time::Instant;

use super::{http_error::method_not_allowed, response_body::ResponseBody};
use crate::core::{
    config::{HealthOptions, ReadinessCheck},
    single_flight::SingleFlight,
    sync::Mutex,
};

/// How long the outcome of the checks is good for, so that frequent probes do not become load on what they check.
const CHECKED_FOR: Duration = Duration::from_secs(1);

/// How long all checks together may take.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The health of one server.
pub(super) struct Health {
    stopping: AtomicBool,
    readiness: Arc<Readiness>,
}

/// The checks of one server. A probe that hangs up neither ends a run of them nor starts another one.
struct Readiness {
    options: HealthOptions,
    /// When the checks ran for the last time, and whether all of them passed.
    last: Mutex<Option<(Instant, bool)>>,
    runs: SingleFlight<bool>,
}

impl Health {
    pub(super) fn new(options: &HealthOptions) -> Self {
        let readiness =
            Readiness { options: options.clone(), last: Mutex::default(), runs: SingleFlight::default() };
        Self { stopping: AtomicBool::new(false), readiness: Arc::new(readiness) }
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
        if self.readiness.are_passed().await {
            probe_response(StatusCode::OK, "ready\n")
        } else {
            probe_response(StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
        }
    }
}

impl Readiness {
    /// Whether all checks pass, or have passed a moment ago.
    async fn are_passed(self: &Arc<Self>) -> bool {
        if self.options.checks.is_empty() {
            return true;
        }
        if let Some(passed) = self.passed_recently() {
            return passed;
        }
        let readiness = self.clone();
        let run = self.runs.join(|| async move { readiness.run_unless_recent().await });
        run.outcome().await == Some(true)
    }

    /// The outcome of checks that have just run.
    fn passed_recently(&self) -> Option<bool> {
        self.last.lock().filter(|(at, _)| at.elapsed() < CHECKED_FOR).map(|(_, passed)| passed)
    }

    async fn run_unless_recent(&self) -> bool {
        // a run may have ended after the probe has looked
        if let Some(passed) = self.passed_recently() {
            return passed;
        }
        let passed = self.run_checks().await;
        *self.last.lock() = Some((Instant::now(), passed));
        passed
    }

    async fn run_checks(&self) -> bool {
        let deadline = Instant::now() + TIMEOUT;
        for check in &self.options.checks {
            // the log, not the client, gets to know which one it was
            let reason = match tokio::time::timeout_at(deadline, run(check)).await {
                Ok(Some(true)) => continue,
                Ok(Some(false)) => "failed",
                Ok(None) => "panicked",
                Err(_) => "took too long",
            };
            tracing::warn!(check = check.name, reason, "the server is not ready");
            return false;
        }
        true
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::{sync::Semaphore, task::yield_now};

    use super::*;
    use crate::core::config::HttpOptions;

    #[tokio::test(start_paused = true)]
    async fn probes_that_hang_up_start_no_further_checks() {
        let (started, released) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let (count, gate) = (started.clone(), released.clone());
        let options = HttpOptions::default().readiness("database", move || {
            let (count, gate) = (count.clone(), gate.clone());
            async move {
                count.fetch_add(1, Ordering::SeqCst);
                gate.acquire().await.is_ok()
            }
        });
        let health = Health::new(&options.health);
        for _ in 0..20 {
            tokio::select! {
                biased;
                _ = health.answer_ready(&Method::GET) => panic!("the check has not ended"),
                () = yield_now() => {}
            }
            yield_now().await;
        }
        assert_eq!(started.load(Ordering::SeqCst), 1);
        released.add_permits(1);
        let outcome = health.answer_ready(&Method::GET).await;
        assert_eq!(outcome.status(), StatusCode::OK, "it is that of the check which was running");
        assert_eq!(started.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn checks_have_a_second() {
        let hangs = HttpOptions::default().readiness("hangs", std::future::pending::<bool>);
        let (health, asked) = (Health::new(&hangs.health), Instant::now());
        assert_eq!(health.answer_ready(&Method::GET).await.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(asked.elapsed(), TIMEOUT);
    }
}
