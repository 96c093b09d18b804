//! The subscribers to which an update of a resource is published.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
};

use super::Resources;
use crate::core::{
    changes::Change,
    connection::{Principal, principal_digest},
    server::Server,
};

impl Resources {
    /// Publishes an update to subscribers of this process that may read the resource. `concerns` says which of them are
    /// told; without it, of a resource that differs by caller, the one whose call `reporter` has made.
    pub(super) fn tell_subscribers(
        &self,
        server: &Server,
        uri: &str,
        concerns: Option<&dyn Fn(&Principal) -> bool>,
        reporter: Option<&str>,
    ) {
        let change = Change::Updated(uri.into());
        let by_access = self.guards_updates() || server.access_rules().visible.is_some();
        if !by_access && concerns.is_none() {
            return server.hub().publish(change);
        }
        let is_unclear = Cell::new(false);
        server.hub().publish_to(change, |access| {
            if access.is_full() {
                return true;
            }
            // a subscriber may have lost the scopes with which it subscribed
            let Ok((resource, _)) = self.find(uri, access) else { return false };
            match concerns {
                Some(concerns) => access.caller().is_some_and(|caller| {
                    catch_unwind(AssertUnwindSafe(|| concerns(caller))).unwrap_or(false)
                }),
                None if resource.differs_by_caller() => {
                    is_unclear.set(is_unclear.get() || reporter.is_none());
                    reporter.is_some() && reporter == principal_digest(access.caller()).as_deref()
                }
                None => true,
            }
        });
        if is_unclear.get() && server.may_warn_of_update() {
            tracing::warn!(
                uri,
                "subscribers were not told of an update: what the resource returns may differ by caller\n\
                 say whom it concerns: `handle.resource_updated_for(uri, |principal| ..)`, or decide on subscriptions \
                 with `subscribe = path`"
            );
        }
    }
}
