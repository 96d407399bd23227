//! Where a recorder is reached: TCP, at loopback unless told otherwise.

use std::{
    net::{SocketAddr, TcpListener},
    thread,
};

use crate::error::{OperatorLog, ServiceError, caused, require};

/// Where HTTP is answered unless told otherwise: this machine only.
pub const HTTP_ADDRESS: &str = "127.0.0.1:9620";

/// A listener at this address and port, which is said. `what` names it; other machines reach it only if `beyond` allows that.
///
/// # Errors
///
/// The address is none, is one that other machines reach and may not, or is taken.
pub fn listen(
    what: &str,
    address: &str,
    beyond: bool,
    log: OperatorLog,
) -> Result<TcpListener, ServiceError> {
    let at = address.parse::<SocketAddr>().map_err(|_| {
        let hint = format!("write an address and a port, such as {HTTP_ADDRESS}");
        ServiceError::AskedWrongly(format!("{what} = \"{address}\": {hint}"))
    })?;
    require(at.ip().is_loopback() || beyond, || {
        format!(
            "{what} = \"{address}\": other machines could reach the recorder, without a password; if that is meant, say \
             --listen-beyond-loopback"
        )
    })?;
    let listener = TcpListener::bind(at).map_err(|error| {
        ServiceError::AskedWrongly(caused(&format!("{what}: can't listen at {at}"), &error))
    })?;
    let beyond = if at.ip().is_loopback() { "" } else { ", for other machines too" };
    let bound = listener.local_addr().map_err(ServiceError::asked_wrongly)?;
    log(&format!("{what} at {bound}{beyond}"));
    Ok(listener)
}

/// A thread that nobody waits for.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), ServiceError> {
    let started = thread::Builder::new().name(name.into()).spawn(work);
    started.map(drop).map_err(|error| ServiceError::Failed(caused("can't start a thread", &error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silent(_: &str) {}

    #[test]
    fn nothing_listens_beyond_loopback_unless_that_is_told() {
        for beyond in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let error = listen("http", beyond, false, silent).expect_err(beyond).to_string();
            assert!(error.contains("--listen-beyond-loopback"), "{error}");
        }
        assert!(listen("http", "0.0.0.0:0", true, silent).is_ok(), "it was told");
        assert!(listen("http", "127.0.0.1:0", false, silent).is_ok(), "this machine");
        let error = listen("http", "localhost", false, silent).expect_err("no port").to_string();
        assert!(error.contains(HTTP_ADDRESS), "{error}");
    }
}
