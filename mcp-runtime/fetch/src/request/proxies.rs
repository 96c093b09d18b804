//! The proxies that the environment of the program names.

use std::sync::Arc;

use http::{HeaderMap, Uri, header, uri::Scheme};
use hyper_util::client::{
    legacy::connect::proxy::Tunnel,
    proxy::matcher::{Intercept, Matcher},
};
use tower_service::Service as _;

use super::{
    connector::{ConnectError, Connector, HttpStream, Network},
    reach::{Reach, is_loopback_host},
};

/// The proxies of the environment, if they are used.
#[derive(Clone)]
pub(super) struct Proxies(Option<Arc<Matcher>>);

impl Proxies {
    /// No proxy is used.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Those that the environment of the program names.
    pub(super) fn of_environment() -> Self {
        Self(Some(Arc::new(Matcher::from_env())))
    }

    /// The proxy for a URL. None reaches this machine's loopback.
    fn of(&self, target: &Uri) -> Option<Intercept> {
        let matcher = self.0.as_ref()?;
        let url = target.to_string().parse().ok()?;
        if is_loopback_host(&url) { None } else { matcher.intercept(target) }
    }

    /// A proxy that forwards requests finds its credentials in each; in a tunnel there are none.
    pub(super) fn authorize(&self, target: &Uri, headers: &mut HeaderMap) {
        if target.scheme() == Some(&Scheme::HTTP)
            && let Some(proxy) = self.of(target)
            && let Some(credentials) = proxy.basic_auth()
        {
            let mut credentials = credentials.clone();
            credentials.set_sensitive(true);
            headers.insert(header::PROXY_AUTHORIZATION, credentials);
        }
    }
}

impl Connector {
    /// Connects through the proxy for a URL; `None` if there is none.
    pub(super) async fn connect_through_proxy(
        &self,
        target: &Uri,
    ) -> Option<Result<HttpStream, ConnectError>> {
        let proxy = self.proxies.of(target)?;
        Some(self.connect_through(&proxy, target).await)
    }

    async fn connect_through(&self, proxy: &Intercept, target: &Uri) -> Result<HttpStream, ConnectError> {
        if !matches!(proxy.uri().scheme_str(), Some("http" | "https")) {
            return Err(
                "the proxy of the environment is of a kind that is not supported: `http:` and `https:` are"
                    .into(),
            );
        }
        // the program's environment names it, and no document
        let network = Network { reach: Reach::Any, ..self.network.clone() };
        let to_proxy = Self::new(network, Proxies::none(), self.limit);
        if target.scheme() != Some(&Scheme::HTTPS) {
            let stream = to_proxy.connect_directly(proxy.uri()).await?;
            return Ok(HttpStream { peer: None, is_forwarded: true, ..stream });
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        let stream = tunnel.call(target.clone()).await?;
        self.secure(HttpStream { peer: None, ..stream }, target).await
    }
}
