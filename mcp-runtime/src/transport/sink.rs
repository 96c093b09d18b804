//! The one writer of a connection: whole lines, in the order they were handed over, without ever blocking whoever
//! hands them over. What the other side does not take yet is kept as a backlog, with a bound on what may be added.

use std::{
    io::{self, Write},
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::{Notify, futures::Notified};

use crate::context::Outlet;

/// Bytes of backlog beyond which the reader waits.
const FULL: usize = 8 << 20;
/// Bytes of backlog beyond which notifications are dropped.
const NO_NOTIFICATIONS: usize = 1 << 20;

/// How bytes get out at once.
#[derive(Debug)]
pub(super) enum Port {
    /// `now` takes what there is room for and says `WouldBlock` otherwise; `patient` waits, on a thread of its own.
    #[cfg_attr(not(feature = "stdio"), allow(dead_code))]
    Prompt { now: std::fs::File, patient: Arc<std::fs::File> },
    /// Writes wait for the other side.
    #[cfg_attr(not(feature = "stdio"), allow(dead_code))]
    Waiting(std::fs::File),
    /// Everything goes to the backlog, which an async writer takes with [`Sink::taken`].
    Backlog,
}

#[derive(Debug)]
pub(super) struct Sink {
    port: Port,
    state: Mutex<State>,
    /// Replies in the backlog.
    unwritten: AtomicUsize,
    /// The backlog has grown, for the async writer.
    grown: Notify,
    /// The backlog has shrunk, or the sink has closed.
    shrunk: Notify,
}

#[derive(Debug, Default)]
struct State {
    backlog: Vec<u8>,
    /// Bytes of the backlog, and those that are being written.
    bytes: usize,
    replies: usize,
    /// Someone is writing the backlog: everything else goes behind it.
    draining: bool,
    closed: bool,
}

/// A piece of the backlog, to be written; [`Sink::written`] takes it back.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    replies: usize,
}

