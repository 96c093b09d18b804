//! TLS with an authority of the program's own.

use std::{io, net::SocketAddr, sync::Arc};

use axum::serve::Listener;
use mcp_runtime::client::{Client, Error};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
    server::TlsStream,
};

use super::{builder, within};

/// Accepts connections whose handshake succeeds.
struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
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

/// A server whose certificate only this authority has signed; its URL, and the authority in PEM.
async fn serve() -> (String, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/mcp", tcp.local_addr().unwrap().port());
    let listener = TlsListener { tcp, acceptor: TlsAcceptor::from(Arc::new(config)) };
    let app = builder().build().unwrap().into_router().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, authority.pem())
}

#[tokio::test]
async fn an_authority_of_ones_own_is_trusted_only_if_the_program_says_so() {
    let (url, pem) = serve().await;
    let error = within(Client::connect(&url)).await.unwrap_err();
    assert!(matches!(&error, Error::NotConnected { reason } if reason.contains("certificate")), "{error:?}");
    let client = within(Client::builder().root_certificates(&pem).connect(&url)).await.unwrap();
    assert_eq!(client.read("note://one").await.unwrap().text().unwrap(), "noted");
    // one that trusts it does not make others trust it
    assert!(within(Client::connect(&url)).await.is_err());
    for bad in ["", "no certificate", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"] {
        let refused = within(Client::builder().root_certificates(bad).connect(&url)).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{bad}");
    }
}
