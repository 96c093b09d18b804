//! Byte streams: one connection each, a line a message. Stdio and any other pair of streams share everything but
//! how bytes come and go.

mod calls;
mod connection;
mod lines;
mod sink;
#[cfg(feature = "stdio")]
mod stdio;
mod stream;
mod tell;

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::time::timeout;

use calls::{Calls, Owner};
use sink::Sink;

/// Bytes of replies that go out even though more requests are at hand.
const BURST: usize = 64 << 10;

/// Looks after a connection until its reader has ended, its calls and `rest` have had their time and the replies are
/// written.
async fn supervise(
    sink: &Arc<Sink>,
    calls: &Arc<Calls>,
    reader: impl Future<Output = ()>,
    rest: impl Future<Output = ()>,
    drain: Duration,
) {
    let owner = Owner(Arc::clone(calls));
    let mut work = pin!(async {
        reader.await;
        calls.wire().end();
        calls.stop();
        let ended = async {
            calls.ended().await;
            rest.await;
        };
        if timeout(drain, ended).await.is_err() {
            tracing::warn!("calls were still running {drain:?} after the input had ended; they were stopped");
        }
    });
    let mut closed = pin!(sink.closed());
    loop {
        let mut shrinks = pin!(sink.shrinks());
        shrinks.as_mut().enable();
        // replies that nobody reads hold the places of calls, so requests may be waiting for them
        calls.refill();
        tokio::select! {
            () = &mut work => break,
            () = &mut closed => break,
            () = shrinks => {}
        }
    }
    drop(owner);
    if timeout(drain, sink.flushed()).await.is_err() {
        tracing::warn!("the client did not read its last replies");
    }
}
