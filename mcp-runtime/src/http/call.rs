//! The calls of one request that were not done at once: polled by its response, cancelled or left to run on when the
//! client goes away. The endpoint makes it, the response or the stream owns it.

use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use axum::http::{Response, StatusCode};
use hyper::body::Bytes;

use super::{
    endpoint::{Endpoint, Permit},
    exchange::Exchange,
    head::Accepts,
    pump,
    queue::{Queue, event},
    reply::{self, Reply},
    running::Registration,
    stream::Stream,
};
use crate::{
    context::Cancelled,
    dispatch::{Running, Status},
};

/// One member of a request.
#[derive(Debug)]
pub(super) enum Part {
    /// Its reply.
    Done(Vec<u8>),
    Running(Pending),
    /// Cancelled by its client, or sent as an event: nothing more will come.
    Gone,
}

/// A member that still runs.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) running: Running,
    /// How `notifications/cancelled` reaches it, in sessions.
    pub(super) cancel: Option<(Cancelled, Registration)>,
}

impl Pending {
    /// `None` when the client cancelled it.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<(Vec<u8>, Status)>> {
        // first, since a cancelled call gets no reply, also if it ends because of that
        if let Some((cancelled, _)) = &mut self.cancel
            && Pin::new(cancelled).poll(cx).is_ready()
        {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.running).poll(cx).map(|finished| Some((finished.bytes, finished.status)))
    }
}

/// The members of one request, in order.
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) parts: Vec<Part>,
    /// Whether they came as an array, and are answered as one.
    pub(super) batch: bool,
    pub(super) status: Status,
    pub(super) exchange: Arc<Exchange>,
    pub(super) accepts: Accepts,
    /// Whether the bodies run on when the client goes away.
    pub(super) detaches: bool,
    pub(super) permit: Permit,
}

impl Calls {
    fn queue(&self) -> &Queue {
        self.exchange.queue()
    }

    pub(super) fn endpoint(&self) -> &Arc<Endpoint> {
        self.permit.endpoint()
    }

    /// The calls go on, but are not served any more.
    pub(super) fn leave(&mut self) {
        self.permit.leave();
    }

    /// Polls every member; ready when none is running any more.
    fn poll_parts(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut all = Poll::Ready(());
        for part in &mut self.parts {
            let Part::Running(pending) = part else { continue };
            *part = match pending.poll(cx) {
                Poll::Pending => {
                    all = Poll::Pending;
                    continue;
                }
                Poll::Ready(Some((bytes, status))) => {
                    self.status = status;
                    Part::Done(bytes)
                }
                Poll::Ready(None) => Part::Gone,
            };
        }
        all
    }

    /// Polls every member and appends what can be sent as events.
    pub(super) fn poll_events(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()> {
        let mut messages = Vec::new();
        let polled = self.poll_messages(cx, &mut messages);
        for message in messages {
            event(out, &message);
        }
        polled
    }

    /// Polls every member and appends what can be sent: notifications first, then results. Ready when nothing more
    /// will come.
    pub(super) fn poll_messages(&mut self, cx: &mut Context<'_>, out: &mut Vec<Vec<u8>>) -> Poll<()> {
        loop {
            let polled = self.poll_parts(cx);
            out.extend(self.queue().take());
            for part in &mut self.parts {
                if let Part::Done(bytes) = part {
                    out.push(std::mem::take(bytes));
                    *part = Part::Gone;
                }
            }
            let quiet = self.queue().wake_on_message(cx);
            if polled.is_ready() || quiet || !out.is_empty() {
                return polled;
            }
        }
    }

    /// Ready when the client has cancelled every member that still ran. Their functions are dropped, but not polled.
    pub(super) fn poll_given_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut running = false;
        for part in &mut self.parts {
            let Part::Running(pending) = part else { continue };
            let cancelled = pending.cancel.as_mut().map(|(cancelled, _)| Pin::new(cancelled).poll(cx));
            match cancelled {
                Some(Poll::Ready(())) => *part = Part::Gone,
                _ => running = true,
            }
        }
        if running { Poll::Pending } else { Poll::Ready(()) }
    }

