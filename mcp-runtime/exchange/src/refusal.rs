//! Why a token was not given out. The texts have neither tokens nor what the authorization server wrote in words, which may
//! repeat a token: only its error codes.

use mcp_runtime::{ResultExt as _, ToolError};
use serde::Deserialize;

/// Why the authorization server gave no token.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    /// What the caller can do; unset if only the operator can do something.
    advice: Option<&'static str>,
    /// For the log.
    why: String,
}

/// The answer of an authorization server that refuses a request
/// ([RFC 6749, section 5.2](https://www.rfc-editor.org/rfc/rfc6749#section-5.2)), with the numbers of `AADSTS` errors.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorResponse {
    error: String,
    error_codes: Vec<u64>,
}

impl Refusal {
    /// Something is configured in another way than the authorization server expects.
    pub(crate) fn configuration(why: impl Into<String>) -> Self {
        Self { advice: None, why: why.into() }
    }

    /// The authorization server cannot be asked now.
    pub(crate) fn unavailable(why: impl Into<String>) -> Self {
        let advice = "the authorization server is not available: try again later";
        Self { advice: Some(advice), why: why.into() }
    }

    /// The answer with an error status.
    pub(crate) fn of_answer(status: u16, body: &[u8]) -> Self {
        let ErrorResponse { error, mut error_codes } = serde_json::from_slice(body).unwrap_or_default();
        let is_code =
            error.len() <= 64 && error.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let code = if is_code { error.as_str() } else { "another error" };
        // Entra's numbers, as in `AADSTS50013`
        error_codes.truncate(8);
        let why = format!("the authorization server answered {status} {code}, numbers {error_codes:?}");
        match code {
            "temporarily_unavailable" | "server_error" | "slow_down" => Self::unavailable(why),
            _ if status == 429 || status >= 500 => Self::unavailable(why),
            // for an exchange, a token that is not valid makes the request invalid (RFC 8693, section 2.2.2)
            "invalid_grant"
            | "invalid_request"
            | "interaction_required"
            | "login_required"
            | "consent_required" => {
                let advice = "the login of the caller is not accepted for another API any more: log in again";
                Self { advice: Some(advice), why }
            }
            _ => Self::configuration(why),
        }
    }
}

impl From<Refusal> for ToolError {
    fn from(Refusal { advice, why }: Refusal) -> Self {
        let Some(advice) = advice else { return Self::private(why) };
        Err::<(), _>(why).public_context(advice).err().unwrap_or_else(|| advice.into())
    }
}
