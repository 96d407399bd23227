//! `s3://`: objects of a store that speaks S3. Objects are put whole or in parts, read in ranges, listed and
//! removed. They are never changed, appended to or renamed. A directory is an empty object whose key ends in a
//! slash, as stores' web pages make them.
//!
//! ```text
//! engine -> client -> upload (what is written) -> bucket (signed requests) -> http
//! ```

mod bucket;
mod client;
mod row;
mod settings;
mod sign;
mod upload;
mod words;

use std::{collections::HashSet, sync::Arc, time::Duration};

use nilometer_model::{
    Bytes, Capabilities, Capability, DirectIo, FileSystemKind, FileSystemSpace, Nanos, StorageProfile,
    TargetAddress, TargetDescription, TargetUrl,
};
use nilometer_storage::{Clock, Engine, EngineError, Errno, TargetError, engine::Options};

use crate::{engine::RemoteEngine, http::HttpMethod, percent, system::RemoteSystem};
use bucket::{Asked, Bucket, BucketFault};
use client::S3Client;
use settings::S3Settings;
use words::UnfinishedUpload;

/// Longest time for a question about a bucket.
const QUESTION: Duration = Duration::from_secs(15);
/// Maximum number of listings of unfinished uploads.
const UNFINISHED_PAGES: usize = 1000;
/// Longest time spent on discarding unfinished uploads one by one.
const FORGETTING: Nanos = Nanos::from_millis(60_000);
/// Size and free space: 4 EiB, more than anyone writes, because a store does not report its space.
const SPACE: Bytes = Bytes(1 << 62);
/// Operations that objects do not support.
const LACKING: [Capability; 7] = [
    Capability::Append,
    Capability::WriteAnywhere,
    Capability::Resize,
    Capability::Rename,
    Capability::OpenRemoved,
    Capability::StrictNames,
    Capability::Mounted,
];

/// A bucket.
#[derive(Debug)]
pub(crate) struct S3 {
    bucket: Arc<Bucket>,
}

impl S3 {
    /// Makes a client with the settings in this process's environment.
    pub(crate) fn of(url: &TargetUrl) -> Result<Self, TargetError> {
        let settings = S3Settings::of(url, |name| std::env::var(name).ok())?;
        Ok(S3 { bucket: Arc::new(Bucket { settings }) })
    }
}

impl RemoteSystem for S3 {
    fn engine(&self, path: &str, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        let client = S3Client::new(self.bucket.clone(), path.to_owned(), options.clock);
        Ok(Box::new(RemoteEngine::new(client, path.to_owned(), options)))
    }

    fn space(&self, _path: &str) -> Result<FileSystemSpace, String> {
        Ok(FileSystemSpace { size: SPACE, free: SPACE, used: None, inodes: None, free_inodes: None })
    }

    fn description(&self, url: &TargetUrl) -> Result<TargetDescription, String> {
        let asked = Asked::listing(&[("max-keys", "1"), ("prefix", "")]);
        let answer = self.bucket.ask(asked, QUESTION).map_err(|fault| in_words(&fault))?;
        let S3Settings { endpoint, region, .. } = &self.bucket.settings;
        let mut facts = vec![
            ("endpoint".to_owned(), endpoint.clone()),
            ("region".to_owned(), region.clone()),
            (
                "objects".to_owned(),
                format!(
                    "put whole when they are synced or closed; from {} on in parts",
                    Bytes(upload::PART as u64)
                ),
            ),
            ("space".to_owned(), "no store tells it: taken to be without a limit".to_owned()),
        ];
        facts.extend(answer.header("server").map(|server| ("version".to_owned(), server.to_owned())));
        Ok(TargetDescription {
            address: TargetAddress::Url(url.clone()),
            capabilities: Capabilities::all().without(&LACKING),
            file_system: "s3".into(),
            mount_point: std::path::PathBuf::new(),
            source: endpoint.clone(),
            options: String::new(),
            device: None,
            space: self.space(&url.path)?,
            writable: true,
            direct: DirectIo::Refused("a store has its own cache, and no client goes past it".into()),
            striping: None,
            stripe_size: None,
            profile: StorageProfile { kind: FileSystemKind::S3, ..StorageProfile::default() },
            facts,
        })
    }

    fn forget_unfinished(&self, path: &str) -> Result<(), String> {
        let prefix = format!("{}/", path.trim_start_matches('/'));
        let mut forgotten = HashSet::new();
        let clock = Clock::start();
        // Discarding uploads makes room for others in the next listing.
        for _ in 0..UNFINISHED_PAGES {
            let mut begun = self.unfinished(&prefix)?;
            begun.retain(|begun| !forgotten.contains(begun));
            if begun.is_empty() {
                return Ok(());
            }
            for begun in begun {
                if clock.now() > FORGETTING {
                    return Err(format!(
                        "after {FORGETTING} there are still unfinished uploads below {prefix}"
                    ));
                }
                self.forget(&begun)?;
                forgotten.insert(begun);
            }
        }
        Err(format!("after {UNFINISHED_PAGES} listings there are still unfinished uploads below {prefix}"))
    }
}

impl S3 {
    /// Lists the unfinished uploads below a prefix, up to the store's limit for one listing.
    fn unfinished(&self, prefix: &str) -> Result<Vec<UnfinishedUpload>, String> {
        let answer = match self.bucket.ask(Asked::unfinished(prefix), QUESTION) {
            Ok(answer) => answer,
            // Some stores can't list them, and some users may not: parts may remain.
            Err(fault) if fault.errno.is_refusal() || fault.errno == Errno::EACCES => return Ok(Vec::new()),
            Err(fault) => return Err(in_words(&fault)),
        };
        let listed = words::unfinished(&answer.text);
        let mut begun = listed.ok_or("the store's listing of unfinished uploads can't be read")?;
        // A store that ignores the prefix also lists other uploads.
        begun.retain(|begun| begun.key.starts_with(prefix));
        Ok(begun)
    }

    fn forget(&self, begun: &UnfinishedUpload) -> Result<(), String> {
        let mut asked = Asked::object(HttpMethod::Delete, &begun.key);
        asked.query = percent::query(&[("uploadId", &begun.id)]);
        match self.bucket.ask(asked, QUESTION) {
            Ok(_) => Ok(()),
            Err(fault) if fault.errno == Errno::ENOENT => Ok(()),
            Err(fault) => Err(in_words(&fault)),
        }
    }
}

/// Describes an error and suggests a remedy.
fn in_words(fault: &BucketFault) -> String {
    let BucketFault { errno, why } = fault;
    match *errno {
        Errno::ENOENT => format!("there is no such bucket ({why}): is AWS_ENDPOINT_URL the right store?"),
        Errno::EACCES => format!(
            "the store refuses the keys ({why}): are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION right, and the \
             clock of this machine?"
        ),
        Errno::ETIMEDOUT => format!("no answer ({why}): is the store hung?"),
        Errno(libc::ECONNREFUSED) => {
            format!("no connection ({why}): does the store run, at the port that AWS_ENDPOINT_URL says?")
        }
        _ => format!("{why} ({errno})"),
    }
}
