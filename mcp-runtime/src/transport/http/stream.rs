//! From the calls of a request to its response: JSON if nothing comes before their results and they do not take long,
//! an event stream otherwise. Calls of a stream are driven by a task of their own, whether or not the client reads.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::Response;
use tokio::time::{Sleep, sleep};

use super::{
    exchange::Exchange,
    response::{self, ResponseBody, finish},
    service::Endpoint,
};
use crate::{
    connection::{Outbound, Receiver},
    dispatch::{Calls, ListenStream, encode},
    server::Server,
};

/// How long a response may be silent: then it becomes an event stream, which can be kept alive.
const SILENCE: Duration = Duration::from_secs(10);

/// What is special about calls of revisions before 2026-07-28: they go on without their client.
pub(super) trait LegacyCalls: Send {
    /// The client went away before there was a response.
    fn detach(self: Box<Self>, calls: Calls);

    /// Answers with an event stream; `opening` if nothing has been sent so far.
    fn stream(
        self: Box<Self>,
        calls: Calls,
        exchange: &Arc<Exchange>,
        opening: bool,
    ) -> Response<ResponseBody>;

    /// Whether the stream has to be opened now, since a function closes it.
    fn closes(&self) -> bool;
}

/// The response of calls that are running. Dropping it means that the client has gone.
pub(super) struct PendingAnswer {
    /// Absent once there is a response.
    calls: Option<Calls>,
    server: Server,
    exchange: Arc<Exchange>,
    legacy: Option<Box<dyn LegacyCalls>>,
    silence: Option<Pin<Box<Sleep>>>,
}

impl PendingAnswer {
    pub(super) fn new(
        server: &Server,
        calls: Calls,
        exchange: &Arc<Exchange>,
        legacy: Option<Box<dyn LegacyCalls>>,
    ) -> Box<Self> {
        let (server, exchange) = (server.clone(), exchange.clone());
        Box::new(Self { calls: Some(calls), server, exchange, legacy, silence: None })
    }

    /// Whether the response has to be a stream, and whether nothing has been sent on it yet.
    fn must_stream(&mut self, cx: &mut Context<'_>) -> Option<bool> {
        let accepts = self.exchange.accepts();
        if !accepts.stream {
            return None;
        }
        let quiet = self.exchange.outbound().wake_on_message(cx);
        if !quiet || self.legacy.as_ref().is_some_and(|legacy| legacy.closes()) {
            return Some(false);
        }
        if !accepts.json {
            return Some(true);
        }
        let silence = self.silence.get_or_insert_with(|| Box::pin(sleep(SILENCE)));
        silence.as_mut().poll(cx).is_ready().then_some(true)
    }
}

impl Future for PendingAnswer {
    type Output = Response<ResponseBody>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response<ResponseBody>> {
        let this = &mut *self;
        let Some(calls) = &mut this.calls else { return Poll::Pending };
        if calls.poll(cx).is_ready() {
            let response = finish(&this.server, calls, &this.exchange);
            this.calls = None;
            return Poll::Ready(response);
        }
        let Some(opening) = this.must_stream(cx) else { return Poll::Pending };
        let Some(calls) = this.calls.take() else { return Poll::Pending };
        Poll::Ready(match this.legacy.take() {
            Some(legacy) => legacy.stream(calls, &this.exchange, opening),
            None => stream(&this.server, calls, &this.exchange, opening),
        })
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        if let (Some(calls), Some(legacy)) = (self.calls.take(), self.legacy.take()) {
            // the functions go on, but their messages have no reader any more
            self.exchange.outbound().abandon();
            legacy.detach(calls);
        }
    }
}

/// Answers calls of 2026-07-28 with a stream: they end when their client goes away.
fn stream(
    server: &Server,
    mut calls: Calls,
    exchange: &Arc<Exchange>,
    opening: bool,
) -> Response<ResponseBody> {
    let (server, outbound) = (server.clone(), exchange.outbound().clone());
    let receiver = Receiver::new(outbound.clone());
    tokio::spawn(async move {
        tokio::select! {
            biased;
            () = outbound.abandoned() => {}
            () = drive(&server, &mut calls, &outbound) => {}
        }
    });
    response::events(ResponseBody::messages(receiver, opening))
}

/// Drives calls to their ends; their results are sent as they come.
pub(super) async fn drive(server: &Server, calls: &mut Calls, outbound: &Outbound) {
    let revision = calls.revision;
    poll_fn(|cx| {
        let polled = calls.poll(cx);
        for (id, reply) in calls.take_replies() {
            let mut out = Vec::with_capacity(256);
            encode(&mut out, &reply, &id, revision, server.identity());
            outbound.put(out);
        }
        polled
    })
    .await;
    outbound.finish();
}

impl Endpoint {
    /// Answers `subscriptions/listen` with its stream, without a place among the requests that are served at once.
    pub(super) fn subscription(
        self: &Arc<Self>,
        mut subscription: ListenStream,
        exchange: &Arc<Exchange>,
    ) -> Response<ResponseBody> {
        let (outbound, shutdown) = (exchange.outbound().clone(), self.shutdown.clone());
        let receiver = Receiver::new(outbound.clone());
        tokio::spawn(async move {
            let messages = async {
                // what the client has not read yet is kept in the hub, each change once
                while outbound.wait_for_capacity().await
                    && let Some(message) = poll_fn(|cx| subscription.poll_next(cx)).await
                {
                    outbound.put(message);
                }
            };
            tokio::select! {
                biased;
                () = outbound.abandoned() => return,
                () = messages => {}
                () = shutdown.fired() => {}
            }
            outbound.put(subscription.result());
            outbound.finish();
        });
        response::events(ResponseBody::messages(receiver, false))
    }
}
