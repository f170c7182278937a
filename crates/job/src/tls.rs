//! TLS 1.3 with the keys of a job: both ends show one, and both check it against the job's authority.

use crate::keys::SERVER_NAME;
use crate::transport::Refusal;
use crate::{Identity, Key, Result};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{CertificateError, ClientConfig, RootCertStore, ServerConfig};
use std::io;
use std::sync::Arc;

/// HTTP/2, the only protocol on top.
const PROTOCOL: &[u8] = b"h2";

fn roots(key: &Key) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add(key.authority.clone())?;
    Ok(roots)
}

/// What a listener accepts connections with.
pub(crate) fn server(key: &Key) -> Result<Arc<ServerConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(key)?), provider.clone())
        // The name of the job is nothing to those without a key.
        .clear_root_hint_subjects()
        .build()
        .map_err(|error| rustls::Error::General(error.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![key.certificate.clone()], key.secret.clone_key())?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    // Each connection shows its key: a resumed session could be that of a key that has expired.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// What connects to a listener.
pub(crate) fn client(key: &Key) -> Result<Arc<ClientConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots(key)?)
        .with_client_auth_cert(vec![key.certificate.clone()], key.secret.clone_key())?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

/// The name that a listener is called by.
pub(crate) fn server_name() -> ServerName<'static> {
    ServerName::try_from(SERVER_NAME).unwrap_or_else(|_| unreachable!("the name is a DNS name"))
}

/// Who the other end is: of a certificate that has been verified.
pub(crate) fn peer(certificates: Option<&[CertificateDer<'_>]>) -> Option<Identity> {
    Identity::of_certificate(certificates?.first()?)
}

/// Why a handshake failed.
pub(crate) fn refusal(error: &io::Error) -> Refusal {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        None | Some(rustls::Error::AlertReceived(_)) => Refusal::BrokenOff,
        Some(rustls::Error::NoCertificatesPresented) => Refusal::NoKey,
        Some(rustls::Error::InvalidCertificate(why)) => match why {
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Refusal::Expired,
            _ => Refusal::OtherJob,
        },
        Some(_) => Refusal::NotTls,
    }
}
