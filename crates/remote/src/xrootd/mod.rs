//! `root://`: `XRootD` and EOS through the asynchronous interface of their own client library. Its threads put
//! answers into the mailbox of the engine that made the request; no operation blocks.

mod client;
mod ffi;

use std::{ffi::CString, sync::mpsc, time::Duration};

use nilometer_model::{
    Bytes, Capabilities, Capability, DirectIo, FileSystemKind, FileSystemSpace, StorageProfile,
    TargetAddress, TargetDescription, TargetUrl,
};
use nilometer_storage::{Engine, EngineError, Errno, engine::Options};

use crate::{
    answer::{Answered, LibraryAnswer},
    engine::RemoteEngine,
    system::RemoteSystem,
};
use client::XRootDClient;
use ffi::XRootDServer;

/// A server, or the manager of several servers.
#[derive(Debug)]
pub(crate) struct XRootD {
    /// The prefix of a path.
    base: String,
    query: String,
    server: String,
}

/// Longest time to connect, in seconds, and the number of tries. The library's defaults would be two minutes
/// and five times.
const CONNECTION_SECONDS: i32 = 10;
const CONNECTION_TRIES: i32 = 1;
/// Longest time for a question about a server, in seconds.
const QUESTION_SECONDS: u16 = 15;

impl XRootD {
    pub(crate) fn of(url: &TargetUrl) -> Self {
        ffi::default(c"ConnectionWindow", CONNECTION_SECONDS);
        ffi::default(c"ConnectionRetry", CONNECTION_TRIES);
        let query = url.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        XRootD {
            base: format!("{}://{}/", url.scheme.name(), url.authority),
            query,
            server: url.authority.clone(),
        }
    }

    /// Asks the server and waits. Returns its number and text, or the reason why there is none.
    fn ask(&self, begin: impl FnOnce(&XRootDServer, Box<Waiting>)) -> Result<(u64, String), ServerFault> {
        let base =
            CString::new(self.base.as_str()).map_err(|_| ServerFault::of("a zero byte in its name"))?;
        let server = XRootDServer::at(&base);
        let (answer, answered) = mpsc::sync_channel(1);
        begin(&server, Box::new(Waiting(answer)));
        let limit = Duration::from_secs(u64::from(QUESTION_SECONDS) + CONNECTION_SECONDS as u64);
        answered.recv_timeout(limit).unwrap_or_else(|_| {
            Err(ServerFault { errno: Errno::ETIMEDOUT, why: format!("no answer within {limit:?}") })
        })
    }

    /// Adds the parameters for the server to a path.
    fn whole(&self, path: &str) -> Result<CString, ServerFault> {
        let path = if path.is_empty() { "/" } else { path };
        CString::new(format!("{path}{}", self.query)).map_err(|_| ServerFault::of("a zero byte in its path"))
    }

    /// Returns a value of the server's configuration, if the server reports it.
    fn configured(&self, key: &std::ffi::CStr) -> Option<String> {
        let said = self.ask(|server, waiting| server.configuration(key, QUESTION_SECONDS, waiting)).ok()?;
        let value = said.1.trim().trim_end_matches('\0').to_owned();
        // For an unknown key the server returns the key itself.
        (!value.is_empty() && value.as_bytes() != key.to_bytes()).then_some(value)
    }
}

/// The reason why a server gives no answer.
#[derive(Debug)]
struct ServerFault {
    errno: Errno,
    why: String,
}

impl ServerFault {
    fn of(why: &str) -> Self {
        ServerFault { errno: Errno::EINVAL, why: why.into() }
    }
}

/// A thread that waits for an answer.
#[derive(Debug)]
struct Waiting(mpsc::SyncSender<Result<(u64, String), ServerFault>>);

impl Answered for Waiting {
    fn answered(self: Box<Self>, answer: LibraryAnswer<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().replace('\n', "; ");
        let answer = match answer {
            LibraryAnswer::Done(number, said) => Ok((number, text(said))),
            LibraryAnswer::Failed(errno, said) => Err(ServerFault { errno, why: text(said) }),
        };
        // The thread may have stopped waiting.
        drop(self.0.send(answer));
    }
}

