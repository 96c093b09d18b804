//! Connections over TLS with a certificate that only an authority of the test has signed.

use std::{io, net::SocketAddr, sync::Arc};

use axum::{Router, serve::Listener};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ConfigBuilder, ServerConfig, WantsVerifier,
        pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    },
    server::TlsStream,
};

/// Accepts connections whose handshake succeeds.
pub(crate) struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl TlsListener {
    /// Listens on a free port of the loopback interface, with this certificate.
    async fn bind(certificate: &TestCertificate, config: ConfigBuilder<ServerConfig, WantsVerifier>) -> Self {
        let key = PrivateKeyDer::Pkcs8(certificate.key.clone_key());
        let config = config.with_no_client_auth().with_single_cert(certificate.chain.clone(), key).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self { tcp, acceptor: TlsAcceptor::from(Arc::new(config)) }
    }

    /// Serves an application, as long as the test's runtime lives; its origin.
    pub(crate) async fn serve(
        certificate: &TestCertificate,
        config: ConfigBuilder<ServerConfig, WantsVerifier>,
        app: Router,
    ) -> String {
        let listener = Self::bind(certificate, config).await;
        let port = listener.tcp.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, app).await });
        format!("https://localhost:{port}")
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let Ok((stream, address)) = self.tcp.accept().await else { continue };
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

/// A certificate for `localhost` that only an authority of its own has signed.
pub(crate) struct TestCertificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivatePkcs8KeyDer<'static>,
    /// The authority, in PEM.
    pub(crate) authority: String,
}

impl TestCertificate {
    pub(crate) fn new(key: &KeyPair) -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(key, &authority).unwrap();
        Self {
            chain: vec![certificate.der().clone()],
            key: PrivatePkcs8KeyDer::from(key.serialize_der()),
            authority: authority.pem(),
        }
    }
}
