//! `hdfs://`: the file system of Hadoop through `WebHDFS`, spoken by a name node or an `HttpFS` server at its
//! HTTP port. Files can be created, appended to, read at any offset, renamed and removed. Written bytes can't
//! be changed.
//!
//! ```text
//! engine -> client -> name node: where? -> data node: bytes
//!             '-> append (what is written) -> stream to a data node
//! ```

mod append;
mod client;
mod server;
mod words;

use std::sync::Arc;

use nilometer_model::{
    Bytes, Capabilities, Capability, DirectIo, FileSystemKind, FileSystemSpace, StorageProfile,
    StripeControl, StripeLayout, TargetAddress, TargetDescription, TargetUrl,
};
use nilometer_storage::{Engine, EngineError, Errno, TargetError, engine::Options};
use serde_json::Value;

use crate::{
    engine::RemoteEngine,
    files::{Place, TargetFiles},
    http::HttpMethod,
    system::{RemoteSystem, files_at},
};
use client::HdfsClient;
use server::{HdfsAsked, HdfsServer};
use words::{HdfsRefusal, HdfsStatus};

/// Size and free space if the server reports none: 4 EiB.
const SPACE: Bytes = Bytes(1 << 62);
/// Operations that HDFS does not support.
const LACKING: [Capability; 6] = [
    Capability::WriteAnywhere,
    Capability::Resize,
    Capability::Sync,
    Capability::OpenRemoved,
    Capability::StrictNames,
    Capability::Mounted,
];
/// A file made to read back the layout of new files.
const LAYOUT_FILE: &str = "n_layout";

/// A name node.
#[derive(Debug)]
pub(crate) struct Hdfs {
    server: Arc<HdfsServer>,
}

impl Hdfs {
    /// Makes a client with the settings in this process's environment.
    pub(crate) fn of(url: &TargetUrl) -> Result<Self, TargetError> {
        let server = HdfsServer::of(url, |name| std::env::var(name).ok())?;
        Ok(Hdfs { server: Arc::new(server) })
    }

    /// Reads a bean of the name node's `/jmx` page. Returns `None` for an `HttpFS` server, which has no such
    /// page.
    fn bean(&self, name: &str) -> Result<Option<Value>, HdfsRefusal> {
        let page = format!("/jmx?qry=Hadoop:service=NameNode,name={name}");
        match self.server.page(&page) {
            Ok(answer) => Ok(words::bean(&answer.text)),
            Err(refused) if matches!(refused.errno, Errno::ENOENT | Errno::EACCES) => Ok(None),
            Err(refused) => Err(refused),
        }
    }

    /// Returns a value of the name node's configuration, if the name node shows it.
    fn configured(&self, key: &str) -> Option<u64> {
        let answer = self.server.page(&format!("/conf?name={key}")).ok()?;
        let value: Value = serde_json::from_slice(&answer.text).ok()?;
        value["property"]["value"].as_str()?.parse().ok()
    }

    fn status(&self, path: &str) -> Result<HdfsStatus, HdfsRefusal> {
        let answer = self.server.ask(&HdfsAsked::of(HttpMethod::Get, "GETFILESTATUS", path))?;
        HdfsStatus::of(&answer.text)
            .map_err(|errno| HdfsRefusal { errno, why: "no server answers by WebHDFS at this port".into() })
    }

    /// Returns the space quota of a path and the space consumed, if a quota is set there.
    fn quota(&self, path: &str) -> Option<[u64; 2]> {
        let answer = self.server.ask(&HdfsAsked::of(HttpMethod::Get, "GETCONTENTSUMMARY", path)).ok()?;
        let value: Value = serde_json::from_slice(&answer.text).ok()?;
        let number = |key: &str| value["ContentSummary"][key].as_u64();
        Some([number("spaceQuota")?, number("spaceConsumed")?])
    }

    fn copies(&self) -> u64 {
        self.configured("dfs.replication").unwrap_or(1).max(1)
    }
}

