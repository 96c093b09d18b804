//! What the entries of all four lists have in common.

use crate::{
    content::{Icon, Writer},
    jsonrpc::Object,
    protocol::Revision,
};

/// Appends title, description and icons, as far as the revision knows them.
pub(crate) fn heading(
    entry: &mut Object<'_>,
    revision: Revision,
    title: Option<&str>,
    description: Option<&str>,
    icons: &[Icon],
) {
    if revision >= Revision::V2025_06_18 {
        entry.opt_str("title", title);
    }
    entry.opt_str("description", description);
    Writer(revision).icons(entry, icons);
}
