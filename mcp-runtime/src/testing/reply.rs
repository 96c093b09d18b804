//! A reply in a test: typed accessors, and assertions whose failures print the whole reply.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    client::exchange::MemoryReply,
    core::{jsonrpc::ProtocolError, protocol},
};

/// The reply to one request, and the notifications that came before it.
///
/// Its `Display` is the whole reply as indented JSON. Failed expectations print it, and the causes of a private failure,
/// which clients do not get.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a reply that is not checked tests nothing"]
pub struct Reply {
    pub(super) reply: MemoryReply,
    /// The cause of a private failure, which the client does not get.
    pub(super) causes: Vec<String>,
}

impl From<MemoryReply> for Reply {
    fn from(reply: MemoryReply) -> Self {
        Self { reply, causes: Vec::new() }
    }
}

impl Reply {
    /// `result` on the wire; null for an error.
    #[must_use]
    pub fn value(&self) -> &Value {
        self.reply.result()
    }

    /// The JSON-RPC error, if the reply is one.
    #[must_use]
    pub fn error(&self) -> Option<ProtocolError> {
        let error = self.reply.message.get("error")?;
        Some(ProtocolError {
            code: error["code"].as_i64().unwrap_or(protocol::INTERNAL_ERROR),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            data: error.get("data").cloned(),
        })
    }

    /// Whether the reply is a JSON-RPC error, or the result of a tool that failed (`isError`).
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.reply.message.get("result").is_none_or(|result| result["isError"] == true)
    }

    /// The texts of a tool's content, a resource's contents or a prompt's messages, joined by line breaks.
    #[must_use]
    pub fn text(&self) -> String {
        let result = self.value();
        let blocks = [("content", ""), ("contents", ""), ("messages", "/content")];
        let texts = blocks.into_iter().flat_map(|(member, inner)| {
            let entries = result[member].as_array().map(Vec::as_slice).unwrap_or_default();
            entries.iter().filter_map(move |entry| entry.pointer(inner)?["text"].as_str())
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The value as a `T`: `structuredContent`, or else the JSON in the text.
    ///
    /// # Panics
    /// The reply has no such value.
    #[must_use]
    #[track_caller]
    pub fn json<T: DeserializeOwned>(&self) -> T {
        // for legacy clients a value that is not an object is wrapped in one, but not in the text
        let structured = self.value().get("structuredContent");
        if let Some(value) = structured.and_then(|value| T::deserialize(value).ok()) {
            return value;
        }
        match serde_json::from_str(&self.text()) {
            Ok(value) => value,
            Err(error) => {
                let expected = std::any::type_name::<T>();
                panic!("the reply has no `{expected}`: {error}\n{}", self.with_causes())
            }
        }
    }

    /// The text that a failed expectation prints.
    fn with_causes(&self) -> String {
        let mut text = self.to_string();
        for cause in &self.causes {
            text.push_str("\nprivate cause: ");
            text.push_str(cause);
        }
        text
    }

    /// The notifications of the call, oldest first.
    #[must_use]
    pub fn notifications(&self) -> &[Value] {
        &self.reply.notifications
    }

    /// Expects a success.
    ///
    /// # Panics
    /// The reply is an error of any kind.
    #[track_caller]
    pub fn expect_ok(&self) -> &Self {
        assert!(!self.is_error(), "expected a success, got {}", self.with_causes());
        self
    }

    /// Expects a success whose [`text`](Self::text) is exactly this.
    ///
    /// # Panics
    /// It is not.
    #[track_caller]
    pub fn expect_text(&self, text: &str) -> &Self {
        self.expect_ok();
        assert!(self.text() == text, "expected the text {text:?}, got {}", self.with_causes());
        self
    }

    /// Expects a success whose [`json`](Self::json) is exactly this.
    ///
    /// # Panics
    /// It is not.
    #[track_caller]
    pub fn expect_json(&self, value: &Value) -> &Self {
        self.expect_ok();
        assert!(self.json::<Value>() == *value, "expected the value {value}, got {}", self.with_causes());
        self
    }

    /// Expects the result of a tool that failed (`isError`), with this somewhere in its text.
    ///
    /// # Panics
    /// It is not.
    #[track_caller]
    pub fn expect_failure(&self, part: &str) -> &Self {
        let failed = self.value()["isError"] == true && self.text().contains(part);
        assert!(failed, "expected a failure that says {part:?}, got {}", self.with_causes());
        self
    }

    /// Expects a JSON-RPC error of that code.
    ///
    /// # Panics
    /// It is not.
    #[track_caller]
    pub fn expect_code(&self, code: i64) -> &Self {
        assert!(
            self.error().is_some_and(|error| error.code == code),
            "expected the error {code}, got {}",
            self.with_causes()
        );
        self
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.reply.message)?;
        if !self.reply.notifications.is_empty() {
            f.write_str("\nafter these notifications:")?;
        }
        self.reply.notifications.iter().try_for_each(|notification| write!(f, "\n{notification}"))
    }
}
