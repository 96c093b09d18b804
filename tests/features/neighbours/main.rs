//! A program that uses TLS in other ways besides: `reqwest` and `rustls` as they come, and an exporter of OpenTelemetry.
//! None of them notices the features `auth` and `client-oauth`.

use std::{io::Write as _, sync::Arc};

use mcp_runtime::{
    auth::Oauth,
    client::{Client, OAuth},
};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

type Failure = Box<dyn std::error::Error>;

/// Answers every request over TLS with `hello`; its URL, and the authority of its certificate in PEM.
async fn serve() -> Result<(String, CertifiedIssuer<'static, KeyPair>), Failure> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["localhost".to_owned()])?.signed_by(&key, &authority)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    // the provider of the program, which rustls knows by the features of the program
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![certificate.der().clone()], key)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("https://localhost:{}/", listener.local_addr()?.port());
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut request = [0; 4096];
            if stream.read(&mut request).await.is_ok() {
                let response = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";
                let _written = stream.write_all(response).await;
                let _closed = stream.shutdown().await;
            }
        }
    });
    Ok((url, authority))
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let (url, authority) = serve().await?;

    let plain = reqwest::Client::new();
    assert!(plain.get(&url).send().await.is_err(), "the authority is not known");
    let root = reqwest::Certificate::from_pem(authority.pem().as_bytes())?;
    let text =
        reqwest::Client::builder().add_root_certificate(root).build()?.get(&url).send().await?.text().await?;

    let exporter = SpanExporter::builder().with_http().with_endpoint(&url).build();
    assert!(exporter.is_ok(), "{exporter:?}");

    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone())?;
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(url.trim_start_matches("https://").trim_end_matches('/')).await?;
    TlsConnector::from(Arc::new(config)).connect("localhost".try_into()?, stream).await?;

    // the server does not speak MCP, which is found out over TLS
    let oauth = OAuth::headless("http://127.0.0.1:1/callback");
    let client = Client::builder().root_certificates(&authority.pem()).oauth(oauth).connect(&url);
    let error = client.await.expect_err("not a server").to_string();
    assert!(!error.contains("certificate"), "{error}");
    let _verifier = Oauth::issuer("https://id.example.com").resource("https://mcp.example.com/mcp");

    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}
