//! `tools/list`, `resources/list`, `resources/templates/list` and `prompts/list`.

use std::{borrow::Cow, sync::Arc};

use super::{
    MayAsk, Refusal, Request, Status,
    cursor::{View, bad_cursor},
    reply::{Frame, framed, nothing, refused},
    run::{Begun, Drive, drive},
};
use crate::{
    extract::{Flow, ListedResource},
    jsonrpc::{ProtocolError, error_reply, text_of},
    registry::{ListKind, Page, Registry, ResourceEntry, page_of},
    reply::Failure,
    server::Server,
};

/// A template, and what its `list` function gave.
type Instances = (Arc<ResourceEntry>, Vec<ListedResource>);

impl Server {
    pub(super) fn list(
        &self,
        request: Request<'_>,
        kind: ListKind,
        out: &mut Vec<u8>,
    ) -> Result<Begun, Refusal> {
        let registry = self.registry();
        let cursor = request.cursor()?;
        let view = || View::new(self, &request, kind.key());
        if kind == ListKind::Resources && registry.resources.iter().any(|r| r.def.list.is_some()) {
            let view = view();
            let start = self.start_of(cursor.as_deref(), &view)?;
            return Ok(self.list_instances(request, &registry, start, view, out));
        }
        let frame = Frame { id: request.id, revision: request.revision };
        let size = self.options().page_size;
        if cursor.is_none() && request.viewer().sees_all() {
            let page = registry.first_page(kind, request.revision, size);
            self.write_page(kind.key(), frame, &page, view, out)?;
            return Ok(Begun::Done(Status::Ok));
        }
        let view = view();
        let entries = registry.entries(kind, request.revision, request.viewer());
        let start = self.start_of(cursor.as_deref(), &view)?;
        let page = page_of(&entries, start, size).ok_or_else(bad_cursor)?;
        self.write_page(kind.key(), frame, &page, || view, out)?;
        Ok(Begun::Done(Status::Ok))
    }

    /// A page, under that member of the result.
    pub(super) fn write_page(
        &self,
        key: &str,
        frame: Frame<'_>,
        page: &Page,
        view: impl FnOnce() -> View,
        out: &mut Vec<u8>,
    ) -> Result<(), ProtocolError> {
        let next = self.cursor_after(page, view)?;
        framed(out, frame, self, None, |object| {
            object.key(key).extend_from_slice(&page.entries);
            object.opt_str("nextCursor", next);
            if frame.revision.is_modern() {
                self.cache_hints(object);
            }
        });
        Ok(())
    }

    /// Templates with a `list` function show their instances beside the plain resources.
    fn list_instances(
        &self,
        request: Request<'_>,
        registry: &Registry,
        start: usize,
        view: View,
        out: &mut Vec<u8>,
    ) -> Begun {
        let revision = request.revision;
        let entries = registry.entries(ListKind::Resources, revision, request.viewer());
        let shown_to_caller = |r: &&Arc<ResourceEntry>| request.viewer().sees(r.def.common.scopes);
        let listed = registry.resources.iter().filter(shown_to_caller);
        let listers: Vec<_> = listed
            .filter_map(|r| {
                let context = request.context(self, &r.state, MayAsk::No);
                Some((r.clone(), r.def.list?(Some(context)).outcome?))
            })
            .collect();
        let gather = async move {
            let mut found: Vec<Instances> = Vec::with_capacity(listers.len());
            for (entry, lister) in listers {
                found.push((entry, lister.await?));
            }
            Ok(found)
        };
        let going = Drive::without_rounds(self, request.frame());
        drive(Ok(Flow::Pending(Box::pin(gather))), going, out, move |server, result, id, out| {
            server.finish_instances(Frame { id, revision }, entries, (start, view), result, out)
        })
    }

    fn finish_instances(
        &self,
        frame: Frame<'_>,
        mut entries: Vec<Vec<u8>>,
        (start, view): (usize, View),
        result: Result<Vec<Instances>, Failure>,
        out: &mut Vec<u8>,
    ) -> Status {
        let error = match result {
            Ok(found) => {
                for (entry, instances) in found {
                    entries.extend(instances.iter().map(|instance| {
                        let mut out = Vec::with_capacity(128);
                        entry.write_instance(&mut out, frame.revision, instance);
                        out
                    }));
                }
                let page = page_of(&entries, start, self.options().page_size).ok_or_else(bad_cursor);
                let key = ListKind::Resources.key();
                match page.and_then(|page| self.write_page(key, frame, &page, || view, out)) {
                    Ok(()) => return Status::Ok,
                    Err(error) => error,
                }
            }
            Err(failure) => refused(self, "list of", "resources", failure, ProtocolError::internal, nothing),
        };
        error_reply(out, Some(frame.id), &error);
        Status::Ok
    }
}

impl<'a> Request<'a> {
    /// The cursor of a request for a list.
    pub(super) fn cursor(&self) -> Result<Option<Cow<'a, str>>, ProtocolError> {
        match self.params.cursor.filter(|raw| raw.get() != "null") {
            None => Ok(None),
            Some(raw) => text_of(raw)
                .map(Some)
                .ok_or_else(|| ProtocolError::invalid_params("`cursor` is not a string")),
        }
    }
}
