//! Writes JSON straight into a byte buffer, with members in the order of the calls and without line breaks.

use serde::Serialize;

/// Appends `text` as a JSON string.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    write_value(out, text);
}

fn write_value<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    // only a map whose keys are not strings fails here; the message stays valid JSON
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

/// A JSON object under construction; [`end`](Self::end) writes its closing brace.
#[must_use]
pub(crate) struct Object<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> Object<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// Writes `"key":` and returns the buffer for the value; `key` must not need escapes.
    pub(crate) fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Writes a key that a user chose, which may need escapes, and returns the buffer for the value.
    pub(crate) fn escaped_key(&mut self, key: &str) -> &mut Vec<u8> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        write_string(self.out, key);
        self.out.push(b':');
        self.out
    }

    /// Writes a member whose key a user chose.
    pub(crate) fn escaped_value<T: Serialize + ?Sized>(&mut self, key: &str, v: &T) -> &mut Self {
        write_value(self.escaped_key(key), v);
        self
    }

    pub(crate) fn str(&mut self, key: &str, text: &str) -> &mut Self {
        write_string(self.key(key), text);
        self
    }

    pub(crate) fn opt_str(&mut self, key: &str, text: Option<&str>) -> &mut Self {
        if let Some(text) = text {
            self.str(key, text);
        }
        self
    }

    pub(crate) fn raw(&mut self, key: &str, json: &str) -> &mut Self {
        self.key(key).extend_from_slice(json.as_bytes());
        self
    }

    pub(crate) fn value<T: Serialize + ?Sized>(&mut self, key: &str, v: &T) -> &mut Self {
        write_value(self.key(key), v);
        self
    }

    pub(crate) fn object(&mut self, key: &str, fill: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        let mut inner = Object::new(self.key(key));
        fill(&mut inner);
        inner.end();
        self
    }

    /// Writes members that are JSON already, with the commas between them.
    pub(crate) fn raw_members(&mut self, members: &[u8]) {
        if members.is_empty() {
            return;
        }
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        self.out.extend_from_slice(members);
    }

    pub(crate) fn end(self) {
        self.out.push(b'}');
    }
}

/// Appends `[a,b,…]`, each item written by `write`.
pub(crate) fn write_array<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (n, item) in items.into_iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// The JSON of a notification.
pub(crate) fn notification(method: &str, params: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    let mut message = Object::new(&mut out);
    message.raw("jsonrpc", "\"2.0\"").str("method", method).object("params", params);
    message.end();
    out
}

/// The JSON of a request; `id` and `params` are raw JSON.
pub(crate) fn request(id: &str, method: &str, params: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(params.len() + 128);
    let mut message = Object::new(&mut out);
    message.raw("jsonrpc", "\"2.0\"").raw("id", id).str("method", method);
    message.key("params").extend_from_slice(params);
    message.end();
    out
}

/// Replaces line breaks by spaces, for framings in which a line break ends a message.
///
/// Raw JSON that is passed through may have line breaks between its tokens. Within strings they are escaped, so the
/// message means the same.
pub(crate) fn replace_line_breaks(message: &mut [u8]) {
    let mut start = 0;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', message.get(start..).unwrap_or_default()) {
        start += at;
        if let Some(byte) = message.get_mut(start) {
            *byte = b' ';
        }
        start += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_between_tokens_become_spaces() {
        let mut message = b"{\n  \"a\":\r\n 1,\"b\":\"x\\ny\"\r}".to_vec();
        replace_line_breaks(&mut message);
        assert_eq!(message, b"{   \"a\":   1,\"b\":\"x\\ny\" }");
        let mut empty = Vec::new();
        replace_line_breaks(&mut empty);
        assert!(empty.is_empty());
    }
}
