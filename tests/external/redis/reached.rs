//! The ways to Redis besides TCP: TLS with a certificate of a private authority, and sentinels.

use std::time::Duration;

use mcp_external_tests::{redis::RedisServer, skip};
use mcp_runtime::{
    store::{Redis, Shared, Table},
    testing::check_shared,
};
use mcp_tests::support::{AnyStore, HttpServer, TestFolder, text_of, within};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::time::sleep;

use super::until_back;
use crate::shared::replicas::server;

/// A private authority, and what a server at 127.0.0.1 needs of it: in PEM the certificate of the authority, that of the
/// server, and its key.
fn authority() -> [String; 3] {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, "Private authority");
    let key = KeyPair::generate().expect("a key");
    let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
    let certificate = params.signed_by(&key, &issuer).expect("a certificate");
    [issuer.as_ref().pem(), certificate.pem(), key.serialize_pem()]
}

#[tokio::test]
async fn redis_is_reached_over_tls_with_a_certificate_of_a_private_authority_and_with_no_other() {
    let [root, certificate, key] = authority();
    let folder = TestFolder::default();
    let file = |name: &str, text: &str| folder.write(name, text).display().to_string();
    let [root_file, certificate, key] =
        [file("root.pem", &root), file("certificate.pem", &certificate), file("key.pem", &key)];
    let arguments = [
        "--port",
        "0",
        "--tls-port",
        "{port}",
        "--tls-auth-clients",
        "no",
        "--tls-ca-cert-file",
        &root_file,
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
    ];
    let redis = match RedisServer::start_program("redis-server", &arguments) {
        Ok(redis) => redis,
        Err(missing) => return skip("redis_is_reached_over_tls", &missing),
    };
    within(async {
        let url = redis.url().replace("redis:", "rediss:");
        check_shared(&Redis::at(&url).root_certificates(&root)).await;
        let refused = Redis::at(&url).open().await.expect_err("an unknown authority").to_string();
        assert!(refused.contains("the certificate of Redis is refused"), "{refused}");
        let [other, ..] = authority();
        let refused = Redis::at(&url).root_certificates(&other).open().await.expect_err("another authority");
        assert!(refused.to_string().contains("the certificate of Redis is refused"), "{refused}");
        // the certificate is not that of this name
        let named = Redis::at(url.replace("127.0.0.1", "localhost")).root_certificates(&root);
        let refused = named.open().await.expect_err("another name").to_string();
        assert!(refused.contains("the certificate of Redis is refused"), "{refused}");
        // without TLS nothing is said there
        let plain = Redis::at(redis.url());
        plain.open().await.expect("it may be there later");
        assert!(plain.get(&Table::new("a", 1, 1, 100), "a").await.is_err());
    })
    .await;
}

#[tokio::test]
async fn sentinels_lead_to_the_primary_and_after_a_failover_to_the_next_one() {
    let started = RedisServer::start().and_then(|primary| {
        let port = primary.port().to_string();
        let other = RedisServer::start_program("redis-server", &["--replicaof", "127.0.0.1", &port])?;
        let sentinel = RedisServer::start_sentinel(&primary)?;
        Ok((primary, other, sentinel))
    });
    let (primary, other, sentinel) = match started {
        Ok(started) => started,
        Err(missing) => return skip("sentinels_lead_to_the_primary", &missing),
    };
    within(async {
        // nothing listens at the first address
        let url = format!("redis+sentinel://127.0.0.1:1,127.0.0.1:{}/main", sentinel.port());
        let store: AnyStore = AnyStore::new(Redis::at(&url));
        let at = HttpServer::start(server(&store)).await;
        let used = until_back(&at).await;
        assert!(!primary.keys().is_empty());
        for _ in 0..12_000 {
            if sentinel.command(&["SENTINEL", "REPLICAS", "main"]).contains(&other.port().to_string())
                && !other.keys().is_empty()
            {
                break;
            }
            sleep(Duration::from_millis(100)).await;
        }
        let is_master = |server: &RedisServer| server.command(&["ROLE"]).contains("master");
        for _ in 0..12_000 {
            match (is_master(&other), is_master(&primary)) {
                (true, false) => break,
                (true, true) => {}
                // until it has seen that the replica is a good one; and again, since a busy machine may abort a failover
                (false, _) => drop(sentinel.command(&["SENTINEL", "FAILOVER", "main"])),
            }
            sleep(Duration::from_millis(100)).await;
        }
        assert!(is_master(&other), "{}", sentinel.command(&["SENTINEL", "MASTERS"]));
        until_back(&at).await;
        assert!(text_of(&used.send(at.address).await.json()).contains("used before"), "it was replicated");

        let unknown = Redis::at(url.replace("/main", "/other"));
        let refused = unknown.open().await.expect_err("no such service").to_string();
        assert!(refused.contains("does not know `other`"), "{refused}");
    })
    .await;
}
