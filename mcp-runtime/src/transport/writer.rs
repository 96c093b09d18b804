//! The writer of a connection: writes whole lines in the order in which they were sent, and never blocks the sender.
//! Bytes that the client has not read yet are kept in a bounded backlog.

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

use crate::core::admission::Permit;
use crate::core::jsonrpc::replace_line_breaks;
use crate::core::sync::{Mutex, MutexGuard, wait};

/// Bytes of backlog above which the connection stops reading requests.
const MAX_BACKLOG: usize = 8 << 20;
/// Bytes of backlog above which notifications are dropped, and unwritten replies count as calls in flight: a request that waits
/// costs more than its short reply.
const NOTIFICATION_BACKLOG: usize = 1 << 20;

/// Bytes of backlog that are not charged, on a connection that shares a budget of unread bytes.
const MAX_UNCHARGED: usize = 64 << 10;

/// Bytes of replies after which they are flushed even if more requests have been read already.
pub(super) const FLUSH_SIZE: usize = 64 << 10;

/// How bytes are written.
pub(crate) enum WriteMode {
    /// `nonblocking` takes what fits and returns `WouldBlock` otherwise; a thread writes the rest to `blocking`.
    #[cfg_attr(not(all(feature = "stdio", unix)), allow(dead_code))]
    Nonblocking { nonblocking: File, blocking: Arc<File> },
    /// Every write may block, so a thread makes all of them.
    Blocking(Arc<File>),
    /// An async task takes the backlog with [`ConnectionWriter::next_chunk`].
    Async,
}

pub(crate) struct ConnectionWriter {
    mode: WriteMode,
    state: Mutex<WriterState>,
    /// Replies in the backlog.
    unwritten: AtomicUsize,
    /// Notified when the backlog grows, for the async task.
    grown: Notify,
    /// Notified when the backlog grows, for the thread.
    more: Condvar,
    /// Notified when the backlog shrinks or the writer closes.
    shrunk: Notify,
}

#[derive(Default)]
struct WriterState {
    /// Of a connection that shares a budget of unread bytes: for the backlog.
    permit: Option<Permit>,
    backlog: Vec<u8>,
    /// Bytes of the backlog and of the chunk that is being written.
    bytes: usize,
    replies: usize,
    /// The thread or task is writing, so new lines go to the backlog.
    writing: bool,
    /// The thread has been started.
    thread: bool,
    closed: bool,
}

/// The backlog, taken out to be written.
#[derive(Default)]
pub(crate) struct BacklogChunk {
    pub(crate) bytes: Vec<u8>,
    replies: usize,
    /// For its bytes, as for the backlog.
    pub(crate) permit: Option<Permit>,
}

/// Batch for the writer: whole lines, and how many of them are replies.
#[derive(Default)]
pub(crate) struct OutputBuffer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) replies: usize,
}

impl OutputBuffer {
    /// Ends the line of the message that was appended at `start`, a reply.
    pub(crate) fn end_line(&mut self, start: usize) {
        replace_line_breaks(self.bytes.get_mut(start..).unwrap_or_default());
        self.bytes.push(b'\n');
        self.replies += 1;
    }

    /// Sends everything to the writer.
    pub(crate) fn flush(&mut self, writer: &Arc<ConnectionWriter>) {
        writer.send(&self.bytes, self.replies);
        self.bytes.clear();
        self.replies = 0;
    }
}

impl ConnectionWriter {
    pub(crate) fn new(mode: WriteMode) -> Arc<Self> {
        let state = WriterState { writing: matches!(mode, WriteMode::Async), ..WriterState::default() };
        Arc::new(Self {
            mode,
            state: Mutex::new(state),
            unwritten: AtomicUsize::new(0),
            grown: Notify::new(),
            more: Condvar::new(),
            shrunk: Notify::new(),
        })
    }

