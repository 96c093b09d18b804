//! Callers whose certificates nginx verifies, with the settings of docs/behind-a-proxy.md.

use std::{net::SocketAddr, sync::Arc};

use mcp_external_tests::{nginx::Nginx, replicas::free_addresses, skip};
use mcp_runtime::{Principal, prelude::*};
use mcp_tests::support::PATIENCE;
use mcp_tests::support::{HttpRequest, HttpServer, text_of};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivatePkcs8KeyDer},
    },
};

/// Who calls
#[mcp_tool(scopes("admin"))]
fn whoami(caller: &Principal) -> String {
    caller.subject().to_owned()
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate of a client, or of the host `localhost`, and its key.
struct Issued {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

fn issue(authority: &Authority, name: &str, has_expired: bool) -> Issued {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    if has_expired {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    }
    let key = KeyPair::generate().unwrap();
    Issued { certificate: params.signed_by(&key, authority).unwrap(), key }
}

/// Sends one request with a certificate, or without; the status and the body.
async fn send(
    to: SocketAddr,
    server: &Authority,
    client: Option<&Issued>,
    request: HttpRequest,
) -> (u16, Value) {
    let mut roots = RootCertStore::empty();
    roots.add(server.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let config = match client {
        Some(Issued { certificate, key }) => {
            let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
            let key = PrivatePkcs8KeyDer::from(key.serialize_der());
            config.with_client_auth_cert(chain, key.into()).unwrap()
        }
        None => config.with_no_client_auth(),
    };
    let exchange = async {
        let stream = TcpStream::connect(to).await.unwrap();
        let name = "localhost".try_into().unwrap();
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        stream.write_all(&request.with("Connection", "close").bytes()).await.unwrap();
        let mut response = Vec::new();
        // nginx may close the connection without the end of TLS
        let _ended = stream.read_to_end(&mut response).await;
        String::from_utf8(response).unwrap()
    };
    let response = timeout(PATIENCE, exchange).await.expect("a response");
    let (head, body) = response.split_once("\r\n\r\n").expect("a response");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, serde_json::from_str(body).unwrap_or_default())
}

#[tokio::test]
async fn a_caller_is_who_its_certificate_says_and_no_header_of_a_client_changes_that() {
    let server = mcp_runtime::server!().tool::<whoami>().http(|http| {
        http.allowed_hosts(["localhost"]).caller(|parts| {
            let subject = parts.headers.get("x-client-subject")?.to_str().ok()?;
            let scopes = if subject == "CN=ada" { &["admin"][..] } else { &[] };
            Some(Principal::new("urn:example:clients", subject).with_scopes(scopes.iter().copied()))
        })
    });
    let server = HttpServer::start(server).await;
    let (ours, others) = (authority("Ours"), authority("Others"));
    let host = issue(&ours, "host", false);
    let [at] = free_addresses();
    let files = [
        ("server.pem", host.certificate.pem()),
        ("server.key", host.key.serialize_pem()),
        ("clients-ca.pem", ours.pem()),
    ];
    let backend = server.address;
    let nginx = Nginx::start_with(at, &files, |folder| {
        let folder = folder.display();
        format!(
            r#"
    server {{
        listen {at} ssl;
        ssl_certificate {folder}/server.pem; ssl_certificate_key {folder}/server.key;
        ssl_client_certificate {folder}/clients-ca.pem; ssl_verify_client on;
        location /mcp {{
            proxy_pass http://{backend}; proxy_http_version 1.1;
            proxy_set_header Host $host; proxy_set_header Connection ""; proxy_buffering off;
            proxy_set_header X-Client-Subject $ssl_client_s_dn;
        }}
    }}"#
        )
    });
    let nginx = match nginx {
        Ok(nginx) => nginx,
        Err(missing) => {
            return skip(
                "a_caller_is_who_its_certificate_says_and_no_header_of_a_client_changes_that",
                &missing,
            );
        }
    };
    let call = || {
        let call = HttpRequest::modern(1, "tools/call", json!({ "name": "whoami", "arguments": {} }));
        call.with("Host", "localhost").header("X-Client-Subject", "CN=ada")
    };
    let (ada, bob) = (issue(&ours, "ada", false), issue(&ours, "bob", false));
    let (status, reply) = send(at, &ours, Some(&ada), call()).await;
    assert_eq!((status, text_of(&reply)), (200, "CN=ada"), "{}", nginx.errors());
    // what is not for its scopes is unknown to it, whatever it says who it is
    let (status, reply) = send(at, &ours, Some(&bob), call()).await;
    assert_eq!((status, &reply["error"]["code"]), (200, &json!(-32602)), "{reply}");
    // nothing of these arrives at the server
    let refused = [None, Some(issue(&others, "ada", false)), Some(issue(&ours, "ada", true))];
    for certificate in &refused {
        let (status, reply) = send(at, &ours, certificate.as_ref(), call()).await;
        assert_eq!((status, &reply), (400, &Value::Null));
    }
}