/// Returns the space for files with this number of copies.
fn space_in(bean: &Value, copies: u64) -> Option<FileSystemSpace> {
    let number = |key: &str| bean[key].as_u64();
    let shared = |bytes: u64| Bytes(bytes / copies);
    Some(FileSystemSpace {
        size: shared(number("CapacityTotal")?),
        free: shared(number("CapacityRemaining")?),
        used: number("CapacityUsed").map(shared),
        inodes: None,
        free_inodes: None,
    })
}

/// Space of a server that reports none.
const UNTOLD: FileSystemSpace =
    FileSystemSpace { size: SPACE, free: SPACE, used: None, inodes: None, free_inodes: None };

impl RemoteSystem for Hdfs {
    fn engine(&self, path: &str, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        let client = HdfsClient::new(self.server.clone(), options.clock);
        Ok(Box::new(RemoteEngine::new(client, path.to_owned(), options)))
    }

    fn space(&self, _path: &str) -> Result<FileSystemSpace, String> {
        let bean = self.bean("FSNamesystemState").map_err(|refused| self.in_words(&refused))?;
        Ok(bean.and_then(|bean| space_in(&bean, self.copies())).unwrap_or(UNTOLD))
    }

    fn description(&self, url: &TargetUrl) -> Result<TargetDescription, String> {
        let said = |refused: HdfsRefusal| self.in_words(&refused);
        self.status(&url.path).map_err(said)?;
        let state = self.bean("FSNamesystemState").map_err(said)?;
        let space = state.as_ref().and_then(|state| space_in(state, self.copies()));
        let mut space_left = space.unwrap_or(UNTOLD);
        let mut facts = self.facts(state.as_ref());
        if let Some([quota, taken]) = self.quota(&url.path) {
            facts.push(("quota".into(), format!("{} with all copies, {} taken", Bytes(quota), Bytes(taken))));
            let left = quota.saturating_sub(taken) / self.copies();
            space_left.free = Bytes(space_left.free.0.min(left));
        }
        Ok(TargetDescription {
            address: TargetAddress::Url(url.clone()),
            capabilities: Capabilities::all().without(&LACKING),
            file_system: "hdfs".into(),
            mount_point: std::path::PathBuf::new(),
            source: self.server.endpoint.clone(),
            options: String::new(),
            device: None,
            space: space_left,
            writable: !facts.iter().any(|(name, _)| name == TargetDescription::UNWRITABLE),
            direct: DirectIo::Refused("data nodes have page caches, and no client goes past them".into()),
            striping: Some(StripeControl::Hdfs),
            stripe_size: self.configured("dfs.blocksize").map(Bytes),
            profile: StorageProfile {
                kind: FileSystemKind::Hdfs,
                redundancy: self.redundancy(),
                ..StorageProfile::default()
            },
            facts,
        })
    }

    fn lay_out(&self, path: &str, asked: &StripeLayout) -> Result<Option<StripeLayout>, String> {
        let StripeLayout { stripe_size, replicas, .. } = asked.clone();
        let wanted = StripeLayout { stripe_size, replicas, ..StripeLayout::default() };
        {
            let mut layout = self.server.layout.lock().map_err(|_| "a thread has failed".to_owned())?;
            if *layout == wanted && wanted == StripeLayout::default() {
                return Ok(None);
            }
            *layout = wanted;
        }
        let files = files_at(self, path).map_err(|error| error.to_string())?;
        self.layout_of_new_file(&files, path).map(Some)
    }
}

impl Hdfs {
    /// Makes a file, reads back its layout, and removes it.
    fn layout_of_new_file(&self, files: &TargetFiles, path: &str) -> Result<StripeLayout, String> {
        let written = files.write_new(Place::root(LAYOUT_FILE), b"5");
        let found = self.status(&format!("{path}/{LAYOUT_FILE}"));
        let removed = files.unlink(Place::root(LAYOUT_FILE));
        let refused =
            |errno: Errno| format!("a file of this layout can't be made: {errno}{}", why_refused(errno));
        written.map_err(refused)?;
        removed.map_err(refused)?;
        let status = found.map_err(|refused| self.in_words(&refused))?;
        Ok(StripeLayout {
            stripe_size: Some(Bytes(status.block)),
            replicas: Some(status.replication),
            ..StripeLayout::default()
        })
    }

