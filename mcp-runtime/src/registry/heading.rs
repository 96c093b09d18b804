//! What the entries of all four lists have in common.

use crate::{
    def::IconDef,
    jsonrpc::{Object, array},
    protocol::Revision,
};

/// Appends title, description and icons, as far as the revision knows them.
pub(super) fn heading(
    entry: &mut Object<'_>,
    revision: Revision,
    title: Option<&str>,
    description: Option<&str>,
    icons: &[IconDef],
) {
    if revision >= Revision::V2025_06_18 {
        entry.opt_str("title", title);
    }
    entry.opt_str("description", description);
    if revision >= Revision::V2025_11_25 && !icons.is_empty() {
        array(entry.key("icons"), icons, |out, icon| {
            let mut object = Object::new(out);
            object.str("src", icon.src);
            object.end();
        });
    }
}
