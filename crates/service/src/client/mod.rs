//! A client of a recorder's HTTP server, for commands of this program that give orders to a recorder.
//!
//! ```text
//! DumpRequest -> RecorderClient -> one connection a request, plain or by TLS -> RecorderAnswer -> DumpReport
//! ```

mod address;
mod exchange;

use std::{path::Path, sync::Arc};

use rustls::{ClientConfig, RootCertStore, crypto::ring};
use serde::de::DeserializeOwned;

use crate::{
    access::{certificates, secret},
    dump::{BegunDumps, DumpList, DumpReport, DumpRequest},
    error::{ServiceError, require},
};
pub use address::RecorderAddress;
use exchange::{RecorderAnswer, RecorderConnection, RecorderQuestion};

/// A client of one recorder. Each request takes a connection of its own.
#[derive(Debug, Clone)]
pub struct RecorderClient {
    address: RecorderAddress,
    token: Option<String>,
    tls: Option<Arc<ClientConfig>>,
}

impl RecorderClient {
    /// Names the recorder. `token` identifies this client; it crosses a network over TLS only. `authority` is a PEM
    /// file with the authority of the recorder's certificate.
    ///
    /// # Errors
    /// A token would cross the network in the clear, the authority is missing, or its file can't be read.
    pub fn new(
        address: RecorderAddress,
        token: Option<String>,
        authority: Option<&Path>,
    ) -> Result<Self, ServiceError> {
        let is_plain = !address.has_tls();
        require(!is_plain || token.is_none() || address.is_loopback(), || {
            format!("{address} would show the token to the network: write https://HOST:PORT, and --ca")
        })?;
        require(!is_plain || authority.is_none(), || {
            format!("{address} shows no certificate that --ca could prove: write https://HOST:PORT")
        })?;
        let tls = if is_plain { None } else { Some(client_config(&address, authority)?) };
        Ok(RecorderClient { address, token, tls })
    }

    /// Reads the token of this client from a file that has the token and nothing else.
    ///
    /// # Errors
    /// The file can't be read, has no token, or any user of the machine may read it.
    pub fn token_from(path: &Path) -> Result<String, ServiceError> {
        let bytes = secret(path, "token")?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        let is_one_word = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        require(is_one_word, || {
            format!("the token {}: write the token alone into the file, without its name", path.display())
        })?;
        Ok(text)
    }

    /// Begins a dump: one, or one for each data stream.
    ///
    /// # Errors
    /// The recorder refuses the request, or does not answer.
    pub fn begin_dump(&self, request: &DumpRequest) -> Result<Vec<DumpReport>, ServiceError> {
        let body = serde_json::to_vec(request).map_err(ServiceError::failed)?;
        match self.json("POST", "/dump", &body)? {
            BegunDumps::Many(list) => Ok(list.dumps),
            BegunDumps::One(report) => Ok(vec![*report]),
        }
    }

    /// The dumps that the recorder remembers, the oldest first.
    ///
    /// # Errors
    /// The recorder refuses the request, or does not answer.
    pub fn dumps(&self) -> Result<Vec<DumpReport>, ServiceError> {
        self.json("GET", "/dumps", b"").map(|list: DumpList| list.dumps)
    }

    /// Asks a running dump to end without a file. A complete one stays.
    ///
    /// # Errors
    /// The recorder does not know the dump, or does not answer.
    pub fn end_dump(&self, id: u64) -> Result<DumpReport, ServiceError> {
        self.json("DELETE", &format!("/dumps/{id}"), b"")
    }

    /// Asks, and reads the answer as JSON.
    fn json<T: DeserializeOwned>(&self, method: &str, path: &str, body: &[u8]) -> Result<T, ServiceError> {
        let RecorderAnswer { status, body } = self.ask(&RecorderQuestion { method, path, body })?;
        if status >= 300 {
            return Err(refused(status, &body));
        }
        serde_json::from_slice(&body).map_err(|error| {
            let address = &self.address;
            ServiceError::Failed(format!("{address} answers as no recorder of this version does: {error}"))
        })
    }

