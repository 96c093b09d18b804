//! Cuts a stream of bytes into lines, in place and with a bound. The stdio reader and `Server::serve` read with it.

/// What one read asks for, and the buffer's usual size.
const CHUNK: usize = 64 << 10;
/// A buffer that one long line has made larger than this is given back once it is empty.
const KEEP: usize = 1 << 20;

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Text(&'a [u8]),
    /// A line over the limit has begun; what follows of it is dropped unseen.
    TooLong,
}

#[derive(Debug)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// `start..end` has been read and not yet handed out; there is no line end before `seen`.
    start: usize,
    seen: usize,
    end: usize,
    limit: usize,
    skipping: bool,
}

impl Lines {
    pub(super) fn new(limit: usize) -> Self {
        Self { buffer: vec![0; CHUNK], start: 0, seen: 0, end: 0, limit, skipping: false }
    }

    /// Where the next bytes go; never empty. Tell [`filled`](Self::filled) how many came.
    pub(super) fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.seen, self.end) = (0, 0, 0);
            if self.buffer.len() > KEEP {
                self.buffer = vec![0; CHUNK];
            }
        } else if self.buffer.len() - self.end < CHUNK / 4 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.seen, self.end) = (self.seen - self.start, self.end - self.start);
            self.start = 0;
            if self.end > self.buffer.len() / 2 {
                let larger =
                    (self.buffer.len() * 2).min(self.limit.saturating_add(CHUNK)).max(self.end + CHUNK / 2);
                self.buffer.resize(larger, 0);
            }
        }
        self.buffer.get_mut(self.end..).unwrap_or_default()
    }

    pub(super) fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.buffer.len());
    }

    /// The next whole line that has been read.
    pub(super) fn next(&mut self) -> Option<Line<'_>> {
        loop {
            let Some(at) = memchr::memchr(b'\n', self.buffer.get(self.seen..self.end)?) else {
                self.seen = self.end;
                if self.skipping {
                    self.start = self.end;
                } else if self.end - self.start > self.limit {
                    self.start = self.end;
                    self.skipping = true;
                    return Some(Line::TooLong);
                }
                return None;
            };
            let (start, stop) = (self.start, self.seen + at);
            self.start = stop + 1;
            self.seen = self.start;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if stop - start > self.limit {
                return Some(Line::TooLong);
            }
            return self.buffer.get(start..stop).map(Line::Text);
        }
    }

    /// What stands after the last line end, once the stream has ended.
    pub(super) fn rest(&mut self) -> Option<Line<'_>> {
        let start = std::mem::replace(&mut self.start, self.end);
        if self.skipping || start == self.end {
            None
        } else {
            self.buffer.get(start..self.end).map(Line::Text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `input` in pieces of `step` bytes; over-long lines come out as `!`.
    fn cut(input: &[u8], step: usize, limit: usize) -> Vec<String> {
        let mut lines = Lines::new(limit);
        let mut out = Vec::new();
        let mut keep = |line: Line<'_>| match line {
            Line::Text(text) => out.push(String::from_utf8_lossy(text).into_owned()),
            Line::TooLong => out.push("!".into()),
        };
        for mut piece in input.chunks(step) {
            while !piece.is_empty() {
                let space = lines.space();
                let (now, later) = piece.split_at(piece.len().min(space.len()));
                space[..now.len()].copy_from_slice(now);
                lines.filled(now.len());
                piece = later;
                while let Some(line) = lines.next() {
                    keep(line);
                }
            }
        }
        if let Some(line) = lines.rest() {
            keep(line);
        }
        out
    }

    #[test]
    fn lines_come_out_whole_however_they_arrive() {
        for step in [1, 2, 3, 7, 100] {
            assert_eq!(cut(b"one\n\ntwo\r\nlast", step, 100), ["one", "", "two\r", "last"]);
        }
    }

    #[test]
    fn one_message_for_a_line_over_the_limit_and_the_next_line_is_read() {
        for step in [1, 5, 64] {
            assert_eq!(
                cut(b"0123456789abcdef\nok\n0123456789a\n0123456789\n", step, 10),
                ["!", "ok", "!", "0123456789"]
            );
        }
    }

    #[test]
    fn an_over_long_line_is_not_kept() {
        let mut lines = Lines::new(1000);
        for _ in 0..1000 {
            let space = lines.space();
            space.fill(b'x');
            let n = space.len();
            lines.filled(n);
            while lines.next().is_some() {}
            assert!(lines.buffer.len() <= 2 * CHUNK, "{}", lines.buffer.len());
        }
    }

    #[test]
    fn a_long_line_within_the_limit_is_read() {
        let long = "y".repeat(3 << 20);
        let input = format!("{long}\nz\n");
        assert_eq!(cut(input.as_bytes(), 30_000, 4 << 20), [long.as_str(), "z"]);
    }
}
