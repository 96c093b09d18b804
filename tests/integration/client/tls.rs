//! TLS with an authority of the program's own; `tests/external/tls.rs` has every suite.

use std::sync::Arc;

use mcp_runtime::client::{Client, Error};
use rcgen::KeyPair;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::rustls::{
    ConfigBuilder, ServerConfig, WantsVerifier,
    crypto::ring,
    version::{TLS12, TLS13},
};

use super::{
    builder,
    tls_listener::{TestCertificate, TlsListener},
    within,
};

/// The URL of a server with this certificate.
async fn serve_config(
    certificate: &TestCertificate,
    config: ConfigBuilder<ServerConfig, WantsVerifier>,
) -> String {
    let app = builder().build().unwrap().into_router().unwrap();
    TlsListener::serve(certificate, config, app).await + "/mcp"
}

/// A server whose certificate only this authority has signed; its URL, and the authority in PEM.
async fn serve() -> (String, String) {
    let certificate = TestCertificate::new(&KeyPair::generate().unwrap());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    (serve_config(&certificate, config).await, certificate.authority)
}

/// Passes bytes on, and changes the one at `at` of those that the server sends.
async fn forward_changed(target: String, at: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(&target).await.unwrap();
            let ((mut from_near, mut to_near), (mut from_far, mut to_far)) =
                (near.into_split(), far.into_split());
            tokio::spawn(async move { tokio::io::copy(&mut from_near, &mut to_far).await });
            tokio::spawn(async move {
                tokio::io::copy(&mut (&mut from_far).take(at), &mut to_near).await?;
                let changed = from_far.read_u8().await? ^ 1;
                to_near.write_u8(changed).await?;
                tokio::io::copy(&mut from_far, &mut to_near).await
            });
        }
    });
    format!("https://localhost:{port}/mcp")
}

#[tokio::test]
async fn a_byte_that_is_changed_on_the_way_ends_the_connection() {
    for version in [&TLS13, &TLS12] {
        let certificate = TestCertificate::new(&KeyPair::generate().unwrap());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap();
        let url = serve_config(&certificate, config).await;
        let target = url.trim_start_matches("https://").trim_end_matches("/mcp").to_owned();
        let url = forward_changed(target, 20_000).await;
        let client = Client::builder().root_certificates(&certificate.authority).connect(&url);
        let client = within(client).await.unwrap();
        let message = "x".repeat(100_000);
        let echoed = within(client.call("echo", json!({ "message": message })).into_future()).await;
        assert!(matches!(echoed, Err(Error::NotConnected { .. })), "{version:?}: {echoed:?}");
    }
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
