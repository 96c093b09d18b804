//! URLs that the user must visit before a request can be served at all: an error in 2025-11-25, client requests in
//! 2026-07-28.

use serde_json::{Value, json};

use super::{answer::decode_result, url::url_params};
use crate::core::{
    context::{ClientFeature, ClientRequestError, Context, PendingRequest},
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
    /// `id` names the visit: `elicitationId` on the wire in 2025-11-25, which
    /// [`Context::elicitation_complete`] refers to, and the key of the client request in 2026-07-28. `message` says what the
    /// visit is for. The URL is `http` or `https`, and must not hold secrets.
    pub fn new(id: impl Into<String>, message: impl Into<String>, url: impl Into<String>) -> Self {
        Self { id: id.into(), message: message.into(), url: url.into() }
    }

    fn from_wire(value: &Value) -> Option<Self> {
        let text = |key| Some(value.get(key)?.as_str()?.to_owned());
        Some(Self { id: text("elicitationId")?, message: text("message")?, url: text("url")? })
    }

    fn to_request(&self, context: &Context) -> Result<PendingRequest, ClientRequestError> {
        let Self { id, message, url } = self;
        Ok(PendingRequest {
            key: id.as_str().into(),
            requires: ClientFeature::ElicitationUrl,
            method: "elicitation/create",
            params: url_params(id, message, url, id, context.revision())?,
        })
    }
}

impl ProtocolError {
    /// `-32042`, URL elicitation required: the request cannot be served before the user has visited these URLs, at
    /// least one.
    ///
    /// Clients of 2025-11-25 that can open URLs get this error, and send the request again when the user is done.
    /// Those of 2026-07-28 are requested to open the URLs (`input_required`), and the function runs again when they
    /// retry the call; if the user declines, the call fails. Every other client gets an ordinary failure with the messages.
    ///
    /// See [URL elicitation required](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#url-elicitation-required-error).
    ///
    /// ```
    /// use mcp_runtime::{ProtocolError, client_request::UrlElicitation, prelude::*};
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

/// The failure for an error that lists URLs. For a client of 2026-07-28 it also requests the visits, which interrupts
/// the call.
pub(crate) fn require_visits(error: ProtocolError, context: &Context) -> Failure {
    let Some(elicitations) = error.elicitations() else {
        let text = "-32042 without URLs\nmake it with `ProtocolError::url_elicitation_required`";
        return Failure::private(text);
    };
    match elicitations.iter().try_for_each(|one| one.require_visit(context)) {
        Ok(()) => Failure::Protocol(error),
        Err(why) if why.is_public() => ToolError::new(format!("{}\n{why}", error.message)).into(),
        Err(why) => Failure::private(why),
    }
}

impl UrlElicitation {
    /// Requests the visit, where the revision has client requests for that.
    fn require_visit(&self, context: &Context) -> Result<(), ClientRequestError> {
        context.require_response(&self.to_request(context)?, |raw| {
            // the function would not have failed if the user had followed an earlier agreement
            Ok(decode_result(raw, |_| Ok(()))?.into_result(&self.id).err())
        })
    }
}
