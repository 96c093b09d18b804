//! Webhooks over TLS.

use std::collections::BTreeSet;

use mcp_runtime::event;
use rcgen::KeyPair;
use tokio_rustls::rustls::{ServerConfig, crypto::ring};

use super::webhook::{Endpoint, note_added, secret, start};
use crate::{
    client::tls_listener::{TestCertificate, TlsListener},
    prelude::*,
};

/// An endpoint over TLS.
async fn start_tls(certificate: &TestCertificate) -> Endpoint {
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let endpoint = Endpoint::default();
    let site = TlsListener::serve(certificate, config, endpoint.router()).await;
    Endpoint { url: format!("{site}/hook"), ..endpoint }
}

fn trusting(authorities: &[&str]) -> ServerBuilder {
    let builder = Server::builder("notes", "1").add(event::of::<note_added>());
    builder.http(|http| http.caller(|_| None)).limits(|limits| {
        limits.events(|events| {
            let events = events.webhooks_on_loopback();
            authorities.iter().fold(events, |events, pem| events.webhook_root_certificates(pem))
        })
    })
}

#[tokio::test]
async fn a_hundred_events_come_over_tls_from_an_authority_that_the_server_trusts_and_none_from_another() {
    let [own, second, unknown] = [(); 3].map(|()| TestCertificate::new(&KeyPair::generate().unwrap()));
    // each call adds its authorities
    let server = start(trusting(&[&second.authority, &own.authority])).await;
    let endpoint = start_tls(&own).await;
    let reply = server.subscribe("ada", &endpoint.url).await;
    assert!(reply["result"]["id"].is_string(), "{reply}");
    let sent: BTreeSet<String> = (0..100).map(|number| number.to_string()).collect();
    for number in &sent {
        server.emit(number, "tea").await;
    }
    assert!(soon(|| endpoint.events().len() >= 100).await, "{:?}", endpoint.events());
    assert_eq!(endpoint.events().into_iter().collect::<BTreeSet<_>>(), sent);
    assert!(endpoint.messages().iter().all(|message| message.is_signed_by(&secret(1))));
    let reply = server.subscribe("bob", &start_tls(&second).await.url).await;
    assert!(reply["result"]["id"].is_string(), "{reply}");

    // of an authority that no server trusts, and of one that only the other server trusts
    let trusts_none = start(trusting(&[])).await;
    for (server, endpoint) in [(&server, start_tls(&unknown).await), (&trusts_none, endpoint)] {
        let before = endpoint.messages().len();
        let refused = server.subscribe("eve", &endpoint.url).await;
        let error = &refused["error"];
        assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32027), &json!("tls_error")));
        assert_eq!(endpoint.messages().len(), before, "nothing was sent");
    }
}

#[test]
fn root_certificates_of_webhooks_that_are_not_in_pem_are_an_error_of_build() {
    let own = TestCertificate::new(&KeyPair::generate().unwrap());
    for bad in ["", "no certificate", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"] {
        for all in [[bad, &own.authority], [&own.authority, bad]] {
            let error = trusting(&all).build().expect_err("it is not PEM").to_string();
            assert!(error.contains("the root certificates for webhooks are not in PEM"), "{bad}: {error}");
        }
    }
}
