//! A connection in the server's process. Its messages are encoded as JSON and take the same path as those of every other
//! transport.

mod connection;

pub(crate) use connection::{AnswerClientRequest, MemoryConnection, parse_message};
