//! TLS with another implementation than the one of `mcp-runtime`.

use std::sync::Arc;

use mcp_runtime::{client::Client, prelude::*};
use mcp_tests::support::within;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256};
use serde_json::json;
use tokio_rustls::rustls::{
    ServerConfig,
    crypto::{
        CryptoProvider,
        aws_lc_rs::{self, kx_group},
    },
    version::{TLS12, TLS13},
};

use tls_listener::{TestCertificate, TlsListener};

#[path = "../integration/client/tls_listener.rs"]
mod tls_listener;

/// Echoes its argument
#[mcp_tool]
fn echo(message: String) -> String {
    message
}

#[tokio::test]
async fn every_suite_key_exchange_and_kind_of_certificate_works_in_tls_1_2_and_1_3() {
    let keys = [
        ("ECDSA", KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap()),
        ("ECDSA", KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap()),
        ("ECDSA", KeyPair::generate_for(&PKCS_ED25519).unwrap()),
        ("RSA", KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap()),
    ];
    let groups = [kx_group::X25519, kx_group::SECP256R1, kx_group::SECP384R1];
    let mut tried = 0;
    for (kind, key) in &keys {
        let certificate = TestCertificate::new(key);
        for suite in aws_lc_rs::ALL_CIPHER_SUITES {
            let is_modern = suite.tls13().is_some();
            let name = format!("{:?}", suite.suite());
            if !is_modern && !name.contains(kind) {
                continue;
            }
            let provider = CryptoProvider {
                cipher_suites: vec![*suite],
                kx_groups: vec![groups[tried % groups.len()]],
                ..aws_lc_rs::default_provider()
            };
            tried += 1;
            let versions: &[_] = if is_modern { &[&TLS13] } else { &[&TLS12] };
            let config = ServerConfig::builder_with_provider(Arc::new(provider))
                .with_protocol_versions(versions)
                .unwrap();
            let app = mcp_runtime::server!().tool::<echo>().build().unwrap().into_router().unwrap();
            let url = TlsListener::serve(&certificate, config, app).await + "/mcp";
            let client = Client::builder().root_certificates(&certificate.authority).connect(&url);
            let client = within(client).await.unwrap_or_else(|error| panic!("{name} {kind}: {error}"));
            // many records, in both directions
            let message = "x".repeat(100_000);
            let echoed = within(client.call("echo", json!({ "message": message })).into_future()).await;
            assert_eq!(echoed.unwrap().text(), message, "{name} {kind}");
        }
    }
    assert_eq!(tried, 3 * 4 + 3 * 3 + 3);
}