    /// The response of calls of which none is running.
    pub(super) fn finish(mut self) -> Response<Reply> {
        let mut replies: Vec<Vec<u8>> = self
            .parts
            .drain(..)
            .filter_map(|part| match part {
                Part::Done(bytes) => Some(bytes),
                Part::Running(_) | Part::Gone => None,
            })
            .collect();
        if replies.is_empty() {
            // cancelled: the request gets no reply, the connection a response
            return if self.accepts.stream {
                reply::events(Reply::Whole(Bytes::new()))
            } else {
                reply::empty(StatusCode::ACCEPTED)
            };
        }
        if !self.batch {
            return whole(self.status, replies.swap_remove(0), self.queue(), self.accepts);
        }
        if !self.queue().is_empty() || !self.accepts.json {
            return as_events(&replies, self.queue());
        }
        let mut array = Vec::with_capacity(replies.iter().map(|reply| reply.len() + 1).sum::<usize>() + 1);
        for reply in replies {
            array.push(if array.is_empty() { b'[' } else { b',' });
            array.extend(reply);
        }
        array.push(b']');
        reply::json(StatusCode::OK, array)
    }
}

/// The response of one call that is done: JSON, or events if notifications come before its result.
pub(super) fn whole(status: Status, body: Vec<u8>, queue: &Queue, accepts: Accepts) -> Response<Reply> {
    if accepts.json && queue.is_empty() {
        return reply::json(reply::status(status), body);
    }
    as_events(&[body], queue)
}

fn as_events(replies: &[Vec<u8>], queue: &Queue) -> Response<Reply> {
    let mut out = Vec::new();
    queue.drain(&mut out);
    for reply in replies {
        event(&mut out, reply);
    }
    reply::events(Reply::Whole(out.into()))
}

impl Drop for Calls {
    fn drop(&mut self) {
        if !self.detaches {
            return;
        }
        let pending: Vec<Pending> = self
            .parts
            .drain(..)
            .filter_map(|part| match part {
                Part::Running(pending) => Some(pending),
                Part::Done(_) | Part::Gone => None,
            })
            .collect();
        if !pending.is_empty() {
            // nobody reads what they have to say: one that asks must know
            self.queue().close();
            detach(self.permit.endpoint(), pending);
        }
    }
}

/// Lets calls run on whose client went away; too many of them are cancelled.
fn detach(endpoint: &Arc<Endpoint>, pending: Vec<Pending>) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    for mut pending in pending {
        let Some(place) = Detached::enter(endpoint) else { return };
        runtime.spawn(async move {
            let _place = place;
            std::future::poll_fn(|cx| pending.poll(cx).map(drop)).await;
        });
    }
}

/// A place among the detached calls.
pub(super) struct Detached(Arc<Endpoint>);

impl Detached {
    pub(super) fn enter(endpoint: &Arc<Endpoint>) -> Option<Self> {
        let limit = endpoint.options.max_detached;
        let enter = |n: usize| (n < limit).then_some(n + 1);
        endpoint.detached.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter).ok()?;
        Some(Self(endpoint.clone()))
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        self.0.detached.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The response of calls that are running: JSON if nothing comes before their results, else an event stream.
pub(super) struct Answer(Option<Calls>);

impl Answer {
    pub(super) fn new(calls: Calls) -> Self {
        Self(Some(calls))
    }
}

impl Future for Answer {
    type Output = Response<Reply>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response<Reply>> {
        let Some(mut calls) = self.0.take() else { return Poll::Pending };
        if calls.poll_parts(cx).is_ready() {
            return Poll::Ready(calls.finish());
        }
        let quiet = calls.queue().wake_on_message(cx) && !calls.exchange.closes();
        if quiet && calls.accepts.json {
            self.0 = Some(calls);
            return Poll::Pending;
        }
        Poll::Ready(match calls.exchange.feed().cloned() {
            Some(feed) => pump::start(calls, feed),
            None => reply::events(Reply::Stream(Box::new(Stream::new(calls)))),
        })
    }
}
