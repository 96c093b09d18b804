//! What the subscriber of a thread writes.

use std::{
    io,
    sync::{Arc, Mutex},
};

/// What a subscriber prints; clones share it.
#[derive(Clone, Default)]
pub struct PrintedText(Arc<Mutex<String>>);

impl PrintedText {
    /// Everything so far.
    pub fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    /// Forgets it.
    pub fn clear(&self) {
        self.0.lock().unwrap().clear();
    }
}

impl io::Write for PrintedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