    fn redundancy(&self) -> Option<String> {
        let copies = self.configured("dfs.replication")?;
        let layout = StripeLayout { replicas: Some(copies as u32), ..StripeLayout::default() };
        Some(layout.to_string())
    }

    /// Collects further facts about the server.
    fn facts(&self, state: Option<&Value>) -> Vec<(String, String)> {
        let mut facts = Vec::new();
        if let Ok(Some(node)) = self.bean("NameNodeInfo") {
            let text = |key: &str| node[key].as_str().map(str::to_owned).filter(|text| !text.is_empty());
            // The revision of the sources follows a comma.
            let version =
                text("Version").map(|text| format!("HDFS {}", text.split(',').next().unwrap_or_default()));
            facts.extend(version.map(|version| ("version".to_owned(), version)));
            // Keep the first sentence; the rest explains who can leave safe mode, and how.
            let safe = text("Safemode").map(|text| text.split(". ").next().unwrap_or_default().to_owned());
            facts.extend(safe.map(|text| {
                (TargetDescription::UNWRITABLE.to_owned(), format!("the name node says: {text}"))
            }));
        }
        let number = |key: &str| state.and_then(|state| state[key].as_u64());
        if let (Some(live), Some(dead)) = (number("NumLiveDataNodes"), number("NumDeadDataNodes")) {
            facts.push(("data nodes".to_owned(), format!("{live} live, {dead} dead")));
        }
        if state.is_none() {
            facts.push(("space".into(), "this server tells none: taken to be without a limit".into()));
        }
        facts.extend(
            self.configured("dfs.blocksize").map(|block| ("block size".to_owned(), Bytes(block).to_string())),
        );
        facts.extend(self.redundancy().map(|copies| ("copies".to_owned(), copies)));
        facts.push(("user".into(), self.server.user.clone()));
        let durable = "a sync ends an append: data are with the data nodes then, in their page caches unless \
                       dfs.datanode.synconclose is set";
        facts.push(("sync".into(), durable.into()));
        facts
    }

    /// Describes an error and suggests a remedy.
    fn in_words(&self, refused: &HdfsRefusal) -> String {
        let HdfsRefusal { errno, why } = refused;
        let HdfsServer { endpoint, user, .. } = self.server.as_ref();
        match *errno {
            Errno::ENOENT if why.starts_with("FileNotFound") => {
                "there is no such directory on the server".to_owned()
            }
            Errno::EACCES => {
                format!("the server refuses user {user} ({why}): name another as hdfs://USER@HOST/")
            }
            Errno::ETIMEDOUT => format!("no answer ({why}): is the name node hung?"),
            Errno(libc::ECONNREFUSED) => format!(
                "no connection to {endpoint} ({why}): does the name node run, and is this its HTTP port (9870, unless \
                 dfs.namenode.http-address says another)?"
            ),
            _ if why.starts_with("StandbyException") => format!("{why}: name the active name node"),
            _ => why.clone(),
        }
    }
}

/// Explains which limit of the name node a layout violates.
fn why_refused(errno: Errno) -> &'static str {
    match errno {
        Errno::EIO | Errno::EINVAL => {
            ": copies are 1 to as many as dfs.namenode.replication.max, blocks a multiple of 512 bytes and at least as large as \
             dfs.namenode.fs-limits.min-block-size (1 MiB)"
        }
        Errno::EROFS => ": the name node is in safe mode",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_that_of_files_with_their_copies() {
        let bean = serde_json::json!({"CapacityTotal": 3000, "CapacityRemaining": 2000, "CapacityUsed": 500});
        let space = space_in(&bean, 2).expect("a name node's words");
        assert_eq!((space.size, space.free, space.used), (Bytes(1500), Bytes(1000), Some(Bytes(250))));
        assert_eq!(space_in(&serde_json::json!({}), 2), None);
    }
}
