//! Where a recorder is reached: TCP, at loopback unless told otherwise.

use std::{
    net::{SocketAddr, TcpListener},
    thread,
};

use anyhow::{Context, ensure};

use crate::tell;

/// An address as it may be written.
pub(super) const HTTP: &str = "127.0.0.1:9620";

/// A listener at this address, which is said. `what` names it; other machines reach it only if `beyond` allows that.
pub(super) fn listen(what: &str, address: &str, beyond: bool) -> anyhow::Result<TcpListener> {
    let at: SocketAddr = address
        .parse()
        .ok()
        .with_context(|| format!("{what} = \"{address}\": write an address and a port, such as {HTTP}"))?;
    ensure!(
        at.ip().is_loopback() || beyond,
        "{what} = \"{address}\": other machines could reach the recorder, without a password; if that is meant, say \
         --listen-beyond-loopback"
    );
    let listener = TcpListener::bind(at).with_context(|| format!("{what}: can't listen at {at}"))?;
    let beyond = if at.ip().is_loopback() { "" } else { ", for other machines too" };
    tell::note(format_args!("{what} at {}{beyond}", listener.local_addr()?));
    Ok(listener)
}

/// A thread that nobody waits for.
pub(super) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    thread::Builder::new().name(name.into()).spawn(work).context("can't start a thread")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_listens_beyond_loopback_unless_that_is_told() {
        for beyond in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let error = listen("http", beyond, false).expect_err(beyond).to_string();
            assert!(error.contains("--listen-beyond-loopback"), "{error}");
        }
        assert!(listen("http", "0.0.0.0:0", true).is_ok(), "it was told");
        assert!(listen("http", "127.0.0.1:0", false).is_ok(), "this machine");
        assert!(listen("http", "localhost", false).expect_err("no port").to_string().contains(HTTP));
    }
}
