//! Changes on their way to the client of one connection: on the streams that it listens on, or, after a handshake, by
//! themselves. They wait for room among what the client has not read yet; until then the hub keeps each of them once.
//! The connection's calls own the tasks that run here.

use std::{future::poll_fn, sync::Arc};

use super::sink::Sink;
use crate::{context::Ending, dispatch::Listening, subscribe::Follower};

/// Tells a client of the handshake era what it wants to know; until dropped.
pub(super) async fn changes(mut follower: Follower, sink: Arc<Sink>) {
    loop {
        sink.quiet().await;
        let change = poll_fn(|cx| follower.poll(cx)).await;
        line(&sink, change.notification(|_| {}), 0);
    }
}

/// Serves one subscription, whose acknowledgement has been sent, until the server ends it: first it is cancelled,
/// since all of them share one channel, then its request is answered.
pub(super) async fn subscription(mut listening: Listening, ending: Ending, sink: Arc<Sink>) {
    let told = async {
        loop {
            sink.quiet().await;
            match poll_fn(|cx| listening.poll_next(cx)).await {
                Some(message) => line(&sink, message, 0),
                None => break,
            }
        }
    };
    tokio::select! {
        biased;
        () = ending.fired() => {}
        () = told => {}
    }
    line(&sink, listening.cancelled(), 0);
    line(&sink, listening.result(), 1);
}

/// Hands over one message.
pub(super) fn line(sink: &Arc<Sink>, mut message: Vec<u8>, replies: usize) {
    message.push(b'\n');
    sink.send(&message, replies);
}
