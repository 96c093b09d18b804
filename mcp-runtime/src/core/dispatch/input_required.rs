//! Multi round-trip requests of 2026-07-28: a call that needs responses of its client ends with `input_required` and
//! starts again when the client retries it with them. Calls of clients that lack a required feature are refused.
//!
//! See [multi round-trip requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    Request,
    item_call::SuspendedCall,
    response::{Reply, ResultBody},
};
use crate::core::{
    client_request::{CallBinding, InputRequired, StateSealer, now},
    connection::Principal,
    context::{ClientFeature, RawJson, Retry, Suspension},
    jsonrpc::{ProtocolError, decode_string},
    protocol::MISSING_CLIENT_CAPABILITY,
    reason::Reason,
    server::Server,
};

impl Request<'_> {
    /// Reads what the client sends along with the retry of this `call`.
    pub(crate) fn read_retry(
        &self,
        server: &Server,
        call: &CallBinding<'_>,
    ) -> Result<Arc<Retry>, ProtocolError> {
        let responses: HashMap<String, RawJson> = match self.params.get("inputResponses") {
            None => HashMap::new(),
            Some(raw) => Some(raw.get())
                .filter(|json| json.starts_with('{'))
                .and_then(|json| serde_json::from_str(json).ok())
                .ok_or_else(|| ProtocolError::invalid_params("`inputResponses` is not an object"))?,
        };
        let state = match self.params.get("requestState") {
            None => None,
            Some(raw) => {
                let text = decode_string(raw)
                    .ok_or_else(|| ProtocolError::invalid_params("`requestState` is not a string"))?;
                let sealer = server.state_sealer(self.context.caller.as_deref());
                Some(sealer.open(&text, call).ok_or_else(|| {
                    ProtocolError::invalid_params(
                        "`requestState` does not belong to this call, or has expired\nstart the call anew",
                    )
                })?)
            }
        };
        Ok(Arc::new(Retry { state, responses }))
    }

    /// Refuses a call of an item that requires more than the client declares.
    pub(crate) fn check_features(&self, required: &[ClientFeature]) -> Result<(), Reply> {
        let capabilities = self.client().capabilities();
        let missing: Vec<_> =
            required.iter().copied().filter(|feature| !feature.is_in(&capabilities)).collect();
        if missing.is_empty() {
            Ok(())
        } else if self.revision.is_modern() {
            Err(Reply::bad_request(missing_features(&missing, &capabilities)).because(Reason::Capability))
        } else {
            let error = ProtocolError::internal(describe_missing(&missing));
            Err(Reply::from(error).because(Reason::Capability))
        }
    }
}

/// The function of a call awaits responses that only a retry of the call can bring.
pub(crate) fn await_input() -> Suspension {
    let respond = |call: Box<SuspendedCall>| {
        call.server().map_or_else(Reply::server_dropped, |server| server.input_required(&call)).into()
    };
    Suspension { ends_run: true, respond: Box::new(respond) }
}

impl Server {
    fn state_sealer<'a>(&'a self, caller: Option<&'a Principal>) -> StateSealer<'a> {
        StateSealer { seal: self.states(), server: self.name(), caller, now: now() }
    }

    /// The reply to a call that waits for input: the client requests, or what the client would have to declare.
    fn input_required(&self, call: &SuspendedCall) -> Reply {
        let context = call.context();
        // nothing more is sent for the call from here on
        context.inner().cancel.complete();
        let (requests, state) = match context.client_requests().take_input_required() {
            InputRequired::Missing(features) => {
                return Reply::bad_request(missing_features(&features, &context.client_capabilities()));
            }
            InputRequired::Requests(requests, state) => (requests, state),
        };
        let binding = call.binding();
        match self.state_sealer(context.caller()).seal(*state, &binding) {
            Ok(state) => ResultBody::InputRequired { requests, state }.into(),
            Err(error) => {
                tracing::error!(method = binding.method, name = binding.name, %error, "call failed");
                error.into()
            }
        }
    }
}

fn describe_missing(features: &[ClientFeature]) -> String {
    let names: Vec<_> = features.iter().map(|feature| format!("`{feature}`")).collect();
    format!("the client does not declare {}, which this request needs", names.join(", "))
}

/// `-32021`: the capabilities that the client would have to declare.
pub(crate) fn missing_features(features: &[ClientFeature], declared: &Value) -> ProtocolError {
    ProtocolError::new(MISSING_CLIENT_CAPABILITY, describe_missing(features))
        .with_data(json!({ "requiredCapabilities": ClientFeature::required(features, declared) }))
}