    /// A writer for an async task whose backlog is charged to the owner of this permit; beyond its share the writer closes.
    pub(crate) fn charging(permit: Permit) -> Arc<Self> {
        let writer = Self::new(WriteMode::Async);
        writer.state().permit = Some(permit);
        writer
    }

    fn state(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock()
    }

    /// Sends one message.
    pub(crate) fn send_line(self: &Arc<Self>, mut message: Vec<u8>, replies: usize) {
        replace_line_breaks(&mut message);
        message.push(b'\n');
        self.send(&message, replies);
    }

    /// Sends whole lines that hold this number of replies.
    fn send(self: &Arc<Self>, lines: &[u8], replies: usize) {
        let mut state = self.state();
        if state.closed || lines.is_empty() {
            return;
        }
        let written = if state.writing { Ok(0) } else { self.try_write(lines) };
        let rest = match written {
            Ok(written) => lines.get(written..).unwrap_or_default(),
            Err(error) => return self.mark_closed(&mut state, &error),
        };
        if rest.is_empty() {
            return;
        }
        #[cfg(feature = "http")]
        if state.bytes + rest.len() > MAX_UNCHARGED
            && let Some(permit) = &mut state.permit
            && !permit.grow_last(rest.len())
        {
            return self.mark_closed(&mut state, &io::ErrorKind::OutOfMemory.into());
        }
        state.backlog.extend_from_slice(rest);
        state.bytes += rest.len();
        state.replies += replies;
        self.unwritten.fetch_add(replies, Ordering::AcqRel);
        match &self.mode {
            WriteMode::Async => self.grown.notify_one(),
            WriteMode::Nonblocking { blocking: file, .. } | WriteMode::Blocking(file) => {
                state.writing = true;
                self.more.notify_one();
                if !state.thread {
                    state.thread = true;
                    let (writer, file) = (Arc::clone(self), Arc::clone(file));
                    let thread = std::thread::Builder::new().name("mcp-stdout".into());
                    if let Err(error) = thread.spawn(move || writer.write_backlog(&file)) {
                        self.mark_closed(&mut state, &error);
                    }
                }
            }
        }
    }

