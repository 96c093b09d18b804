//! The one writer of a connection: whole lines, in the order they were handed over, without ever blocking those who
//! hand them over. What the other side does not take yet is kept as a backlog, with a bound on what may be added.

use std::{
    fs::File,
    io::{self, Write},
    pin::pin,
    sync::{
        Arc, Condvar,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::{Notify, futures::Notified};

use crate::{
    jsonrpc::replace_line_breaks,
    sync::{Mutex, wait},
};

/// Bytes of backlog beyond which the reader waits.
const FULL: usize = 8 << 20;
/// Bytes of backlog beyond which notifications are dropped.
const NO_NOTIFICATIONS: usize = 1 << 20;

/// How bytes get out.
#[derive(Debug)]
pub(crate) enum Port {
    /// `now` takes what there is room for, and says `WouldBlock` otherwise; the rest waits on the writer's own thread.
    #[cfg_attr(not(feature = "stdio"), allow(dead_code))]
    Nonblocking { now: File, blocking: Arc<File> },
    /// Every write may block, so all of them are made on the writer's own thread.
    #[cfg_attr(not(feature = "stdio"), allow(dead_code))]
    Blocking(Arc<File>),
    /// An async task takes the backlog with [`Writer::taken`].
    Async,
}

#[derive(Debug)]
pub(crate) struct Writer {
    port: Port,
    state: Mutex<WriterState>,
    /// Replies in the backlog.
    unwritten: AtomicUsize,
    /// The backlog has grown, for the async task.
    grown: Notify,
    /// The same for the writer's own thread.
    more: Condvar,
    /// The backlog has shrunk, or the writer has closed.
    shrunk: Notify,
}

#[derive(Debug, Default)]
struct WriterState {
    backlog: Vec<u8>,
    /// Bytes of the backlog, and those that are being written.
    bytes: usize,
    replies: usize,
    /// The thread or task is writing: everything else goes behind what it writes.
    writing: bool,
    /// The writer's own thread runs.
    thread: bool,
    closed: bool,
}

/// A part of the backlog, to be written.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
    replies: usize,
}

/// Messages on their way to the writer: whole lines, and how many of them are replies.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) bytes: Vec<u8>,
    pub(crate) replies: usize,
}

impl Lines {
    /// Where the next message goes; [`end_line`](Self::end_line) with the length before it ends it.
    pub(crate) fn end_line(&mut self, start: usize) {
        replace_line_breaks(self.bytes.get_mut(start..).unwrap_or_default());
        self.bytes.push(b'\n');
        self.replies += 1;
    }

    /// Hands everything to the writer.
    pub(crate) fn flush(&mut self, writer: &Arc<Writer>) {
        writer.send(&self.bytes, self.replies);
        self.bytes.clear();
        self.replies = 0;
    }
}

impl Writer {
    pub(crate) fn new(port: Port) -> Arc<Self> {
        let state = WriterState { writing: matches!(port, Port::Async), ..WriterState::default() };
        Arc::new(Self {
            port,
            state: Mutex::new(state),
            unwritten: AtomicUsize::new(0),
            grown: Notify::new(),
            more: Condvar::new(),
            shrunk: Notify::new(),
        })
    }

    /// Hands over one message.
    pub(crate) fn send_line(self: &Arc<Self>, mut message: Vec<u8>, replies: usize) {
        replace_line_breaks(&mut message);
        message.push(b'\n');
        self.send(&message, replies);
    }