impl RemoteSystem for XRootD {
    fn engine(&self, path: &str, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        let Options { depth, clock, .. } = *options;
        let client = XRootDClient::new(self.base.clone(), self.query.clone(), depth, clock);
        let client = client.map_err(|errno| EngineError::Setup {
            engine: options.kind.name(),
            what: "the client of XRootD",
            source: std::io::Error::from_raw_os_error(errno.0),
        })?;
        Ok(Box::new(RemoteEngine::new(client, path.to_owned(), options)))
    }

    fn space(&self, path: &str) -> Result<FileSystemSpace, String> {
        let path = self.whole(path).map_err(|fault| fault.why)?;
        let said = self.ask(|server, waiting| server.space(&path, QUESTION_SECONDS, waiting));
        space_in(&said.map_err(|fault| fault.why)?.1)
    }

    fn description(&self, url: &TargetUrl) -> Result<TargetDescription, String> {
        let path = self.whole(&url.path).map_err(|fault| fault.why)?;
        self.ask(|server, waiting| server.stat(&path, QUESTION_SECONDS, waiting))
            .map_err(|fault| in_words(&fault))?;
        let streams = ffi::default(c"SubStreamsPerChannel", 1);
        let mut facts = vec![
            ("streams".to_owned(), format!("{streams} to each server (XRD_SUBSTREAMSPERCHANNEL)")),
            (
                "names".to_owned(),
                "as durable as the server makes them: the protocol syncs no directory".to_owned(),
            ),
        ];
        for (name, key) in [("version", c"version"), ("role", c"role"), ("site", c"sitename")] {
            facts.extend(self.configured(key).map(|value| (name.to_owned(), value)));
        }
        Ok(TargetDescription {
            address: TargetAddress::Url(url.clone()),
            capabilities: Capabilities::all().without(&[Capability::StrictNames, Capability::Mounted]),
            file_system: "xrootd".into(),
            mount_point: std::path::PathBuf::new(),
            source: self.server.clone(),
            options: url.query.clone().unwrap_or_default(),
            device: None,
            space: self.space(&url.path)?,
            writable: true,
            direct: DirectIo::Refused("a server has its own cache, and no client goes past it".into()),
            striping: None,
            stripe_size: None,
            profile: StorageProfile { kind: FileSystemKind::XRootD, ..StorageProfile::default() },
            facts,
        })
    }
}

/// Describes an error and suggests a remedy.
fn in_words(fault: &ServerFault) -> String {
    let ServerFault { errno, why } = fault;
    match *errno {
        Errno::ENOENT => "there is no such directory on the server".to_owned(),
        Errno::EACCES => {
            format!("the server refuses it ({why}): is there a valid ticket, token or certificate?")
        }
        Errno::ETIMEDOUT => format!("no answer ({why}): is the server hung?"),
        Errno(libc::ECONNREFUSED) => format!("no connection ({why}): does the server run, at this port?"),
        _ => why.clone(),
    }
}

/// Parses the space that a server reports: `oss.space=...&oss.free=...&oss.used=...`, in bytes.
fn space_in(text: &str) -> Result<FileSystemSpace, String> {
    let value = |key: &str| {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        let value = pairs.clone().find(|(name, _)| *name == key).map(|(_, value)| value)?;
        value.trim_end_matches('\0').parse::<u64>().ok().map(Bytes)
    };
    match (value("oss.space"), value("oss.free")) {
        (Some(size), Some(free)) => {
            let used = value("oss.used");
            Ok(FileSystemSpace { size, free, used, inodes: None, free_inodes: None })
        }
        _ => Err(format!("the server did not tell its space: `{}`", text.escape_debug())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_read_as_servers_tell_it() {
        let text = "oss.cgroup=public&oss.space=270553001984&oss.free=59055800320&oss.maxf=1&oss.used=9&oss.quota=-1";
        let space = space_in(text).expect("a server's words");
        assert_eq!(
            (space.size, space.free, space.used),
            (Bytes(270_553_001_984), Bytes(59_055_800_320), Some(Bytes(9)))
        );
        let error = space_in("kXR_Unsupported\n").expect_err("no space");
        assert!(error.contains("did not tell") && !error.contains('\n'), "{error}");
    }
}
