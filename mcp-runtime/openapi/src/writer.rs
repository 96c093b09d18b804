//! A part of a request while it is written: percent-encoded as it is asked for, and never larger than a limit, which is
//! checked before memory is taken for what is added.

use std::io;

use mcp_runtime::ToolError;
use percent_encoding::{AsciiSet, percent_encode};
use serde_json::Value;

/// The characters that are percent-encoded; `None` for none.
pub(crate) type Encoded = Option<&'static AsciiSet>;

/// The bytes of a part, and how many it may have.
#[derive(Debug)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    /// What the part is, as messages say it.
    what: &'static str,
    limit: usize,
}

impl Writer {
    pub(crate) fn new(what: &'static str, limit: usize) -> Self {
        Self { bytes: Vec::new(), what, limit }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// What was written.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// What was written, if no part of a character was.
    pub(crate) fn into_text(self) -> Result<String, ToolError> {
        String::from_utf8(self.bytes).map_err(ToolError::private)
    }

    /// # Errors
    /// The part has no room for so many more bytes.
    pub(crate) fn reserve(&self, more: usize) -> Result<(), ToolError> {
        if more <= self.limit.saturating_sub(self.bytes.len()) { Ok(()) } else { Err(self.too_large()) }
    }

    fn too_large(&self) -> ToolError {
        let Self { what, limit, .. } = self;
        ToolError::new(format!("the {what} of the request would have more than {limit} bytes: send less"))
    }

    /// # Errors
    /// As those of the other methods: the part would be too large.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), ToolError> {
        self.reserve(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn text(&mut self, text: &str, encoded: Encoded) -> Result<(), ToolError> {
        match encoded {
            None => self.push(text.as_bytes()),
            Some(set) => {
                percent_encode(text.as_bytes(), set).try_for_each(|chunk| self.push(chunk.as_bytes()))
            }
        }
    }

    /// A text as it is, nothing of `null`, and JSON of the others.
    pub(crate) fn value(&mut self, value: &Value, encoded: Encoded) -> Result<(), ToolError> {
        match value {
            Value::String(text) => self.text(text, encoded),
            Value::Null => Ok(()),
            value => self.json(value, encoded),
        }
    }

    pub(crate) fn json<T: serde::Serialize + ?Sized>(
        &mut self,
        value: &T,
        encoded: Encoded,
    ) -> Result<(), ToolError> {
        serde_json::to_writer(Json { writer: self, encoded }, value).map_err(|_| self.too_large())
    }
}

/// Takes the pieces of a text of JSON.
struct Json<'a> {
    writer: &'a mut Writer,
    encoded: Encoded,
}

impl io::Write for Json<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match self.encoded {
            None => self.writer.push(bytes),
            Some(set) => percent_encode(bytes, set).try_for_each(|chunk| self.writer.push(chunk.as_bytes())),
        };
        written.map(|()| bytes.len()).map_err(|_| io::ErrorKind::FileTooLarge.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
