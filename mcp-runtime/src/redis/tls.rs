//! TLS of connections to Redis, with the feature `redis-tls`.

use std::sync::{Arc, OnceLock};

use rustls::{
    ClientConfig,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{Redis, target::OpenError};
use crate::fetch::tls_config;

#[derive(Clone)]
pub(super) struct Tls {
    /// Authorities in addition to those of the operating system.
    roots: Vec<CertificateDer<'static>>,
    /// Made for the first connection, since the authorities of the operating system take a while to read.
    config: Arc<OnceLock<Result<Arc<ClientConfig>, String>>>,
}

impl Redis {
    /// Trusts these authorities in addition to those of the operating system: certificates in PEM. For a URL with TLS.
    #[must_use]
    pub fn root_certificates(mut self, pem: &str) -> Self {
        self.target = self.target.and_then(|target| {
            let mut target = Arc::unwrap_or_clone(target);
            let Some(tls) = &mut target.tls else {
                return Err("the URL of Redis does not ask for TLS, for which root certificates are\n\
                     write `rediss://`"
                    .into());
            };
            match CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>() {
                Ok(roots) if !roots.is_empty() => tls.roots.extend(roots),
                _ => return Err("the root certificates for Redis are not in PEM".into()),
            }
            tls.config = Arc::default();
            Ok(Arc::new(target))
        });
        self.link = Arc::default();
        self
    }
}

impl Tls {
    /// # Errors
    /// Without the feature, that it is missing.
    pub(super) fn new() -> Result<Self, String> {
        Ok(Self { roots: Vec::new(), config: Arc::default() })
    }

    /// TLS over an open connection.
    pub(super) async fn secure(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, OpenError> {
        let config = self.config.get_or_init(|| {
            let mut config = (*tls_config(&self.roots)?).clone();
            // that is for HTTP
            config.alpn_protocols.clear();
            Ok(config.into())
        });
        let refused = |message| OpenError { message, is_final: true };
        let config = config.clone().map_err(refused)?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| refused("the host of Redis has a name that no certificate can have".into()))?;
        let secured = TlsConnector::from(config).connect(name, stream).await;
        secured.map_err(|error| {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
            match inner {
                Some(rustls::Error::InvalidCertificate(why)) => {
                    refused(format!("the certificate of Redis is refused: {why}"))
                }
                _ => OpenError::from(error),
            }
        })
    }
}
