//! Without the feature `auth` only the program itself identifies callers.

use crate::core::connection::Principal;

/// There is none.
pub(crate) enum Authenticator {}

impl Authenticator {
    pub(crate) fn scopes(&self) -> &[String] {
        match *self {}
    }

    pub(crate) fn all_scopes(&self) -> Option<&[String]> {
        match *self {}
    }

    pub(crate) fn scope_challenge(&self, _: &str) -> String {
        match *self {}
    }

    pub(crate) fn has_removed(&self, _: &Principal) -> bool {
        match *self {}
    }

    pub(crate) fn forget(&self, _: &Principal) {
        match *self {}
    }
}
