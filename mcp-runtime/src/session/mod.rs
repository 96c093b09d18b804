//! Sessions of the handshake era without memory: the id that a client carries is the session, sealed.
//! The HTTP transport opens one with each request.

mod capability;
mod revoked;
mod token;

pub(crate) use capability::Capabilities;
pub(crate) use revoked::Revoked;
pub(crate) use token::{Session, Sid, Token};
