//! Constants and names that the specification defines: revisions, error codes, `_meta` keys and extensions.

mod error_code;
mod extension;
mod item_list;
mod log_level;
mod meta;
mod method;
mod parse_name;
mod revision;
mod uri;

pub(crate) use error_code::*;
pub(crate) use extension::{
    EVENTS_EXTENSION, TASKS_EXTENSION, UI_EXTENSION, UI_MIME_TYPE, UI_SETTINGS, check_extension, is_ui_uri,
    supports_ui,
};
#[cfg(feature = "skills")]
pub(crate) use extension::{SKILLS_EXTENSION, SKILLS_SETTINGS};
pub(crate) use item_list::ItemList;
pub use log_level::LogLevel;
pub(crate) use meta::*;
pub(crate) use method::{Method, OPEN_STREAMS};
pub use parse_name::ParseNameError;
pub use revision::Revision;
pub(crate) use uri::{normalize_escapes, normalize_uri, uri_with_prefix};
