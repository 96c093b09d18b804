//! Cursors of lists: where the next page begins, sealed, so that a client can only hand it back, and only to the list
//! and the view that it is of.

use super::Request;
use crate::{
    jsonrpc::ProtocolError,
    server::{Page, Server},
};

/// What a cursor is sealed with: no other list has the same, nor has the same list for those who see other entries.
#[derive(Debug, Clone)]
pub(super) struct View(Vec<u8>);

impl View {
    pub(super) fn new(server: &Server, request: &Request<'_>, list: &str) -> Self {
        let mut bound = Vec::with_capacity(64);
        let mut part = |bytes: &[u8]| {
            bound.extend((bytes.len() as u64).to_le_bytes());
            bound.extend(bytes);
        };
        part(server.name().as_bytes());
        part(list.as_bytes());
        part(request.revision.as_str().as_bytes());
        for scope in request.access().scopes() {
            part(scope.as_bytes());
        }
        if request.access().is_full() {
            part(b"*");
        }
        Self(bound)
    }
}

impl Server {
    /// Where the page begins that a request asks for.
    pub(super) fn start_of(&self, cursor: Option<&str>, view: &View) -> Result<usize, ProtocolError> {
        let Some(cursor) = cursor else { return Ok(0) };
        let opened = self.cursors().open(cursor.as_bytes(), &view.0);
        let bytes = opened.and_then(|opened| <[u8; 8]>::try_from(opened.plain).ok());
        bytes.and_then(|bytes| usize::try_from(u64::from_le_bytes(bytes)).ok()).ok_or_else(bad_cursor)
    }

    /// The cursor of the page after this one; `None` if it is the last.
    pub(super) fn cursor_after<'p>(
        &self,
        page: &'p Page,
        view: impl FnOnce() -> View,
    ) -> Result<Option<&'p str>, ProtocolError> {
        let Some(next) = page.next else { return Ok(None) };
        if page.cursor.get().is_none() {
            let sealed = self.cursors().seal(&(next as u64).to_le_bytes(), &view().0);
            let sealed = sealed.map_err(|_| ProtocolError::internal("a cursor cannot be sealed"))?;
            // another thread may have been faster; its cursor is as good
            let _first = page.cursor.set(sealed);
        }
        Ok(page.cursor.get().map(String::as_str))
    }
}

pub(super) fn bad_cursor() -> ProtocolError {
    ProtocolError::invalid_params("`cursor` is not a cursor of this list")
}