impl Sink {
    pub(super) fn new(port: Port) -> Arc<Self> {
        let state = State { draining: matches!(port, Port::Backlog), ..State::default() };
        Arc::new(Self {
            port,
            state: Mutex::new(state),
            unwritten: AtomicUsize::new(0),
            grown: Notify::new(),
            shrunk: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over whole lines that hold so many replies.
    pub(super) fn send(self: &Arc<Self>, lines: &[u8], replies: usize) {
        let mut state = self.state();
        if state.closed || lines.is_empty() {
            return;
        }
        let taken = if state.draining { Ok(0) } else { self.write_now(lines) };
        let rest = match taken {
            Ok(taken) => lines.get(taken..).unwrap_or_default(),
            Err(error) => return self.close(&mut state, &error),
        };
        if rest.is_empty() {
            return;
        }
        state.backlog.extend_from_slice(rest);
        state.bytes += rest.len();
        state.replies += replies;
        self.unwritten.fetch_add(replies, Ordering::AcqRel);
        match &self.port {
            Port::Backlog => self.grown.notify_one(),
            Port::Prompt { patient, .. } if !state.draining => {
                state.draining = true;
                let (sink, file) = (Arc::clone(self), Arc::clone(patient));
                let thread = std::thread::Builder::new().name("mcp-stdout".into());
                if let Err(error) = thread.spawn(move || sink.drain(&file)) {
                    self.close(&mut state, &error);
                }
            }
            Port::Prompt { .. } | Port::Waiting(_) => {}
        }
    }

    fn write_now(&self, lines: &[u8]) -> io::Result<usize> {
        match &self.port {
            Port::Prompt { now, .. } => {
                let mut taken = 0;
                while let Some(rest @ [_, ..]) = lines.get(taken..) {
                    match (&*now).write(rest) {
                        Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                        Ok(n) => taken += n,
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                        Err(e) if is_full(&e) => break,
                        Err(e) => return Err(e),
                    }
                }
                Ok(taken)
            }
            Port::Waiting(file) => (&*file).write_all(lines).map(|()| lines.len()),
            Port::Backlog => Ok(0),
        }
    }

    /// Writes the backlog until there is none, on a thread that may wait.
    fn drain(self: &Arc<Self>, mut file: &std::fs::File) {
        let mut piece = Piece::default();
        loop {
            piece = match self.take(piece) {
                Some(piece) => piece,
                None => return,
            };
            let mut taken = 0;
            while let Some(rest @ [_, ..]) = piece.bytes.get(taken..) {
                match file.write(rest) {
                    Ok(n) if n > 0 => taken += n,
                    Ok(_) => return self.close(&mut self.state(), &io::ErrorKind::WriteZero.into()),
                    // a socket's write gives up after its timeout
                    Err(e) if is_full(&e) || e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return self.close(&mut self.state(), &e),
                }
            }
        }
    }

    /// Counts `done` as written and takes what has come since; `None`, and nobody drains any more, if that is nothing.
    fn take(&self, done: Piece) -> Option<Piece> {
        let mut state = self.state();
        let next = self.exchange(&mut state, done);
        state.draining = next.is_some();
        next
    }

    fn exchange(&self, state: &mut State, mut done: Piece) -> Option<Piece> {
        if state.closed {
            return None;
        }
        if !done.bytes.is_empty() {
            state.bytes -= done.bytes.len();
            self.unwritten.fetch_sub(done.replies, Ordering::AcqRel);
            self.shrunk.notify_waiters();
        }
        if state.backlog.is_empty() {
            return None;
        }
        done.bytes.clear();
        // one burst must not keep its memory for the life of the connection
        done.bytes.shrink_to(NO_NOTIFICATIONS);
        std::mem::swap(&mut done.bytes, &mut state.backlog);
        done.replies = std::mem::take(&mut state.replies);
        Some(done)
    }

    /// For an async writer: counts `done` as written and waits for more; `None` once the sink has closed.
    pub(super) async fn taken(&self, mut done: Piece) -> Option<Piece> {
        loop {
            {
                let mut state = self.state();
                if state.closed {
                    return None;
                }
                if let Some(next) = self.exchange(&mut state, std::mem::take(&mut done)) {
                    return Some(next);
                }
            }
            self.grown.notified().await;
        }
    }

    /// For an async writer: the other side is gone.
    pub(super) fn fail(&self, error: &io::Error) {
        self.close(&mut self.state(), error);
    }

    fn close(&self, state: &mut State, error: &io::Error) {
        tracing::debug!(error = %error, "the client has stopped reading");
        *state = State { closed: true, ..State::default() };
        self.unwritten.store(0, Ordering::Release);
        self.shrunk.notify_waiters();
        self.grown.notify_one();
    }

    /// Replies that nobody has taken yet.
    pub(super) fn unwritten(&self) -> usize {
        self.unwritten.load(Ordering::Acquire)
    }

    #[cfg(feature = "stdio")]
    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Whether the reader has to wait for [`room`](Self::room).
    pub(super) fn is_full(&self) -> bool {
        self.unwritten() > 0 && self.state().bytes > FULL
    }

    /// Waits until there is room for more replies, or nobody to read them.
    pub(super) async fn room(&self) {
        self.until(|state| state.bytes <= FULL / 2).await;
    }

    /// Waits until the client keeps up with what it is sent, or is gone.
    pub(super) async fn quiet(&self) {
        self.until(|state| state.bytes <= NO_NOTIFICATIONS).await;
    }

    /// Waits until everything has been written, or the other side is gone.
    pub(super) async fn flushed(&self) {
        self.until(|state| state.bytes == 0).await;
    }

    /// Waits until the other side is gone.
    pub(super) async fn closed(&self) {
        self.until(|_| false).await;
    }

    /// Ends when some of the backlog is written after this call.
    pub(super) fn shrinks(&self) -> Notified<'_> {
        self.shrunk.notified()
    }

    async fn until(&self, mut enough: impl FnMut(&State) -> bool) {
        loop {
            let mut shrunk = pin!(self.shrunk.notified());
            shrunk.as_mut().enable();
            {
                let state = self.state();
                if state.closed || enough(&state) {
                    return;
                }
            }
            shrunk.await;
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Where the notifications of a connection's calls go.
pub(super) struct Notices(pub(super) Arc<Sink>);

impl Outlet for Notices {
    fn notify(&self, message: Vec<u8>) {
        if self.0.state().bytes > NO_NOTIFICATIONS {
            tracing::debug!("a notification was dropped: the client does not read");
            return;
        }
        self.deliver(message);
    }

    fn deliver(&self, mut message: Vec<u8>) -> bool {
        let state = self.0.state();
        if state.closed || state.bytes > FULL {
            return false;
        }
        drop(state);
        message.push(b'\n');
        self.0.send(&message, 0);
        true
    }
}