    /// Hands over whole lines that hold so many replies.
    fn send(self: &Arc<Self>, lines: &[u8], replies: usize) {
        let mut state = self.state.lock();
        if state.closed || lines.is_empty() {
            return;
        }
        let taken = if state.writing { Ok(0) } else { self.write_now(lines) };
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
            Port::Async => self.grown.notify_one(),
            Port::Nonblocking { blocking: file, .. } | Port::Blocking(file) => {
                state.writing = true;
                self.more.notify_one();
                if !state.thread {
                    state.thread = true;
                    let (writer, file) = (Arc::clone(self), Arc::clone(file));
                    let thread = std::thread::Builder::new().name("mcp-stdout".into());
                    if let Err(error) = thread.spawn(move || writer.drain(&file)) {
                        self.close(&mut state, &error);
                    }
                }
            }
        }
    }

    fn write_now(&self, lines: &[u8]) -> io::Result<usize> {
        let Port::Nonblocking { now, .. } = &self.port else { return Ok(0) };
        let mut taken = 0;
        while let Some(rest @ [_, ..]) = lines.get(taken..) {
            match (&*now).write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => taken += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        Ok(taken)
    }

    /// Writes the backlog whenever there is some, on a thread of its own.
    fn drain(self: &Arc<Self>, mut file: &File) {
        let mut piece = Piece::default();
        loop {
            piece = match self.next_piece(piece) {
                Some(piece) => piece,
                None => return,
            };
            if let Err(error) = file.write_all(&piece.bytes).and_then(|()| file.flush()) {
                return self.close(&mut self.state.lock(), &error);
            }
        }
    }

    /// Counts `done` as written and waits for more; `None` once the writer has closed.
    fn next_piece(&self, mut done: Piece) -> Option<Piece> {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(next) = self.exchange(&mut state, std::mem::take(&mut done)) {
                state.writing = true;
                return Some(next);
            }
            state.writing = false;
            state = wait(&self.more, state);
        }
    }

    fn exchange(&self, state: &mut WriterState, mut done: Piece) -> Option<Piece> {
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

    /// For an async writer: counts `done` as written and waits for more; `None` once the writer has closed.
    pub(crate) async fn taken(&self, mut done: Piece) -> Option<Piece> {
        loop {
            {
                let mut state = self.state.lock();
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
    pub(crate) fn fail(&self, error: &io::Error) {
        self.close(&mut self.state.lock(), error);
    }

    fn close(&self, state: &mut WriterState, error: &io::Error) {
        tracing::debug!(error = %error, "the client has stopped reading");
        *state = WriterState { closed: true, ..WriterState::default() };
        self.more.notify_all();
        self.unwritten.store(0, Ordering::Release);
        self.shrunk.notify_waiters();
        self.grown.notify_one();
    }

    /// Replies that have not been written yet.
    pub(crate) fn unwritten(&self) -> usize {
        self.unwritten.load(Ordering::Acquire)
    }

    #[cfg(feature = "stdio")]
    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Whether the reader has to wait for [`room`](Self::room).
    pub(crate) fn is_full(&self) -> bool {
        self.unwritten() > 0 && self.state.lock().bytes > FULL
    }

    /// Waits until there is room for more replies, or the other side is gone.
    pub(crate) async fn room(&self) {
        self.until(|state| state.bytes <= FULL / 2).await;
    }

    /// Waits until the client keeps up with what it is sent, or is gone.
    pub(crate) async fn quiet(&self) {
        self.until(|state| state.bytes <= NO_NOTIFICATIONS).await;
    }

    /// Waits until everything has been written, or the other side is gone.
    pub(crate) async fn flushed(&self) {
        self.until(|state| state.bytes == 0).await;
    }

    /// Waits until the other side is gone.
    pub(crate) async fn closed(&self) {
        self.until(|_| false).await;
    }

    /// Ends when some of the backlog is written after this call.
    pub(crate) fn shrinks(&self) -> Notified<'_> {
        self.shrunk.notified()
    }

    async fn until(&self, mut enough: impl FnMut(&WriterState) -> bool) {
        loop {
            let mut shrunk = pin!(self.shrunk.notified());
            shrunk.as_mut().enable();
            {
                let state = self.state.lock();
                if state.closed || enough(&state) {
                    return;
                }
            }
            shrunk.await;
        }
    }

    /// Sends a notification, if the client keeps up.
    pub(crate) fn notify(self: &Arc<Self>, message: Vec<u8>) {
        if self.state.lock().bytes > NO_NOTIFICATIONS {
            tracing::debug!("a notification was dropped: the client does not read");
            return;
        }
        self.send_line(message, 0);
    }

    /// Sends a message that must not be lost.
    ///
    /// # Errors
    /// Why the client does not get it.
    pub(crate) fn deliver(self: &Arc<Self>, message: Vec<u8>) -> Result<(), &'static str> {
        let state = self.state.lock();
        if state.closed || state.bytes > FULL {
            return Err("it does not read what is sent to it");
        }
        drop(state);
        self.send_line(message, 0);
        Ok(())
    }
}
