//! Who may reach a service, and how: certificates and keys for TLS, and tokens that say who asks.
//!
//! ```text
//! TlsFiles, tokens file -> AccessSecrets (read anew when a file changes) -> ClientStream, TokenHolder
//! ```

mod reread;
mod tls;
mod tokens;

use std::{fs, os::unix::fs::MetadataExt, path::Path, sync::Arc};

use nilometer_storage::user_file;
use rustls::ServerConfig;

use crate::{
    client_stream::{ClientStream, TimedSocket},
    error::{OperatorLog, ServiceError, require},
};
use reread::Reread;
pub use tls::TlsFiles;
pub(crate) use tokens::{AccessTokens, TokenHolder};

/// By what clients are known, and what keeps their talk secret.
#[derive(Debug, Clone, Default)]
pub(crate) struct AccessSecrets {
    tls: Option<Arc<Reread<Arc<ServerConfig>>>>,
    tokens: Option<Arc<Reread<AccessTokens>>>,
}

impl AccessSecrets {
    /// Reads the files. Each is read again when it changes: a certificate is renewed, and a token taken away, without a restart.
    ///
    /// # Errors
    ///
    /// A file can't be read, others may read it though it is secret, or it does not say what it should.
    pub(crate) fn read(
        tls: &TlsFiles,
        tokens: Option<&Path>,
        log: OperatorLog,
    ) -> Result<Self, ServiceError> {
        let files = Some(tls).filter(|files| !files.is_empty()).cloned();
        let tls = files.map(|files| {
            Reread::open("TLS", files.paths(), move || files.server_config(), log).map(Arc::new)
        });
        let tokens = tokens.map(|path| {
            let file = path.to_owned();
            Reread::open("tokens", vec![file.clone()], move || AccessTokens::read(&file), log).map(Arc::new)
        });
        Ok(AccessSecrets { tls: tls.transpose()?, tokens: tokens.transpose()? })
    }

    /// Whether what is said is encrypted.
    pub(crate) fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// What a line that says where a service listens adds.
    pub(crate) fn described(&self) -> &'static str {
        match (self.tls.is_some(), self.tokens.is_some()) {
            (false, false) => "",
            (true, false) => ", by TLS",
            (false, true) => ", for those who have a token",
            (true, true) => ", by TLS, for those who have a token",
        }
    }

    /// The tokens that are valid now. `None` if nobody needs one.
    pub(crate) fn tokens(&self) -> Option<Arc<AccessTokens>> {
        self.tokens.as_ref().map(|tokens| tokens.get())
    }

    /// What is said over this connection, by TLS if there is a certificate.
    pub(crate) fn stream(&self, socket: TimedSocket) -> Result<ClientStream, rustls::Error> {
        match &self.tls {
            None => Ok(ClientStream::plain(socket)),
            Some(config) => ClientStream::tls(config.get().as_ref().clone(), socket),
        }
    }
}

/// The bytes of a file that nobody else may read or change.
fn secret(path: &Path, what: &str) -> Result<Vec<u8>, ServiceError> {
    let bytes = user_file::bytes(path, what).map_err(ServiceError::asked_wrongly)?;
    let mode = fs::metadata(path).map_err(ServiceError::asked_wrongly)?.mode();
    require(mode & 0o006 == 0, || {
        let path = path.display();
        format!("the {what} {path}: any user of this machine may read or change it: chmod o= {path}")
    })?;
    Ok(bytes)
}
