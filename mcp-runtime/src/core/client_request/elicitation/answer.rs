//! The user's answer to an elicitation.

use serde::Deserialize;
use serde_json::Value;

use crate::{core::context::ClientRequestError, schema::consists_of_more_values};

/// The most values of which an answer may consist.
const MAX_VALUES: usize = 4000;

/// The user's reaction to an elicitation: `action` on the wire, with the value if there is one.
///
/// See [response actions](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#response-actions).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<T> {
    /// `accept`: the user agreed, and this is what they filled in.
    Accept(T),
    /// `decline`: the user said no.
    Decline,
    /// `cancel`: the user dismissed the elicitation without saying yes or no.
    Cancel,
}

impl<T> Answer<T> {
    /// `action` on the wire: `accept`, `decline` or `cancel`.
    #[must_use]
    pub const fn action(&self) -> &'static str {
        match self {
            Self::Accept(_) => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }

    /// The value that the user filled in, if they agreed.
    #[must_use]
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accept(value) => Some(value),
            Self::Decline | Self::Cancel => None,
        }
    }

    /// The value, or the error that names what the user did instead.
    pub(super) fn into_result(self, key: &str) -> Result<T, ClientRequestError> {
        match self {
            Self::Accept(value) => Ok(value),
            Self::Decline => Err(ClientRequestError::Declined(key.into())),
            Self::Cancel => Err(ClientRequestError::Cancelled(key.into())),
        }
    }
}

/// `ElicitResult` on the wire; its content matters only if the user agreed.
#[derive(Deserialize)]
struct ElicitResult {
    action: String,
    #[serde(default)]
    content: Option<Value>,
}

/// Decodes a client's result; `accept` decodes its content.
///
/// # Errors
/// The reason why it is invalid, without quoting the user.
pub(super) fn decode_result<T>(
    result: &str,
    accept: impl FnOnce(Option<Value>) -> Result<T, String>,
) -> Result<Answer<T>, String> {
    // forms are small, and each value is built
    if consists_of_more_values(result, MAX_VALUES) {
        return Err(format!("the result has more than {MAX_VALUES} values"));
    }
    let Ok(result) = serde_json::from_str::<ElicitResult>(result) else {
        return Err("the result is not an object with an `action`".to_owned());
    };
    match result.action.as_str() {
        "accept" => accept(result.content).map(Answer::Accept),
        "decline" => Ok(Answer::Decline),
        "cancel" => Ok(Answer::Cancel),
        _ => Err("`action` is not `accept`, `decline` or `cancel`".to_owned()),
    }
}
