//! Answers the probes of orchestrators and load balancers: whether the process is alive, and whether it should get
//! requests. No check of a host, origin or caller comes before, since a probe names the server by its address; what
//! is revealed is that there is a server, and nothing else.

use std::{sync::Arc, time::Duration};

use http::{HeaderValue, Method, Response, StatusCode, header};
use tokio::time::{Instant, timeout_at};

use super::{http_error::HttpError, response_body::ResponseBody};
use crate::core::{config::ReadinessCheck, single_flight::SingleFlight, sync::Mutex};

/// How long the outcome of the checks is good for, so that frequent probes do not become load on what they check.
const CHECKED_FOR: Duration = Duration::from_secs(1);

/// How long all checks together may take.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The health of one server.
pub(super) struct Health {
    readiness: Arc<Readiness>,
    /// A probe that hangs up neither ends a run of the checks nor starts another one.
    runs: SingleFlight<bool>,
}

/// The checks of one server.
struct Readiness {
    checks: Vec<ReadinessCheck>,
    /// When the checks ran for the last time, and whether all of them passed.
    last: Mutex<Option<(Instant, bool)>>,
}

impl Health {
    pub(super) fn new(checks: Vec<ReadinessCheck>) -> Self {
        let readiness = Arc::new(Readiness { checks, last: Mutex::default() });
        Self { readiness, runs: SingleFlight::default() }
    }

    /// Answers whether the process is alive.
    pub(super) fn answer_live(method: &Method) -> Response<ResponseBody> {
        if is_read(method) {
            probe_response(StatusCode::OK, "alive\n")
        } else {
            HttpError::method_not_allowed(METHODS).into()
        }
    }

    /// Answers whether the server should get requests; one that `is_stopping` should not.
    pub(super) async fn answer_ready(&self, method: &Method, is_stopping: bool) -> Response<ResponseBody> {
        if !is_read(method) {
            return HttpError::method_not_allowed(METHODS).into();
        }
        if is_stopping {
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
        if self.readiness.checks.is_empty() {
            return true;
        }
        let readiness = self.readiness.clone();
        let run = self.runs.join(|| async move { readiness.run_unless_recent().await });
        run.outcome().await.unwrap_or_else(|| {
            tracing::warn!("the server is not ready: a check panicked");
            false
        })
    }
}

impl Readiness {
    async fn run_unless_recent(&self) -> bool {
        if let Some((_, passed)) = self.last.lock().filter(|(at, _)| at.elapsed() < CHECKED_FOR) {
            return passed;
        }
        // it is this as well if a check panics
        *self.last.lock() = Some((Instant::now(), false));
        let passed = self.run().await;
        *self.last.lock() = Some((Instant::now(), passed));
        passed
    }

    async fn run(&self) -> bool {
        let deadline = Instant::now() + TIMEOUT;
        for check in &self.checks {
            // the log, not the client, gets to know which one it was
            let reason = match timeout_at(deadline, (check.run)()).await {
                Ok(true) => continue,
                Ok(false) => "failed",
                Err(_) => "took too long",
            };
            tracing::warn!(check = &*check.name, reason, "the server is not ready");
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

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
        let health = Health::new(options.health.checks);
        for _ in 0..20 {
            tokio::select! {
                biased;
                _ = health.answer_ready(&Method::GET, false) => panic!("the check has not ended"),
                () = yield_now() => {}
            }
            yield_now().await;
        }
        assert_eq!(started.load(Ordering::SeqCst), 1);
        released.add_permits(1);
        let outcome = health.answer_ready(&Method::GET, false).await;
        assert_eq!(outcome.status(), StatusCode::OK, "it is that of the check which was running");
        assert_eq!(started.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn checks_have_a_second() {
        let hangs = HttpOptions::default().readiness("hangs", std::future::pending::<bool>);
        let (health, asked) = (Health::new(hangs.health.checks), Instant::now());
        assert_eq!(health.answer_ready(&Method::GET, false).await.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(asked.elapsed(), TIMEOUT);
    }
}
