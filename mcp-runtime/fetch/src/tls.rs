//! The configuration of TLS: the roots of the operating system, and cryptography that is this crate's own affair.

use std::sync::{Arc, OnceLock};

use rustls::{ClientConfig, pki_types::CertificateDer};
use rustls_platform_verifier::Verifier;

use super::tls_provider::provider;

/// The configuration with the roots of the operating system, which take a while to read, and these.
///
/// # Errors
/// The roots of the operating system cannot be read, or these are not certificates.
pub fn tls_config(roots: &[CertificateDer<'static>]) -> Result<Arc<ClientConfig>, String> {
    static TLS: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let config = if roots.is_empty() { TLS.get_or_init(|| configure(&[])).clone() } else { configure(roots) };
    config.map_err(|error| format!("no TLS: {error}"))
}

fn configure(roots: &[CertificateDer<'static>]) -> Result<Arc<ClientConfig>, String> {
    // of its own: the program may have installed another provider, or none
    let provider = Arc::new(provider());
    let verifier = Verifier::new_with_extra_roots(roots.iter().cloned(), provider.clone());
    let verifier = verifier.map_err(|error| error.to_string())?;
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    // "dangerous" is any verifier that is not rustls' own
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
