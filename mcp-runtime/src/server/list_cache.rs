//! The cache of lists: entries as bytes, written once for each revision, and their pages.

use std::sync::{Arc, OnceLock};

use crate::server::Registry;
use crate::{connection::Access, protocol::Revision};

/// The lists of a registry.
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

/// First pages, by list and revision; a changed registry starts with an empty cache.
#[derive(Debug, Default)]
pub(crate) struct ListCache([[OnceLock<Arc<EncodedPage>>; 5]; 5]);

/// One page: the entries as a JSON array, and the cursor of the next.
#[derive(Debug, Clone)]
pub(crate) struct EncodedPage {
    pub(crate) entries: Vec<u8>,
    /// How many entries of the list come before the next page.
    pub(crate) next: Option<usize>,
    /// The cursor of the next page, once it has been sealed.
    pub(crate) cursor: OnceLock<String>,
}

impl Registry {
    /// The entries that the caller may see, each as JSON.
    pub(crate) fn entries(&self, kind: ListKind, revision: Revision, access: Access<'_>) -> Vec<Vec<u8>> {
        let write_entry = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::with_capacity(256);
            write(&mut out);
            out
        };
        match kind {
            ListKind::Tools => {
                let visible = self.tools.iter().filter(|tool| access.sees(tool.view()));
                visible.map(|tool| write_entry(&|out| tool.write(out, revision))).collect()
            }
            ListKind::Prompts => {
                let visible = self.prompts.iter().filter(|prompt| access.sees(prompt.view()));
                visible.map(|prompt| write_entry(&|out| prompt.write(out, revision))).collect()
            }
            ListKind::Resources | ListKind::Templates => {
                let exact = kind == ListKind::Resources;
                let visible = self.resources.iter().filter(|r| r.template.is_exact() == exact);
                let visible = visible.filter(|r| access.sees(r.view()));
                let mut entries: Vec<_> =
                    visible.map(|resource| write_entry(&|out| resource.write(out, revision))).collect();
                if exact && revision.is_modern() {
                    entries.extend(self.skills.manifests(access));
                }
                entries
            }
            ListKind::Skills => self.skills.entries(access),
        }
    }

    /// The first page for callers that see everything; written once.
    pub(crate) fn first_page(&self, kind: ListKind, revision: Revision, size: usize) -> Arc<EncodedPage> {
        let cached = self.lists.0.get(kind as usize).and_then(|revisions| revisions.get(revision.index()));
        let write_entry = || {
            Arc::new(
                page_of(&self.entries(kind, revision, Access::TRUSTED), 0, size)
                    .unwrap_or_else(EncodedPage::empty),
            )
        };
        cached.map_or_else(write_entry, |page| page.get_or_init(write_entry).clone())
    }
}

impl EncodedPage {
    fn empty() -> Self {
        Self::of(&[])
    }

    /// A page with these entries, the last of its list.
    pub(crate) fn of(entries: &[Vec<u8>]) -> Self {
        let mut array = Vec::with_capacity(entries.iter().map(|entry| entry.len() + 1).sum::<usize>() + 2);
        array.push(b'[');
        array.extend_from_slice(&entries.join(&b','));
        array.push(b']');
        Self { entries: array, next: None, cursor: OnceLock::new() }
    }
}

/// The page that begins after so many entries; `None` if there are not as many.
pub(crate) fn page_of(entries: &[Vec<u8>], start: usize, size: usize) -> Option<EncodedPage> {
    let rest = entries.get(start..)?;
    let visible = rest.get(..size.max(1)).unwrap_or(rest);
    let next = (visible.len() < rest.len()).then_some(start + visible.len());
    Some(EncodedPage { next, ..EncodedPage::of(visible) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other() {
        let entries: Vec<Vec<u8>> = (0..5).map(|n: u8| vec![b'0' + n]).collect();
        let pages = [(0, "[0,1]", Some(2)), (2, "[2,3]", Some(4)), (4, "[4]", None), (5, "[]", None)];
        for (start, text, next) in pages {
            let page = page_of(&entries, start, 2).expect("a page");
            assert_eq!((page.entries.as_slice(), page.next), (text.as_bytes(), next));
        }
        assert!(page_of(&entries, 6, 2).is_none());
        assert!(page_of(&entries, usize::MAX, usize::MAX).is_none());
    }
}
