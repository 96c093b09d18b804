//! URLs that the user must visit before a request can be served at all: an error in 2025-11-25, questions in
//! 2026-07-28. Functions fail with it; dispatch asks here what becomes of the failure.

use serde_json::{Value, json};

use crate::client_request::{
    elicit::{Answer, read},
    lower,
    url::visitable,
};
use crate::{
    context::{AskError, ClientFeature, Context, Question},
    error::{Failure, ToolError},
    jsonrpc::ProtocolError,
    protocol::URL_ELICITATION_REQUIRED,
};

/// A URL that the user must visit, of [`ProtocolError::url_elicitation_required`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlElicitation {
    id: String,
    message: String,
    url: String,
}

impl UrlElicitation {
    /// `id` names the visit: the wire's `elicitationId` in 2025-11-25, which
    /// [`Context::elicitation_complete`] refers to, and the key of the question in 2026-07-28. `message` says what the
    /// visit is for. The URL is `http` or `https`, and must not hold secrets.
    pub fn new(id: impl Into<String>, message: impl Into<String>, url: impl Into<String>) -> Self {
        Self { id: id.into(), message: message.into(), url: url.into() }
    }

    fn from_wire(value: &Value) -> Option<Self> {
        let text = |key| Some(value.get(key)?.as_str()?.to_owned());
        Some(Self { id: text("elicitationId")?, message: text("message")?, url: text("url")? })
    }

    fn question(&self, context: &Context) -> Result<Question, AskError> {
        let Self { id, message, url } = self;
        let params = visitable(url).and_then(|()| lower::url(message, url, id, context.revision()));
        let params = params.map_err(|refusal| refusal.into_error(id))?;
        Ok(Question {
            key: id.as_str().into(),
            needs: ClientFeature::ElicitationUrl,
            method: "elicitation/create",
            params,
        })
    }
}

impl ProtocolError {
    /// `-32042`, URL elicitation required: the request cannot be served before the user has visited these URLs, at
    /// least one.
    ///
    /// Clients of 2025-11-25 that can open URLs get this error, and send the request again when the user is done.
    /// Those of 2026-07-28 are asked to open the URLs (`input_required`), and the function runs again when they come
    /// back; if the user declines, the call fails. Every other client gets an ordinary failure with the messages.
    ///
    /// See [URL elicitation required](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#url-elicitation-required-error).
    ///
    /// ```
    /// use mcp_runtime::{UrlElicitation, prelude::*};
    ///
    /// fn token() -> Result<String, ProtocolError> {
    ///     let visit = UrlElicitation::new("connect-calendar", "Let us read your calendar.", "https://example.com/connect");
    ///     Err(ProtocolError::url_elicitation_required([visit]))
    /// }
    /// # assert_eq!(token().unwrap_err().code, -32042);
    /// ```
    pub fn url_elicitation_required(elicitations: impl IntoIterator<Item = UrlElicitation>) -> Self {
        let (mut messages, mut wire) = (Vec::new(), Vec::new());
        for UrlElicitation { id, message, url } in elicitations {
            wire.push(json!({ "mode": "url", "elicitationId": id, "url": url, "message": message }));
            messages.push(message);
        }
        Self::new(URL_ELICITATION_REQUIRED, messages.join("\n")).with_data(json!({ "elicitations": wire }))
    }

    fn elicitations(&self) -> Option<Vec<UrlElicitation>> {
        let list = self.data.as_ref()?.get("elicitations")?.as_array()?;
        list.iter().map(UrlElicitation::from_wire).collect::<Option<Vec<_>>>().filter(|list| !list.is_empty())
    }
}

/// What becomes of a failure that says which URLs must be visited. Clients of 2026-07-28 are asked to open them: that
/// interrupts the call.
pub(crate) fn required(error: ProtocolError, context: &Context) -> Failure {
    let Some(elicitations) = error.elicitations() else {
        let text = "-32042 without URLs\nmake it with `ProtocolError::url_elicitation_required`";
        return Failure::Body(ToolError::private(text));
    };
    match elicitations.iter().try_for_each(|one| context.require(one)) {
        Ok(()) => Failure::Protocol(error),
        Err(why) if why.is_public() => Failure::Body(ToolError::new(format!("{}\n{why}", error.message))),
        Err(why) => Failure::Body(ToolError::private(why)),
    }
}

impl Context {
    /// Puts the question of a visit, if that is how this client hears of it.
    fn require(&self, elicitation: &UrlElicitation) -> Result<(), AskError> {
        let question = elicitation.question(self)?;
        self.require_answer(question, |raw| {
            let key = || elicitation.id.as_str().into();
            Ok(match read(raw, |_| Ok(()))? {
                // the user has agreed, but was not there yet: or else the function had not failed
                Answer::Accept(()) => None,
                Answer::Decline => Some(AskError::Declined { key: key() }),
                Answer::Cancel => Some(AskError::Cancelled { key: key() }),
            })
        })
    }
}
