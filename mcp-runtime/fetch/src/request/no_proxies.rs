//! Without the feature `client`, no proxy is used: a server does not read its environment.

use http::{HeaderMap, Uri};

use super::connector::{ConnectError, Connector, HttpStream};

/// The proxies that are used, of which there are none.
#[derive(Clone)]
pub(super) struct Proxies(());

impl Proxies {
    pub(super) fn none() -> Self {
        Self(())
    }

    pub(super) fn of_environment() -> Self {
        Self(())
    }

    pub(super) fn authorize(&self, _target: &Uri, _headers: &mut HeaderMap) {}
}

impl Connector {
    pub(super) async fn connect_through_proxy(
        &self,
        _target: &Uri,
    ) -> Option<Result<HttpStream, ConnectError>> {
        let Proxies(()) = self.proxies;
        None
    }
}
