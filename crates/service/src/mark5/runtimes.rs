//! Runtimes beside `0`, the recorder. Each makes one copy from or to another recorder at a time, with settings of
//! its own. The script m5copy makes a runtime for each copy, and never changes the settings of the recorder.
//!
//! Source in the repository of jive5ab at 971c3d6: `process_runtime_command` in `src/test.cc`.

use std::{
    collections::BTreeMap,
    ops::Range,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc::SyncSender},
};

use nilometer_model::packets::VlbiMode;

use super::{noted::NotedSettings, peer::progress::PeerTransfer, syntax::ReturnCode};

/// The name of the recorder's runtime.
pub(super) const RECORDER: &str = "0";
/// The most runtimes beside that of the recorder.
const MOST: usize = 16;
/// The port for copies unless a station sets another one, as in jive5ab.
const PORT: u16 = 2630;

/// The refusal of a command about runtimes.
pub(super) type RuntimeRefusal = (ReturnCode, String);

/// A runtime that several connections may use.
#[derive(Debug, Clone)]
pub(super) struct SharedRuntime(Arc<Mutex<CopyRuntime>>);

impl SharedRuntime {
    pub(super) fn lock(&self) -> MutexGuard<'_, CopyRuntime> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The runtimes of a connection.
#[derive(Debug, Default)]
pub(super) struct ChosenRuntime {
    /// The runtime that its commands are for, by name. `None` is the recorder.
    pub(super) current: Option<(String, SharedRuntime)>,
    /// The runtimes that end with the connection.
    pub(super) transient: Vec<String>,
}

/// The settings and the transfer of a runtime.
#[derive(Debug)]
pub(super) struct CopyRuntime {
    pub(super) noted: NotedSettings,
    /// The TCP port to which it connects, or at which it listens.
    pub(super) port: u16,
    /// The format of the frames, or `None` if no station set it.
    pub(super) mode: Option<VlbiMode>,
    /// The directories for copies. `None` stands for all directories of the configuration.
    pub(super) disks: Option<Vec<PathBuf>>,
    /// The transfer that runs or ended last.
    pub(super) transfer: Option<RuntimeTransfer>,
}

/// A transfer of a runtime.
#[derive(Debug)]
pub(super) struct RuntimeTransfer {
    /// The command that began it.
    pub(super) keyword: &'static str,
    /// The other recorder, the file, or the recording.
    pub(super) about: String,
    pub(super) peer: PeerTransfer,
    /// The part that it may send, or `None` for a transfer that is no `disk2net` or `file2net`.
    pub(super) sending: Option<SendingPart>,
}

/// The part that a transfer may send.
#[derive(Debug)]
pub(super) struct SendingPart {
    /// The selected part of the source.
    pub(super) part: Range<u64>,
    /// All bytes of the source.
    pub(super) length: u64,
    /// Takes the part to send, once.
    pub(super) parts: SyncSender<Range<u64>>,
    /// True after `on`.
    pub(super) is_on: bool,
    /// True if a reply said that it is active.
    pub(super) was_active: bool,
}

impl Default for CopyRuntime {
    fn default() -> Self {
        CopyRuntime {
            noted: NotedSettings::of_transfers(),
            port: PORT,
            mode: None,
            disks: None,
            transfer: None,
        }
    }
}

impl CopyRuntime {
    /// The transfer, if this command began it.
    pub(super) fn transfer_of(&mut self, keyword: &str) -> Option<&mut RuntimeTransfer> {
        self.transfer.as_mut().filter(|transfer| transfer.keyword == keyword)
    }

    /// Checks that a transfer may begin.
    pub(super) fn check_free(&mut self) -> Result<(), RuntimeRefusal> {
        if !self.noted.has_protocol() {
            let why =
                "a runtime copies over TCP, write net_protocol = tcp first, or record packets in runtime 0";
            return Err((ReturnCode::Conflict, why.into()));
        }
        let Some(transfer) = &mut self.transfer else { return Ok(()) };
        if transfer.peer.outcome().is_none() {
            return Err((ReturnCode::Conflict, format!("already doing {}", transfer.keyword)));
        }
        Ok(())
    }

    /// Ends the transfer of a command. Returns false if there is none.
    pub(super) fn end(&mut self, keyword: &str) -> bool {
        if self.transfer_of(keyword).is_none() {
            return false;
        }
        self.end_any()
    }

    /// Ends the transfer, whichever it is. Returns false if there is none.
    pub(super) fn end_any(&mut self) -> bool {
        let Some(transfer) = self.transfer.take() else { return false };
        transfer.peer.end();
        true
    }
}

/// All runtimes beside that of the recorder, by name.
#[derive(Debug, Default)]
pub(super) struct CopyRuntimes(BTreeMap<String, SharedRuntime>);

impl CopyRuntimes {
    /// All names, without that of the recorder.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(super) fn find(&self, name: &str) -> Option<SharedRuntime> {
        self.0.get(name).cloned()
    }

    /// Returns true if this runtime was not deleted.
    pub(super) fn has(&self, name: &str, runtime: &SharedRuntime) -> bool {
        self.0.get(name).is_some_and(|known| Arc::ptr_eq(&known.0, &runtime.0))
    }

    /// Makes a runtime.
    pub(super) fn create(&mut self, name: &str) -> Result<SharedRuntime, RuntimeRefusal> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-.".contains(&byte);
        if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) {
            let why = "write a name of letters, digits and _ + - .";
            return Err((ReturnCode::Parameter, why.into()));
        }
        if name == RECORDER || self.0.contains_key(name) {
            return Err((ReturnCode::Conflict, format!("runtime {name} exists")));
        }
        if self.0.len() >= MOST {
            return Err((ReturnCode::Conflict, format!("{MOST} runtimes are the most, delete one")));
        }
        let runtime = SharedRuntime(Arc::default());
        self.0.insert(name.to_owned(), runtime.clone());
        Ok(runtime)
    }

    /// Deletes a runtime and returns it, so that the caller can end its transfer. `None` if there is no such one.
    pub(super) fn delete(&mut self, name: &str) -> Option<SharedRuntime> {
        self.0.remove(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_have_names_and_a_limit() {
        let mut all = CopyRuntimes::default();
        let code =
            |made: Result<SharedRuntime, RuntimeRefusal>| made.map_or_else(|(code, _)| code as u8, |_| 0);
        let first = all.create("a").expect("free");
        for (name, expected) in [("a", 6), ("0", 6), ("", 8), ("a/b", 8), ("b", 0)] {
            assert_eq!(code(all.create(name)), expected, "{name}");
        }
        assert_eq!(all.names().collect::<Vec<_>>(), ["a", "b"]);
        assert!(all.delete("a").is_some() && all.delete("a").is_none());
        assert!(!all.has("a", &first));
        all.create("a").expect("free again");
        assert!(!all.has("a", &first), "it is another one");
        let made = (0..20).filter(|number| code(all.create(&format!("r{number}"))) == 0).count();
        assert_eq!(made, MOST - 2);
    }

    #[test]
    fn a_runtime_copies_only_after_its_protocol_is_set() {
        let mut runtime = CopyRuntime::default();
        assert!(runtime.check_free().is_err());
        runtime.noted.set_protocol(&["tcp".to_owned()]).expect("valid");
        assert!(runtime.check_free().is_ok());
        assert!(!runtime.end("net2file") && !runtime.end_any());
    }
}
