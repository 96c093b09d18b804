//! Without the feature `http`, only the host of stdio may be a caller, and nothing says which scopes it could acquire.

use std::{any::TypeId, sync::Arc};

use super::Options;
use crate::core::connection::AccessRules;

impl Options {
    pub(super) fn http_tells_callers_apart(&self) -> bool {
        false
    }

    /// No probe asks.
    pub(crate) fn add_readiness_check<R>(&mut self, _: Arc<str>, _: R) {}

    pub(crate) fn max_message(&self) -> usize {
        super::MAX_LINE
    }

    pub(crate) fn access_rules(&self) -> AccessRules {
        AccessRules { visible: self.lists.visible.clone(), ..AccessRules::default() }
    }

    pub(crate) fn check_scopes(&self, _: &[String]) -> Option<String> {
        None
    }

    pub(crate) fn scope_challenge(&self, _: &str) -> Option<String> {
        None
    }

    pub(crate) fn request_type_ids(&self) -> Arc<[TypeId]> {
        Arc::from([])
    }
}
