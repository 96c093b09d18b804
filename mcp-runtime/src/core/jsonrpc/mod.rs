//! JSON-RPC 2.0: parses messages into slices of their text, and writes messages into one buffer.

mod error;
mod message;
mod surrogates;
mod writer;

pub use error::ProtocolError;
pub(crate) use error::write_error_response;
pub(crate) use message::{
    JsonRpcMessage, MAX_ID_BYTES, MalformedMessage, Members, Meta, Params, RequestId, decode_string,
    is_valid_id, null_is_absent, parse, parse_batch,
};
pub(crate) use surrogates::legible_json;
#[cfg(feature = "client")]
pub(crate) use surrogates::replace_lone_surrogates;
pub(crate) use writer::{Object, notification, replace_line_breaks, request, write_array, write_string};