    fn ask(&self, question: &RecorderQuestion<'_>) -> Result<RecorderAnswer, ServiceError> {
        let asked = RecorderConnection::to(&self.address, self.tls.as_ref())
            .and_then(|mut connected| connected.ask(&self.address, self.token.as_deref(), question));
        asked.map_err(|error| {
            ServiceError::Failed(format!("the recorder at {} does not answer: {error}", self.address))
        })
    }
}

/// The error behind a status, with the recorder's sentence.
fn refused(status: u16, body: &[u8]) -> ServiceError {
    let text = serde_json::from_slice::<serde_json::Value>(body).ok();
    let sentence = text.and_then(|text| Some(text.get("error")?.as_str()?.to_owned()));
    let sentence = sentence.unwrap_or_else(|| format!("the recorder answers with HTTP status {status}"));
    match status {
        401 | 403 => ServiceError::AskedWrongly(format!("{sentence} (--token-file)")),
        400 | 413 => ServiceError::AskedWrongly(sentence),
        _ => ServiceError::Failed(sentence),
    }
}

/// The configuration of TLS that trusts one authority.
fn client_config(
    address: &RecorderAddress,
    authority: Option<&Path>,
) -> Result<Arc<ClientConfig>, ServiceError> {
    const WHAT: &str = "authority of the recorder's certificate";
    let Some(path) = authority else {
        return Err(ServiceError::AskedWrongly(format!(
            "{address}: name the authority of the recorder's certificate with --ca FILE"
        )));
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, WHAT)? {
        roots.add(certificate).map_err(ServiceError::asked_wrongly)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(ServiceError::failed)?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    fn client(address: &str, token: bool, authority: Option<&Path>) -> Result<(), String> {
        let address = address.parse().expect("an address");
        let token = token.then(|| "0123456789abcdef0123".to_owned());
        RecorderClient::new(address, token, authority).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn a_token_never_crosses_the_network_in_the_clear() {
        for address in ["127.0.0.1:9620", "[::1]:9620", "localhost:9620"] {
            assert_eq!(client(address, true, None), Ok(()), "{address}");
        }
        assert_eq!(client("10.0.2.1:9620", false, None), Ok(()));
        let refused = client("10.0.2.1:9620", true, None).expect_err("it would be shown");
        assert!(refused.contains("https://"), "{refused}");
        let refused = client("https://10.0.2.1:9620", true, None).expect_err("nobody proves the certificate");
        assert!(refused.contains("--ca"), "{refused}");
        assert!(client("127.0.0.1:9620", false, Some(Path::new("/ca.pem"))).is_err());
    }

    #[test]
    fn refusals_have_the_recorders_sentence() {
        let of = |status| refused(status, br#"{"error": "to: no"}"#);
        assert_eq!(of(400), ServiceError::AskedWrongly("to: no".into()));
        assert_eq!(of(403), ServiceError::AskedWrongly("to: no (--token-file)".into()));
        assert_eq!(of(429), ServiceError::Failed("to: no".into()));
        assert!(refused(502, b"<html>").to_string().contains("502"));
    }

    #[test]
    fn a_file_has_one_token_that_nobody_else_reads() {
        let directory = tempfile::tempdir().expect("space");
        let file = directory.path().join("token");
        let read = |text: &str, mode: u32| {
            fs::write(&file, text).expect("space");
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("it is ours");
            RecorderClient::token_from(&file).map_err(|error| error.to_string())
        };
        assert_eq!(read("0123456789abcdef0123\n", 0o600), Ok("0123456789abcdef0123".into()));
        for wrong in ["", "\n", "control 0123456789abcdef0123\n"] {
            assert!(read(wrong, 0o600).expect_err(wrong).contains("alone"), "{wrong}");
        }
        assert!(read("0123456789abcdef0123", 0o644).expect_err("all read it").contains("chmod"));
    }
}
