//! JSON-RPC 2.0 as text: reading one message without building it, writing replies into one buffer.
//! Transports read with it, dispatch writes with it.

mod error;
mod params;
mod read;
mod write;

pub use error::ProtocolError;
pub(crate) use params::{Meta, Params};
pub(crate) use read::{Malformed, Message, RequestId, batch, parse, text_of};
pub(crate) use write::{Object, array, error_reply, notification, string};
