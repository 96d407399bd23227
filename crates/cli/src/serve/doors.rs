//! Where a recorder is reached: TCP at loopback unless told otherwise, and a unix socket.

use std::{
    fs,
    io::{ErrorKind, Write},
    net::{SocketAddr, TcpListener},
    os::unix::{
        fs::{FileTypeExt, MetadataExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context, bail, ensure};

use super::console::Console;

use crate::tell;

/// How long a client of the unix socket may take.
const PATIENCE: Duration = Duration::from_secs(1);
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

/// A unix socket at a path, which goes when this is dropped.
#[derive(Debug)]
pub(super) struct Door {
    listener: UnixListener,
    path: PathBuf,
    /// Of what was made there: device and inode.
    made: Option<(u64, u64)>,
}

impl Door {
    /// One that nobody listens to any more is replaced; anything else stays.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let door = |listener| Door { listener, path: path.to_owned(), made: identity(path) };
        let shown = path.display();
        match UnixListener::bind(path) {
            Ok(listener) => return Ok(door(listener)),
            Err(error) if error.kind() != ErrorKind::AddrInUse => {
                return Err(error).with_context(|| format!("can't make the socket {shown}"));
            }
            Err(_) => {}
        }
        let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
        if !is_socket || UnixStream::connect(path).is_ok() {
            bail!("{shown} exists and is in use, or is no socket: name another --socket");
        }
        fs::remove_file(path).with_context(|| format!("can't replace the socket {shown}"))?;
        Ok(door(UnixListener::bind(path).with_context(|| format!("can't make the socket {shown}"))?))
    }

    /// Tells everybody who connects how it is, on a thread of its own, for ever.
    pub(super) fn serve(&self, console: Console) -> anyhow::Result<()> {
        let listener = self.listener.try_clone().context("can't listen at the socket")?;
        spawn("socket", move || tell(&listener, &console))
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // Another one may have its place by now.
        if self.made.is_some() && identity(&self.path) == self.made {
            drop(fs::remove_file(&self.path));
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// A report is shorter than what a socket holds: nobody is waited for.
fn tell(listener: &UnixListener, console: &Console) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else {
            thread::sleep(PATIENCE);
            continue;
        };
        let text = serde_json::json!(console.report()).to_string() + "\n";
        // Who does not listen any more needs no answer.
        drop(stream.set_write_timeout(Some(PATIENCE)).and_then(|()| stream.write_all(text.as_bytes())));
    }
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

    #[test]
    fn a_socket_that_was_left_behind_is_replaced_and_nothing_else_is() {
        let below = tempfile::tempdir().expect("a temporary directory");
        let path = below.path().join("status.sock");
        // As a process leaves it that is killed.
        drop(UnixListener::bind(&path).expect("new"));
        assert!(path.exists());
        let door = Door::open(&path).expect("nobody listens there");
        assert!(Door::open(&path).is_err(), "somebody listens there");
        drop(door);
        assert!(!path.exists(), "it goes with its door");
        let file = below.path().join("file");
        fs::write(&file, "mine").expect("space");
        assert!(Door::open(&file).is_err() && file.exists());
    }
}
