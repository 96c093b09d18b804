//! Without the feature `shared`, only this process knows which of its sessions have ended.

use super::session_id::{Session, SessionUid};
use crate::{
    core::{admission::Owner, server::Server},
    transport::http::http_error::HttpError,
};

/// Without a store that replicas share, this has no value.
pub(super) enum EndedSessions {}

impl EndedSessions {
    pub(super) fn new(_: &Server, _: usize) -> Option<Self> {
        None
    }

    pub(super) async fn check(&self, _: &SessionUid) -> Result<(), HttpError> {
        match *self {}
    }

    pub(super) async fn add(&self, _: &Session, _: &Owner) -> Result<(), HttpError> {
        match *self {}
    }
}
