//! Requests from the server to its client, as methods of [`Context`](crate::Context): elicitation, sampling and roots,
//! over a legacy connection or in `input_required` results; and what makes a retried call safe to run again.

mod asked;
mod elicitation;
mod engine;
mod once;
mod request_state;
mod roots;
mod sampling;

pub(crate) use elicitation::require_visits;
pub use elicitation::{Answer, Elicit, ElicitUrl, UrlElicitation};
pub(crate) use engine::InputRequired;
pub(crate) use request_state::{CallBinding, StateSealer, now};
pub use roots::{Root, Roots};
pub use sampling::{
    CreateMessage, ModelHint, ModelPreferences, SampleContext, Sampled, SamplingBlock, SamplingMessage,
    SamplingTool, ToolChoice, ToolUse,
};

pub use crate::core::context::{client_feature::ClientFeature, client_request_error::ClientRequestError};
