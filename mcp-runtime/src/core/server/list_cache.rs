//! The cache of lists: entries as bytes, written once for each revision, and their pages.

use std::sync::{Arc, OnceLock};

use crate::core::{connection::Access, protocol::Revision, sync::RwLock};

/// A list whose entries are known.
#[derive(Clone, Copy)]
pub(crate) struct List<'a> {
    /// The member of the result that holds the entries.
    pub(crate) key: &'static str,
    /// Its entries that a caller may see, each as JSON.
    pub(crate) entries: &'a dyn Fn(Revision, Access<'_>) -> Vec<Vec<u8>>,
    pub(crate) pages: &'a PageCache,
}

/// The first pages of a list, by revision; a changed registry starts with empty ones.
#[derive(Default)]
pub(crate) struct PageCache([OnceLock<Arc<EncodedPage>>; 5]);

/// One page: the entries as a JSON array, and the cursor of the next.
pub(crate) struct EncodedPage {
    pub(crate) entries: Vec<u8>,
    /// How many entries of the list come before the next page.
    pub(crate) next: Option<usize>,
    /// The cursor of the next page, once it has been sealed.
    pub(crate) cursor: RwLock<Option<SealedCursor>>,
}

/// A cursor for as long as the keys that sealed it are those of the server.
pub(crate) struct SealedCursor {
    pub(crate) text: String,
    /// That of the keys.
    pub(crate) generation: u64,
}

impl List<'_> {
    /// The first page for callers that see everything; written once.
    pub(crate) fn first_page(&self, revision: Revision, size: usize) -> Arc<EncodedPage> {
        let write_page = || {
            Arc::new(
                page_of(&(self.entries)(revision, Access::TRUSTED), 0, size)
                    .unwrap_or_else(EncodedPage::empty),
            )
        };
        let cached = self.pages.0.get(revision.index());
        cached.map_or_else(write_page, |page| page.get_or_init(write_page).clone())
    }
}

impl EncodedPage {
    fn empty() -> Self {
        Self::of(&[])
    }

    /// A page with these entries, the last of its list.
    pub(crate) fn of(entries: &[Vec<u8>]) -> Self {
        let mut array = Vec::with_capacity(entries.iter().map(|entry| entry.len() + 1).sum::<usize>() + 2);
        for entry in entries {
            array.push(if array.is_empty() { b'[' } else { b',' });
            array.extend_from_slice(entry);
        }
        array.extend_from_slice(if entries.is_empty() { b"[]" } else { b"]" });
        Self { entries: array, next: None, cursor: RwLock::default() }
    }
}

/// The page that begins after this many entries; `None` if there are fewer.
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
