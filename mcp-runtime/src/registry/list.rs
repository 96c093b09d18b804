//! Lists as bytes: rendered once for each revision and kept, cut into pages by opaque cursors.

use std::sync::{Arc, OnceLock};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::Registry;
use crate::{context::Viewer, protocol::Revision};

/// The lists that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    Tools,
    Resources,
    Templates,
    Prompts,
    Skills,
}

impl ListKind {
    /// The member of the result that holds the entries.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
            Self::Skills => "skills",
        }
    }
}

/// Rendered first pages, by list and revision; a changed registry starts with none.
#[derive(Debug, Default)]
pub(crate) struct Lists([[OnceLock<Arc<Page>>; 5]; 5]);

/// One page: the entries as a JSON array, and the cursor of the next.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) entries: Vec<u8>,
    pub(crate) next: Option<String>,
}

impl Registry {
    /// The entries of a list that the caller may see, each as JSON.
    pub(crate) fn entries(&self, kind: ListKind, revision: Revision, viewer: Viewer<'_>) -> Vec<Vec<u8>> {
        let render = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::with_capacity(256);
            write(&mut out);
            out
        };
        match kind {
            ListKind::Tools => {
                let shown = self.tools.iter().filter(|tool| viewer.sees(&tool.scopes()));
                shown.map(|tool| render(&|out| tool.write(out, revision))).collect()
            }
            ListKind::Prompts => {
                let shown = self.prompts.iter().filter(|prompt| viewer.sees(prompt.def.common.scopes));
                shown.map(|prompt| render(&|out| prompt.write(out, revision))).collect()
            }
            ListKind::Resources | ListKind::Templates => {
                let exact = kind == ListKind::Resources;
                let shown = self.resources.iter().filter(|r| r.template.is_exact() == exact);
                let shown = shown.filter(|r| viewer.sees(r.def.common.scopes));
                let mut entries: Vec<_> =
                    shown.map(|resource| render(&|out| resource.write(out, revision))).collect();
                if exact && revision.is_modern() {
                    entries.extend(self.skills.manifests());
                }
                entries
            }
            ListKind::Skills => self.skills.entries(),
        }
    }

    /// The first page for callers who see everything; rendered once.
    pub(crate) fn first_page(&self, kind: ListKind, revision: Revision, size: usize) -> Arc<Page> {
        let kept = self.lists.0.get(kind as usize).and_then(|revisions| revisions.get(revision.index()));
        let render = || {
            Arc::new(
                page_of(kind.key(), &self.entries(kind, revision, Viewer::TRUSTED), None, size)
                    .unwrap_or(Page { entries: b"[]".to_vec(), next: None }),
            )
        };
        kept.map_or_else(render, |page| page.get_or_init(render).clone())
    }
}

/// The page after `cursor`; `None` if the cursor is none of the list of that name.
pub(crate) fn page_of(list: &str, entries: &[Vec<u8>], cursor: Option<&str>, size: usize) -> Option<Page> {
    let start = match cursor {
        None => 0,
        Some(cursor) => read_cursor(list, cursor).filter(|at| *at <= entries.len())?,
    };
    let end = start.saturating_add(size.max(1)).min(entries.len());
    let mut page =
        Vec::with_capacity(entries[start..end].iter().map(|entry| entry.len() + 1).sum::<usize>() + 2);
    page.push(b'[');
    page.extend_from_slice(&entries[start..end].join(&b','));
    page.push(b']');
    Some(Page { entries: page, next: (end < entries.len()).then(|| write_cursor(list, end)) })
}

/// A cursor names its list, so that one list's cannot be used on another.
fn write_cursor(list: &str, at: usize) -> String {
    let body = format!("{list}:{at}");
    URL_SAFE_NO_PAD.encode(format!("{body}:{:08x}", checksum(&body)))
}

fn read_cursor(list: &str, cursor: &str) -> Option<usize> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    let (body, sum) = text.rsplit_once(':')?;
    let (own, at) = body.rsplit_once(':')?;
    (own == list && format!("{:08x}", checksum(body)) == sum).then(|| at.parse().ok())?
}

/// FNV-1a: a cursor is checked against accidents, it guards nothing.
fn checksum(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_walk_their_own_list_only() {
        let entries: Vec<Vec<u8>> = (0..5).map(|n: u8| vec![b'0' + n]).collect();
        let first = page_of("tools", &entries, None, 2).expect("page");
        assert_eq!(first.entries, b"[0,1]");
        let cursor = first.next.expect("more");
        let second = page_of("tools", &entries, Some(&cursor), 2).expect("page");
        assert_eq!(second.entries, b"[2,3]");
        let last = page_of("tools", &entries, second.next.as_deref(), 2).expect("page");
        assert_eq!((last.entries.as_slice(), last.next), (&b"[4]"[..], None));
        assert!(page_of("prompts", &entries, Some(&cursor), 2).is_none());
        assert!(page_of("tools", &entries, Some("bm9wZQ"), 2).is_none());
        assert!(page_of("tools", &entries, Some(""), 2).is_none());
    }
}
