//! Runs the calls of one request of a session, once it is answered with an event stream: their messages go to the
//! stream's feed, with or without a client that reads it. The response of the request starts one.

use std::{future::poll_fn, sync::Arc, task::Poll};

use axum::http::Response;
use tokio::time::sleep;

use super::{
    call::{Calls, Detached},
    feed::{Feed, Reader},
    reply::{self, Reply},
    stream::KEEP_ALIVE,
};

/// The response of calls that go on as a stream of their session.
pub(super) fn start(calls: Calls, feed: Arc<Feed>) -> Response<Reply> {
    let (reader, events) = Reader::new(None);
    tokio::spawn(run(calls, feed, reader));
    reply::events(Reply::Events(events))
}

async fn run(mut calls: Calls, feed: Arc<Feed>, reader: Reader) {
    // from here on dropping the calls cancels them
    calls.detaches = false;
    let _registered = feed.register();
    reader.send(feed.priming()).await;
    feed.attach(&reader, 0);
    drop(reader);
    let mut primed = feed.closes();
    let mut detached = None;
    loop {
        let closes = feed.closes();
        let reader = feed.reader();
        if detached.is_none() && (closes || reader.is_none()) {
            // a call without a client takes another place than one that is served
            detached = Detached::enter(calls.endpoint());
            match &detached {
                Some(_) => calls.leave(),
                None if reader.is_none() => return,
                None => {}
            }
        }
        if closes && detached.is_some() {
            feed.close_now(!primed).await;
            primed = false;
            continue;
        }
        let mut messages = Vec::new();
        let over = tokio::select! {
            biased;
            over = poll_fn(|cx| match calls.poll_messages(cx, &mut messages) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending if messages.is_empty() => Poll::Pending,
                Poll::Pending => Poll::Ready(false),
            }) => over,
            () = feed.gone() => false,
            () = feed.changed.notified() => false,
            () = sleep(KEEP_ALIVE) => {
                if let Some(reader) = reader {
                    reader.keep_alive();
                }
                false
            }
        };
        let count = messages.len();
        for (n, message) in messages.into_iter().enumerate() {
            let emit = feed.emit(message, over && n + 1 == count);
            // a client that does not read holds the calls up, but it can cancel them and end its session
            if over {
                tokio::select! {
                    biased;
                    () = emit => {}
                    () = feed.memory().ending.fired() => return,
                }
            } else {
                tokio::select! {
                    biased;
                    () = emit => {}
                    () = poll_fn(|cx| calls.poll_given_up(cx)) => feed.drop_reader(),
                }
            }
        }
        if over {
            if count == 0 {
                // cancelled: whoever comes back must learn that there is nothing to wait for
                feed.emit(Vec::new(), true).await;
            }
            return;
        }
    }
}