    /// Writes as much as is possible without blocking; the number of bytes written.
    fn try_write(&self, lines: &[u8]) -> io::Result<usize> {
        let WriteMode::Nonblocking { nonblocking, .. } = &self.mode else { return Ok(0) };
        let mut written = 0;
        while let Some(rest @ [_, ..]) = lines.get(written..) {
            match (&*nonblocking).write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => written += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        Ok(written)
    }

    /// Writes the backlog until the writer closes, on the writer's thread.
    fn write_backlog(self: &Arc<Self>, mut file: &File) {
        let mut chunk = BacklogChunk::default();
        loop {
            chunk = match self.next_chunk_blocking(chunk) {
                Some(chunk) => chunk,
                None => return,
            };
            if let Err(error) = file.write_all(&chunk.bytes).and_then(|()| file.flush()) {
                return self.mark_closed(&mut self.state(), &error);
            }
        }
    }

    /// Counts `done` as written and blocks until the next chunk; `None` once the writer has closed.
    fn next_chunk_blocking(&self, mut done: BacklogChunk) -> Option<BacklogChunk> {
        let mut state = self.state();
        loop {
            if state.closed {
                return None;
            }
            if let Some(next) = self.take_chunk(&mut state, std::mem::take(&mut done)) {
                state.writing = true;
                return Some(next);
            }
            state.writing = false;
            state = wait(&self.more, state);
        }
    }

    /// Counts `done` as written and takes the backlog; `None` if it is empty.
    fn take_chunk(&self, state: &mut WriterState, mut done: BacklogChunk) -> Option<BacklogChunk> {
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
        // one burst must not hold its memory for the lifetime of the connection
        done.bytes.shrink_to(NOTIFICATION_BACKLOG);
        std::mem::swap(&mut done.bytes, &mut state.backlog);
        done.replies = std::mem::take(&mut state.replies);
        #[cfg(feature = "http")]
        {
            let len = done.bytes.len();
            done.permit = state.permit.as_mut().map(|permit| permit.split(len));
        }
        Some(done)
    }

    /// For the async task: counts `done` as written and waits for the next chunk; `None` once the writer has closed.
    pub(crate) async fn next_chunk(&self, mut done: BacklogChunk) -> Option<BacklogChunk> {
        loop {
            {
                let mut state = self.state();
                if state.closed {
                    return None;
                }
                if let Some(next) = self.take_chunk(&mut state, std::mem::take(&mut done)) {
                    return Some(next);
                }
            }
            self.grown.notified().await;
        }
    }

    /// For the async task: closes the writer after a failed write.
    pub(crate) fn close(&self, error: &io::Error) {
        self.mark_closed(&mut self.state(), error);
    }

    fn mark_closed(&self, state: &mut WriterState, error: &io::Error) {
        tracing::debug!(error = %error, "the client has stopped reading");
        *state = WriterState { closed: true, ..WriterState::default() };
        self.more.notify_all();
        self.unwritten.store(0, Ordering::Release);
        self.shrunk.notify_waiters();
        self.grown.notify_one();
    }

    /// The number of unwritten replies that count as calls in flight: none of a client that keeps up.
    pub(crate) fn unread_replies(&self) -> usize {
        let unwritten = self.unwritten.load(Ordering::Acquire);
        if unwritten == 0 || self.state().bytes <= NOTIFICATION_BACKLOG { 0 } else { unwritten }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Whether the reader has to [wait for capacity](Self::wait_for_capacity).
    pub(crate) fn is_full(&self) -> bool {
        self.unwritten.load(Ordering::Acquire) > 0 && self.state().bytes > MAX_BACKLOG
    }

    /// Waits until more replies may be sent, or the client has disconnected.
    pub(crate) async fn wait_for_capacity(&self) {
        self.wait_until(|state| state.bytes <= MAX_BACKLOG / 2).await;
    }

    /// Waits until the client keeps up with the messages sent to it, or has disconnected.
    pub(crate) async fn wait_until_caught_up(&self) {
        self.wait_until(|state| state.bytes <= NOTIFICATION_BACKLOG).await;
    }

    /// Waits until everything has been written, or the client has disconnected.
    pub(crate) async fn wait_until_flushed(&self) {
        self.wait_until(|state| state.bytes == 0).await;
    }

    /// Waits until the client has disconnected.
    pub(crate) async fn wait_until_closed(&self) {
        self.wait_until(|_| false).await;
    }

    /// Completes when some of the backlog is written after this call.
    pub(crate) fn backlog_shrunk(&self) -> Notified<'_> {
        self.shrunk.notified()
    }

    async fn wait_until(&self, mut condition: impl FnMut(&WriterState) -> bool) {
        loop {
            let mut shrunk = pin!(self.shrunk.notified());
            shrunk.as_mut().enable();
            {
                let state = self.state();
                if state.closed || condition(&state) {
                    return;
                }
            }
            shrunk.await;
        }
    }

    /// Sends a notification, or drops it if the client does not keep up.
    pub(crate) fn notify(self: &Arc<Self>, message: Vec<u8>) {
        if self.state().bytes > NOTIFICATION_BACKLOG {
            tracing::debug!("a notification was dropped: the client does not read");
            return;
        }
        self.send_line(message, 0);
    }

    /// Sends a message that must not be lost.
    ///
    /// # Errors
    /// The reason why the client cannot receive it.
    pub(crate) fn deliver(self: &Arc<Self>, message: Vec<u8>) -> Result<(), &'static str> {
        let state = self.state();
        if state.closed || state.bytes > MAX_BACKLOG {
            return Err("it does not read what is sent to it");
        }
        drop(state);
        self.send_line(message, 0);
        Ok(())
    }
}
