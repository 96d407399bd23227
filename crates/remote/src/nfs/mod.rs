//! `nfs://`: NFS 3 through the asynchronous interface of libnfs. Each engine has its own connection, which its
//! thread serves.

mod client;
mod ffi;

use std::{ffi::CString, io, rc::Rc, sync::Mutex};

use nilometer_model::{
    Bytes, Capabilities, Capability, DirectIo, FileSystemKind, FileSystemSpace, StorageProfile,
    TargetAddress, TargetDescription, TargetUrl,
};
use nilometer_storage::{Engine, EngineError, Errno, TargetError, engine::Options};

use crate::{engine::RemoteEngine, system::RemoteSystem};
use client::NfsClient;
use ffi::{NfsContext, NfsFault};

/// A server and its mounted export.
#[derive(Debug)]
pub(crate) struct Nfs {
    url: TargetUrl,
    /// The path of the last export mounted.
    export: Mutex<Option<String>>,
}

/// A connection, with the length of the mounted path.
struct MountedExport {
    context: Rc<NfsContext>,
    export: usize,
}

/// Longest time for a mount, in milliseconds.
const MOUNT_MILLISECONDS: i32 = 10_000;

impl Nfs {
    pub(crate) fn of(url: &TargetUrl) -> Result<Self, TargetError> {
        match url.query_value("version") {
            None | Some("3") => Ok(Nfs { url: url.clone(), export: Mutex::new(None) }),
            Some(version) => {
                // Observed with libnfs 4.0.0 and NFS-Ganesha: `nfs-cp` fails too, and so do reads larger than
                // the server's limit for one reply.
                let why = format!(
                    "version={version}: libnfs can't write by NFS 4: leave it out, write version=3, which most \
                     servers of NFS 4 also speak, or mount it"
                );
                Err(TargetError::Client { place: url.to_string(), action: "use", why })
            }
        }
    }

    /// Makes a connection that reaches this path. Only the server knows which part of it is an export, so this
    /// tries the longest first.
    fn mount(&self, path: &str) -> Result<MountedExport, NfsFault> {
        let known = self.export.lock().ok().and_then(|known| known.clone());
        if let Some(export) = known.filter(|export| path.starts_with(export.as_str())) {
            return Ok(MountedExport { context: self.mount_export(&export)?, export: export.len() });
        }
        let mut refused = None;
        for export in std::iter::successors(Some(path), |path| above(path)) {
            match self.mount_export(export) {
                Ok(context) => {
                    if let Ok(mut known) = self.export.lock() {
                        *known = Some(export.to_owned());
                    }
                    return Ok(MountedExport { context, export: export.len() });
                }
                // The parent may be an export. On failure the message is about the original path.
                Err(fault) if fault.is_no_export() => {
                    refused.get_or_insert(fault);
                }
                Err(fault) => return Err(refused.unwrap_or(fault)),
            }
        }
        Err(refused.unwrap_or_else(NfsFault::no_path))
    }

    fn mount_export(&self, export: &str) -> Result<Rc<NfsContext>, NfsFault> {
        let path = export.to_owned();
        let mut url = TargetUrl { path, ..self.url.clone() };
        // A version in the URL wins. Otherwise the library asks for version 3 too, today.
        let query = url.query.take().unwrap_or_default();
        url.query = Some(if query.contains("version=") { query } else { format!("{query}&version=3") });
        let text = CString::new(url.to_string().replace("?&", "?"));
        let text =
            text.map_err(|_| NfsFault { errno: Errno::EINVAL, why: "a zero byte in its path".into() })?;
        NfsContext::mount(&text, MOUNT_MILLISECONDS)
    }

    fn within(path: &str, export: usize) -> CString {
        let within = &path[export.min(path.len())..];
        CString::new(if within.is_empty() { "/" } else { within }).unwrap_or_default()
    }
}

/// Returns a path without its last component, if anything is left.
fn above(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(above, _)| above).filter(|above| !above.is_empty())
}

impl NfsFault {
    /// Returns true if the server says that it does not export this path.
    fn is_no_export(&self) -> bool {
        matches!(self.errno, Errno::ENOENT | Errno::EACCES | Errno::ENOTDIR | Errno::EINVAL)
    }

    /// Makes the error for a URL without a path to mount.
    fn no_path() -> Self {
        NfsFault { errno: Errno::ENOENT, why: "no path".into() }
    }
}

impl RemoteSystem for Nfs {
    fn engine(&self, path: &str, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        let setup = |source: io::Error| EngineError::Setup {
            engine: options.kind.name(),
            what: "the client of NFS",
            source,
        };
        let mounted = self.mount(path).map_err(|fault| setup(io::Error::other(in_words(&fault))))?;
        let client = NfsClient::new(mounted.context, mounted.export, options.clock);
        let client = client.map_err(|errno| setup(errno.into()))?;
        Ok(Box::new(RemoteEngine::new(client, path.to_owned(), options)))
    }

    fn space(&self, path: &str) -> Result<FileSystemSpace, String> {
        let MountedExport { context, export } = self.mount(path).map_err(|fault| in_words(&fault))?;
        let space = context.space(&Nfs::within(path, export)).map_err(|errno| match errno {
            Errno::ENOENT => "there is no such directory on the server".to_owned(),
            errno => errno.to_string(),
        })?;
        let [size, free_of_all, free, inodes, free_inodes] = space;
        let counted = inodes > 0;
        Ok(FileSystemSpace {
            size: Bytes(size),
            free: Bytes(free),
            used: Some(Bytes(size.saturating_sub(free_of_all))),
            inodes: counted.then_some(inodes),
            free_inodes: counted.then_some(free_inodes),
        })
    }

    fn description(&self, url: &TargetUrl) -> Result<TargetDescription, String> {
        let MountedExport { context, export } = self.mount(&url.path).map_err(|fault| in_words(&fault))?;
        let [read, write] = context.most();
        let facts = vec![
            ("version".to_owned(), "NFS 3, by libnfs, without a mount".to_owned()),
            ("export".to_owned(), url.path[..export.min(url.path.len())].to_owned()),
            ("transfers".to_owned(), format!("{} to read, {} to write", Bytes(read), Bytes(write))),
        ];
        Ok(TargetDescription {
            address: TargetAddress::Url(url.clone()),
            capabilities: Capabilities::all().without(&[Capability::Mounted, Capability::OpenRemoved]),
            file_system: "nfs".into(),
            mount_point: std::path::PathBuf::new(),
            source: url.authority.clone(),
            options: url.query.clone().unwrap_or_default(),
            device: None,
            space: self.space(&url.path)?,
            writable: true,
            direct: DirectIo::Refused(
                "a client in this process has no cache to go past; the server has its own".into(),
            ),
            striping: None,
            stripe_size: None,
            profile: StorageProfile { kind: FileSystemKind::Nfs, ..StorageProfile::default() },
            facts,
        })
    }
}

/// Describes an error and suggests a remedy.
fn in_words(fault: &NfsFault) -> String {
    let NfsFault { errno, why } = fault;
    let why = if why.is_empty() { errno.to_string() } else { why.clone() };
    match *errno {
        Errno::ENOENT | Errno::EACCES | Errno::EPERM => {
            format!(
                "the server has no such export for this machine ({why}): `showmount -e SERVER` lists them"
            )
        }
        Errno::ESTALE => format!("{why}: the server no longer knows it"),
        _ => format!("no mount ({why}): does the server run, with its portmapper?"),
    }
}
