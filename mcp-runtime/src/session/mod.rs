//! Sessions of the handshake era: the id that a client carries is the session, sealed, and costs no memory. What is
//! kept beside it, for sessions that need it, is bounded. The HTTP transport opens one with each request.

mod capability;
mod revoked;
mod standing;
mod store;
mod table;
mod token;

pub(crate) use capability::Capabilities;
pub(crate) use revoked::Revoked;
pub(crate) use standing::Standing;
pub(crate) use store::{Bounds, Events};
pub use store::{EventStore, StoredEvent};
pub(crate) use table::{Memory, Open, Table};
pub(crate) use token::{Session, Sid, Token};
