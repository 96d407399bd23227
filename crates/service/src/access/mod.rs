//! Access to a service: certificates and keys for TLS, and tokens that identify clients.
//!
//! ```text
//! TlsFiles, tokens file -> AccessSecrets (read anew when a file changes) -> ClientStream, TokenHolder
//! ```

mod reread;
mod tls;
mod tokens;

use std::{fs, os::unix::fs::MetadataExt, path::Path, sync::Arc};

use nilometer_storage::{PATIENCE, in_time, user_file};
use rustls::ServerConfig;

use crate::{
    client_stream::{ClientStream, TimedSocket},
    error::{OperatorLog, ServiceError, require},
};
use reread::Reread;
pub use tls::TlsFiles;
pub(crate) use tls::certificates;
pub(crate) use tokens::{AccessTokens, TokenHolder};

/// The certificates and tokens by which a service identifies clients and encrypts connections.
#[derive(Debug, Clone, Default)]
pub(crate) struct AccessSecrets {
    tls: Option<Arc<Reread<Arc<ServerConfig>>>>,
    tokens: Option<Arc<Reread<AccessTokens>>>,
}

impl AccessSecrets {
    /// Reads the files. [`Reread`] reads each again when it changes, so that you can renew a certificate or
    /// remove a token without a restart.
    ///
    /// # Errors
    ///
    /// A file can't be read, other users can read a secret file, or its content is invalid.
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

    /// Returns true if connections are encrypted.
    pub(crate) fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// The text that a line about a listening service adds, or an empty one.
    pub(crate) fn described(&self) -> &'static str {
        match (self.tls.is_some(), self.tokens.is_some()) {
            (false, false) => "",
            (true, false) => ", by TLS",
            (false, true) => ", for those who have a token",
            (true, true) => ", by TLS, for those who have a token",
        }
    }

    /// The tokens that are valid now, or `None` if clients need none.
    pub(crate) fn tokens(&self) -> Option<Arc<AccessTokens>> {
        self.tokens.as_ref().map(|tokens| tokens.get())
    }

    /// The stream over this connection, by TLS if there is a certificate.
    pub(crate) fn stream(&self, socket: TimedSocket) -> Result<ClientStream, rustls::Error> {
        match &self.tls {
            None => Ok(ClientStream::plain(socket)),
            Some(config) => ClientStream::tls(config.get().as_ref().clone(), socket),
        }
    }
}

/// The bytes of a file. Refuses a file that any user of this machine may read or change.
pub(crate) fn secret(path: &Path, what: &str) -> Result<Vec<u8>, ServiceError> {
    let bytes = user_file::bytes(path, what).map_err(ServiceError::asked_wrongly)?;
    let named = path.to_owned();
    let found = in_time(PATIENCE, path.into(), move || fs::metadata(named));
    let found = found.map_err(ServiceError::asked_wrongly)?;
    let mode = found.map_err(ServiceError::asked_wrongly)?.mode();
    require(mode & 0o006 == 0, || {
        let path = path.display();
        format!("the {what} {path}: any user of this machine may read or change it: run chmod o= {path}")
    })?;
    Ok(bytes)
}
