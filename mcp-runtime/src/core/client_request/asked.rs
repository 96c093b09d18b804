//! A request to the client that another program has written, such as a server whose calls this one passes on.

use serde_json::{Map, value::RawValue};

use crate::core::context::{ClientFeature, ClientRequestError, Context, PendingRequest};

impl Context {
    /// Sends a request of the protocol to the client as it is, and awaits its result as the client wrote it:
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`, with params that are an object. The capability that
    /// the client needs follows from them. `key` is unique in the call, as for [`elicit`](Self::elicit).
    ///
    /// Questions that are awaited together are sent together.
    ///
    /// ```
    /// use mcp_runtime::{Context, client_request::ClientRequestError, serde_json::value::RawValue};
    ///
    /// async fn passed_on(ctx: &Context, params: &RawValue) -> Result<Box<RawValue>, ClientRequestError> {
    ///     ctx.ask("1/confirm", "elicitation/create", params).await
    /// }
    /// ```
    ///
    /// # Errors
    /// The method is not one of these, or the params are not an object; those of `elicit`.
    pub async fn ask(
        &self,
        key: impl Into<Box<str>>,
        method: &str,
        params: &RawValue,
    ) -> Result<Box<RawValue>, ClientRequestError> {
        let key = key.into();
        let Some((method, requires)) = kind(method, params) else {
            let reason = format!("`{method}` with these params is not a request to a client");
            return Err(ClientRequestError::Unfit { key, reason });
        };
        let params = params.get().as_bytes().to_vec();
        let request = PendingRequest { key, requires, method, params };
        self.request_client(request, |result| match result.trim_start().starts_with('{') {
            true => RawValue::from_string(result.to_owned()).map_err(|error| error.to_string()),
            false => Err("the result is not an object".to_owned()),
        })
        .await
    }
}

/// The method, and the feature that the client needs for these params.
fn kind(method: &str, params: &RawValue) -> Option<(&'static str, ClientFeature)> {
    let members: Map<_, _> = serde_json::from_str(params.get()).ok()?;
    let has = |key: &str| members.get(key).is_some_and(|value| !value.is_null());
    Some(match method {
        "elicitation/create" if members.get("mode").is_some_and(|mode| mode == "url") => {
            ("elicitation/create", ClientFeature::ElicitationUrl)
        }
        "elicitation/create" => ("elicitation/create", ClientFeature::Elicitation),
        "sampling/createMessage" if has("tools") || has("toolChoice") => {
            ("sampling/createMessage", ClientFeature::SamplingTools)
        }
        "sampling/createMessage" => ("sampling/createMessage", ClientFeature::Sampling),
        "roots/list" => ("roots/list", ClientFeature::Roots),
        _ => return None,
    })
}
