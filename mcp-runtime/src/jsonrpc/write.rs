//! Writes JSON straight into a byte buffer; members in call order, one line. Dispatch and lists are built with it.

use serde::Serialize;

use super::ProtocolError;

/// Appends `text` as a JSON string.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    value(out, text);
}

fn value<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    // A map with keys that are no strings is all that can fail here; the reply stays valid JSON.
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

    /// Writes `"key":` (keys are ours, so they need no escape) and returns where the value goes.
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

    /// The same for a key that a user chose, which may need escapes.
    pub(crate) fn any_key(&mut self, key: &str) -> &mut Vec<u8> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        string(self.out, key);
        self.out.push(b':');
        self.out
    }

    /// A member under a key that a user chose.
    pub(crate) fn any_value<T: Serialize + ?Sized>(&mut self, key: &str, v: &T) -> &mut Self {
        value(self.any_key(key), v);
        self
    }

    pub(crate) fn str(&mut self, key: &str, text: &str) -> &mut Self {
        string(self.key(key), text);
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
        value(self.key(key), v);
        self
    }

    pub(crate) fn object(&mut self, key: &str, fill: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        let mut inner = Object::new(self.key(key));
        fill(&mut inner);
        inner.end();
        self
    }

    /// Members that have been written before, with the commas between them.
    pub(crate) fn members(&mut self, members: &[u8]) {
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
pub(crate) fn array<T>(
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

/// Appends an error reply; `id` is the raw JSON of the request's id, left out where it could not be read.
pub(crate) fn error_reply(out: &mut Vec<u8>, id: Option<&str>, error: &ProtocolError) {
    let mut reply = Object::new(out);
    reply.raw("jsonrpc", "\"2.0\"");
    if let Some(id) = id {
        reply.raw("id", id);
    }
    reply.object("error", |e| error.write(e));
    reply.end();
}

/// A notification as text.
pub(crate) fn notification(method: &str, params: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    let mut message = Object::new(&mut out);
    message.raw("jsonrpc", "\"2.0\"").str("method", method).object("params", params);
    message.end();
    out
}

/// A request as text; `id` and `params` are raw JSON.
pub(crate) fn request(id: &str, method: &str, params: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(params.len() + 128);
    let mut message = Object::new(&mut out);
    message.raw("jsonrpc", "\"2.0\"").raw("id", id).str("method", method);
    message.key("params").extend_from_slice(params);
    message.end();
    out
}

/// JSON that passes through as it was written may have line ends between its tokens; where a line end ends a message it
/// must not. Within a string they are escaped, so that nothing is lost.
pub(crate) fn one_line(message: &mut [u8]) {
    let mut from = 0;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', message.get(from..).unwrap_or_default()) {
        from += at;
        if let Some(byte) = message.get_mut(from) {
            *byte = b' ';
        }
        from += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line() {
        let mut message = b"{\n  \"a\":\r\n 1,\"b\":\"x\\ny\"\r}".to_vec();
        one_line(&mut message);
        assert_eq!(message, b"{   \"a\":   1,\"b\":\"x\\ny\" }");
        let mut empty = Vec::new();
        one_line(&mut empty);
        assert!(empty.is_empty());
    }
}
