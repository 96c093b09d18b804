//! What a client has sent and no process has got: in its order, and bounded.

use std::collections::VecDeque;

use super::child::QUEUE;

/// The largest total of messages that wait for a process.
const MAX_HELD: usize = 64 << 20;

/// Lines of a client that wait for a process, or for the loop's listing of its tools.
#[derive(Default)]
pub(super) struct Backlog {
    held: VecDeque<Vec<u8>>,
    /// Those before them: a call whose secrets the loop's listing will tell, and what follows it.
    unlisted: VecDeque<Vec<u8>>,
    /// The bytes of both.
    bytes: usize,
}

impl Backlog {
    pub(super) fn push(&mut self, line: Vec<u8>) {
        self.bytes += line.len();
        self.held.push_back(line);
    }

    pub(super) fn has_room(&self) -> bool {
        self.held.len() + self.unlisted.len() < QUEUE && self.bytes < MAX_HELD
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.unlisted.is_empty()
    }

    /// The next line that does not wait for the listing.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let line = self.held.pop_front()?;
        self.bytes -= line.len();
        Some(line)
    }

    /// Every line that does not wait for the listing.
    pub(super) fn take_all(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.next()).collect()
    }

    /// Lets a line wait for the listing.
    pub(super) fn set_aside(&mut self, line: Vec<u8>) {
        self.bytes += line.len();
        self.unlisted.push_back(line);
    }

    /// Whether a line waits for the listing.
    pub(super) fn awaits_listing(&self) -> bool {
        !self.unlisted.is_empty()
    }

    /// Nothing waits for the listing any longer.
    pub(super) fn resume(&mut self) {
        while let Some(line) = self.unlisted.pop_back() {
            self.held.push_front(line);
        }
    }
}
