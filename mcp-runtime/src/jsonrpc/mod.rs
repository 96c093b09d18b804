//! JSON-RPC 2.0 as text: reading one message without building it, writing replies into one buffer.
//! Transports read with it, dispatch writes with it.

mod error;
mod message;
mod write;

pub use error::ProtocolError;
pub(crate) use message::{MAX_ID, Malformed, Message, Meta, Params, RequestId, batch, is_id, parse, text_of};
pub(crate) use write::{Object, array, error_reply, notification, one_line, request, string};
