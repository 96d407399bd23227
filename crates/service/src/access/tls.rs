//! Certificates and keys of TLS 1.2 and 1.3 (RFC 5246, RFC 8446), in PEM (RFC 7468), by rustls.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use nilometer_storage::user_file;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use serde::Deserialize;

use super::secret;
use crate::error::{ServiceError, require, with_causes};

/// The PEM files for HTTP over TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsFiles {
    /// Answer HTTP over TLS only (HTTPS), with the certificate in this PEM file, followed by those of its issuers
    #[arg(id = "tls_certificate", long = "tls-certificate", value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// The private key of the certificate, in PEM; other users must not be able to read it
    #[arg(id = "tls_key", long = "tls-key", value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Answer only clients with a certificate that an authority in this PEM file issued (mutual TLS)
    #[arg(id = "tls_clients", long = "tls-clients", value_name = "FILE")]
    pub clients: Option<PathBuf>,
}

impl TlsFiles {
    /// Takes each file from `below` if it is missing here.
    #[must_use]
    pub fn over(self, below: TlsFiles) -> TlsFiles {
        TlsFiles {
            certificate: self.certificate.or(below.certificate),
            key: self.key.or(below.key),
            clients: self.clients.or(below.clients),
        }
    }

    /// Returns true if there are no files.
    pub fn is_empty(&self) -> bool {
        self.paths().is_empty()
    }

    /// The paths of all named files.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        [&self.certificate, &self.key, &self.clients].into_iter().flatten().cloned().collect()
    }

    /// The configuration of a TLS server that uses these files.
    pub(super) fn server_config(&self) -> Result<Arc<ServerConfig>, ServiceError> {
        let (Some(certificate), Some(key)) = (&self.certificate, &self.key) else {
            return Err(ServiceError::AskedWrongly(
                "TLS needs both --tls-certificate and --tls-key (certificate and key of [service.tls])"
                    .into(),
            ));
        };
        let chain = certificates(certificate, "certificate")?;
        let private = secret(key, "private key")?;
        let private = PrivateKeyDer::from_pem_slice(&private)
            .map_err(|error| wrong(key, "private key", &with_causes(&error)))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(ServiceError::failed)?;
        let builder = match &self.clients {
            None => builder.with_no_client_auth(),
            Some(file) => builder.with_client_cert_verifier(clients(file, provider)?),
        };
        let config = builder.with_single_cert(chain, private);
        config.map(Arc::new).map_err(|error| wrong(certificate, "certificate", &with_causes(&error)))
    }
}

/// All certificates in a file. A file without any is an error.
pub(crate) fn certificates(path: &Path, what: &str) -> Result<Vec<CertificateDer<'static>>, ServiceError> {
    let bytes = user_file::bytes(path, what).map_err(ServiceError::asked_wrongly)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| wrong(path, what, &with_causes(&error)))?;
    require(!found.is_empty(), || {
        format!("the {what} {}: no BEGIN CERTIFICATE stands in it", path.display())
    })?;
    Ok(found)
}

/// The check of clients' certificates against the authorities in a file.
fn clients(path: &Path, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, ServiceError> {
    const WHAT: &str = "certificates of clients' authorities";
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, WHAT)? {
        roots.add(certificate).map_err(|error| wrong(path, WHAT, &with_causes(&error)))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    verifier.map_err(|error| wrong(path, WHAT, &with_causes(&error)))
}

fn wrong(path: &Path, what: &str, why: &str) -> ServiceError {
    ServiceError::AskedWrongly(format!("the {what} {}: {why}", path.display()))
}
