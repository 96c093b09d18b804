//! Lines of a byte stream: cut in place out of what has been read, however it arrives, with a limit on their length.

use std::ops::Range;

/// Bytes of one read, and the initial size of the buffer.
const READ_SIZE: usize = 64 << 10;
/// A buffer that a long line has grown beyond this size is freed once it is empty.
const MAX_KEPT: usize = 1 << 20;

/// One line, without its line ending.
#[derive(PartialEq, Eq)]
pub(crate) enum Line {
    /// Its range in the buffer.
    Text(Range<usize>),
    /// The line exceeds the limit; the rest of it is discarded.
    TooLong,
}

/// A buffer that bytes are read into and lines are taken from, in place and with a limit on the length of a line.
pub(crate) struct LineBuffer {
    pub(super) bytes: Vec<u8>,
    /// `start..end` has been read and not yet returned; it contains no line ending before `scanned`.
    start: usize,
    scanned: usize,
    end: usize,
    limit: usize,
    /// The bytes up to the next line ending belong to a line that exceeds the limit.
    skipping: bool,
}

impl LineBuffer {
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: vec![0; READ_SIZE], start: 0, scanned: 0, end: 0, limit, skipping: false }
    }

    /// Space for the next bytes, never empty; [`advance`](Self::advance) makes those that were read part of the buffer.
    pub(crate) fn spare_capacity(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.scanned, self.end) = (0, 0, 0);
            if self.bytes.len() > MAX_KEPT {
                self.bytes = vec![0; READ_SIZE];
            }
        } else if self.bytes.len() - self.end < READ_SIZE / 4 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.scanned, self.end) = (self.scanned - self.start, self.end - self.start);
            self.start = 0;
            if self.end > self.bytes.len() / 2 {
                let larger = (self.bytes.len() * 2)
                    .min(self.limit.saturating_add(READ_SIZE))
                    .max(self.end + READ_SIZE / 2);
                self.bytes.resize(larger, 0);
            }
        }
        self.bytes.get_mut(self.end..).unwrap_or_default()
    }

    /// The text of a line.
    #[cfg(feature = "client")]
    pub(crate) fn text(&self, line: Range<usize>) -> &[u8] {
        self.bytes.get(line).unwrap_or_default()
    }

    /// Appends the first `bytes` bytes of the spare capacity.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.bytes.len());
    }

    /// The next complete line that has been read.
    pub(crate) fn next_line(&mut self) -> Option<Line> {
        loop {
            let Some(offset) = memchr::memchr(b'\n', self.bytes.get(self.scanned..self.end)?) else {
                self.scanned = self.end;
                if self.skipping {
                    self.start = self.end;
                } else if self.end - self.start > self.limit {
                    self.start = self.end;
                    self.skipping = true;
                    return Some(Line::TooLong);
                }
                return None;
            };
            let (start, end) = (self.start, self.scanned + offset);
            self.start = end + 1;
            self.scanned = self.start;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if end - start > self.limit {
                return Some(Line::TooLong);
            }
            return Some(Line::Text(start..end));
        }
    }

    /// The text after the last line ending, once the stream has ended.
    pub(crate) fn last_line(&mut self) -> Option<Line> {
        let start = std::mem::replace(&mut self.start, self.end);
        if self.skipping || start == self.end { None } else { Some(Line::Text(start..self.end)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits `input`, read in pieces of `step` bytes; a line over the limit is returned as `!`.
    fn split(input: &[u8], step: usize, limit: usize) -> Vec<String> {
        let mut lines = LineBuffer::new(limit);
        let mut out = Vec::new();
        let mut push = |lines: &LineBuffer, line: Line| match line {
            Line::Text(range) => out.push(String::from_utf8_lossy(&lines.bytes[range]).into_owned()),
            Line::TooLong => out.push("!".into()),
        };
        for mut piece in input.chunks(step) {
            while !piece.is_empty() {
                let space = lines.spare_capacity();
                let (read, rest) = piece.split_at(piece.len().min(space.len()));
                space[..read.len()].copy_from_slice(read);
                lines.advance(read.len());
                piece = rest;
                while let Some(line) = lines.next_line() {
                    push(&lines, line);
                }
            }
        }
        if let Some(line) = lines.last_line() {
            push(&lines, line);
        }
        out
    }

    #[test]
    fn lines_are_complete_however_their_bytes_arrive() {
        for step in [1, 2, 3, 7, 100] {
            assert_eq!(split(b"one\n\ntwo\r\nlast", step, 100), ["one", "", "two\r", "last"]);
        }
    }

    #[test]
    fn a_line_over_the_limit_is_reported_once_and_the_next_line_is_read() {
        for step in [1, 5, 64] {
            assert_eq!(
                split(b"0123456789abcdef\nok\n0123456789a\n0123456789\n", step, 10),
                ["!", "ok", "!", "0123456789"]
            );
        }
    }

    #[test]
    fn a_line_over_the_limit_is_not_buffered() {
        let mut lines = LineBuffer::new(1000);
        for _ in 0..1000 {
            let space = lines.spare_capacity();
            space.fill(b'x');
            let n = space.len();
            lines.advance(n);
            while lines.next_line().is_some() {}
            assert!(lines.bytes.len() <= 2 * READ_SIZE, "{}", lines.bytes.len());
        }
    }

    #[test]
    fn a_long_line_within_the_limit_is_read() {
        let long = "y".repeat(3 << 20);
        let input = format!("{long}\nz\n");
        assert_eq!(split(input.as_bytes(), 30_000, 4 << 20), [long.as_str(), "z"]);
    }
}
