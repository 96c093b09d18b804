//! Lists in pages: `tools/list`, `prompts/list`, `resources/templates/list`, `skills/list`, and the pages of every other
//! list. A cursor says where the next page begins; it is sealed, so that a client can only send it back, and only for
//! the same list with the same access: `seal_cursor` seals the index of the next entry, eight bytes, with the server's keys for
//! cursors, without an expiry. Every replica with these keys opens it.
//!
//! See [pagination](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination).

use std::{borrow::Cow, sync::Arc};

use super::{
    Request,
    response::{Reply, Response, ResultBody},
};
use crate::core::{
    connection::principal_digest,
    jsonrpc::{ProtocolError, decode_string},
    server::{EncodedPage, List, SealedCursor, Server, page_of},
};

/// The scope that a cursor is sealed with: the server, the list, the revision and the caller's access.
#[derive(Clone)]
pub(crate) struct CursorScope(Vec<u8>);

impl CursorScope {
    pub(crate) fn new(server: &Server, request: &Request<'_>, list: &str) -> Self {
        let mut bytes = Vec::with_capacity(64);
        // lengths keep adjacent parts apart
        let mut push_part = |part: &[u8]| {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part);
        };
        push_part(server.name().as_bytes());
        push_part(list.as_bytes());
        push_part(request.revision.as_str().as_bytes());
        for scope in request.access().scopes() {
            push_part(scope.as_bytes());
        }
        match principal_digest(request.context.caller.as_deref()) {
            Some(caller) => push_part(caller.as_bytes()),
            None if request.access().is_full() => push_part(b"*"),
            None => {}
        }
        Self(bytes)
    }
}

impl Server {
    /// Answers a request for a list whose entries are known.
    pub(crate) fn list(&self, request: Request<'_>, list: List<'_>) -> Result<Response, Reply> {
        let cursor = request.cursor()?;
        let scope = || CursorScope::new(self, &request, list.key);
        let size = self.options().lists.page_size;
        if cursor.is_none() && request.access().is_full() {
            let page = list.first_page(request.revision, size);
            return Ok(self.page_reply(list.key, page, scope)?.into());
        }
        let scope = scope();
        let entries = (list.entries)(request.revision, request.access());
        let start = self.page_start(cursor.as_deref(), &scope)?;
        let page = page_of(&entries, start, size).ok_or_else(invalid_cursor)?;
        Ok(self.page_reply(list.key, page.into(), || scope)?.into())
    }

    /// The reply with one page; `key` is the member of the result that holds the entries.
    pub(crate) fn page_reply(
        &self,
        key: &'static str,
        page: Arc<EncodedPage>,
        scope: impl FnOnce() -> CursorScope,
    ) -> Result<Reply, Reply> {
        let cursor = self.next_cursor(&page, scope)?;
        Ok(self.page_with_cursor(key, page, cursor))
    }

    /// The reply with one page, and the sealed cursor of the next.
    pub(crate) fn page_with_cursor(
        &self,
        key: &'static str,
        page: Arc<EncodedPage>,
        cursor: Option<String>,
    ) -> Reply {
        ResultBody::List { key, page, cursor, cache: self.cache_hints() }.into()
    }

    /// The index of the first entry of the requested page.
    pub(crate) fn page_start(
        &self,
        cursor: Option<&str>,
        scope: &CursorScope,
    ) -> Result<usize, ProtocolError> {
        let Some(bytes) = self.open_cursor(cursor, scope)? else { return Ok(0) };
        let start = <[u8; 8]>::try_from(bytes).ok().map(u64::from_le_bytes);
        start.and_then(|start| usize::try_from(start).ok()).ok_or_else(invalid_cursor)
    }

    /// The position that a cursor has sealed.
    pub(crate) fn open_cursor(
        &self,
        cursor: Option<&str>,
        scope: &CursorScope,
    ) -> Result<Option<Vec<u8>>, ProtocolError> {
        let Some(cursor) = cursor else { return Ok(None) };
        let opened = self.cursors().open(cursor.as_bytes(), &scope.0);
        opened.map(|opened| Some(opened.plain)).ok_or_else(invalid_cursor)
    }

    /// A cursor that seals `position`.
    pub(crate) fn seal_cursor(&self, position: &[u8], scope: &CursorScope) -> Result<String, ProtocolError> {
        let sealed = self.cursors().seal(position, &scope.0);
        sealed.map_err(|_| ProtocolError::internal("a cursor cannot be sealed"))
    }

    /// The cursor of the page after this one; `None` if this is the last. It is sealed once for each set of keys: a
    /// cursor whose key has been removed opens nowhere.
    fn next_cursor(
        &self,
        page: &EncodedPage,
        scope: impl FnOnce() -> CursorScope,
    ) -> Result<Option<String>, ProtocolError> {
        let Some(next) = page.next else { return Ok(None) };
        // read before it is sealed: keys that replace these meanwhile have another one
        let generation = self.cursors().generation();
        if let Some(sealed) = &*page.cursor.read()
            && sealed.generation == generation
        {
            return Ok(Some(sealed.text.clone()));
        }
        let text = self.seal_cursor(&(next as u64).to_le_bytes(), &scope())?;
        // if another thread was faster, its cursor is equally valid
        *page.cursor.write() = Some(SealedCursor { text: text.clone(), generation });
        Ok(Some(text))
    }
}

impl<'a> Request<'a> {
    pub(crate) fn cursor(&self) -> Result<Option<Cow<'a, str>>, ProtocolError> {
        match self.params.get("cursor") {
            None => Ok(None),
            Some(raw) => decode_string(raw)
                .map(Some)
                .ok_or_else(|| ProtocolError::invalid_params("`cursor` is not a string")),
        }
    }
}

pub(crate) fn invalid_cursor() -> ProtocolError {
    ProtocolError::invalid_params("`cursor` is not a cursor of this list")
}
