//! `s3://`: objects of a store that speaks S3. An object is put whole, at once or in parts, read in ranges, listed, removed; none
//! is changed, appended to or renamed. A directory is an object of no bytes whose key ends in a slash, as stores' own pages
//! make them.
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

use crate::{engine::RemoteEngine, http::HttpMethod, percent, target::RemoteSystem};
use bucket::{Asked, Bucket, BucketFault};
use client::S3Client;
use settings::S3Settings;
use words::UnfinishedUpload;

/// So long a question about a bucket may take.
const QUESTION: Duration = Duration::from_secs(15);
/// Listings of unfinished uploads that are asked for at most.
const UNFINISHED_PAGES: usize = 1000;
/// So long unfinished uploads are thrown away, one by one.
const FORGETTING: Nanos = Nanos::from_millis(60_000);
/// More than is ever written: 4 EiB. A store does not tell what it has.
const SPACE: Bytes = Bytes(1 << 62);
/// What no object can.
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
    /// By what the environment of this process says.
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
        // What is thrown away makes room in the next listing.
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
    /// Uploads below a prefix that were never put together, as many as the store lists at once.
    fn unfinished(&self, prefix: &str) -> Result<Vec<UnfinishedUpload>, String> {
        let answer = match self.bucket.ask(Asked::unfinished(prefix), QUESTION) {
            Ok(answer) => answer,
            // Not every store lists them, and not everybody may ask: parts may stay.
            Err(fault) if fault.errno.is_refusal() || fault.errno == Errno::EACCES => return Ok(Vec::new()),
            Err(fault) => return Err(in_words(&fault)),
        };
        let listed = words::unfinished(&answer.text);
        let mut begun = listed.ok_or("the store's listing of unfinished uploads can't be read")?;
        // A store that takes no prefix lists those of others too.
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

/// What went wrong, and what may help.
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
