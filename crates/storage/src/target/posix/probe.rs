//! Describes the storage at a path. A hung file system never answers, so a campaign queries it through a
//! child process.

use std::{
    os::fd::{BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use nilometer_model::{
    Capabilities, DirectIo, EngineTrial, FeatureFinding, FileSystemKind, Nanos, StripeControl, StripeLayout,
    TargetDescription,
};
use rustix::{
    fs::{self, AtFlags, Mode, OFlags, StatxFlags},
    io::{Errno, retry_on_intr},
};

use super::{
    super::TargetError,
    cache,
    engine_trial::try_engines,
    features::{features, tried},
    layout_of_new_file,
    recognise::{Recognised, recognise},
    run_directory::RunDirectory,
    space,
    stripe::stripe_control,
    systems::{findings, with_findings},
    tool::reader,
};
use crate::Buffer;

/// Describes a path: the mounted file system and its capabilities, tried in a run directory of its own.
pub fn probe(path: &Path) -> Result<TargetDescription, TargetError> {
    let io = |action| move |source| TargetError::Io { path: path.into(), action, source };
    let real = path.canonicalize().map_err(|source| not_found(path, source))?;
    // A directory that a server no longer knows is no file: the error says so.
    if !real.metadata().map_err(io("find out where it is mounted"))?.is_dir() {
        return Err(TargetError::NotADirectory { path: path.into() });
    }
    let found = recognise(&real).map_err(io("find out where it is mounted"))?;
    let striping = stripe_control(found.profile.kind);
    let tried = try_mount(&real, found.profile.kind, striping);
    // A full disk still counts as writable; resolving the plan reports the missing space.
    let refused = tried.as_ref().err().filter(|error| !is_full(error)).map(without_path);
    let tried = tried.unwrap_or_default();
    let mut findings = findings(&found, &real, striping, tried.layout);
    findings.facts.extend(refused.clone().map(|why| (TargetDescription::UNWRITABLE.into(), why)));
    let Recognised { mount, profile, device } = found;
    let mut profile = with_findings(profile, &findings);
    profile.features = features(profile.kind, tried.features);
    profile.engines = tried.engines;
    Ok(TargetDescription {
        space: space(&real)?,
        address: real.into(),
        capabilities: Capabilities::all(),
        striping,
        stripe_size: findings.layout.and_then(|layout| layout.stripe_size),
        file_system: mount.file_system,
        mount_point: mount.mount_point,
        source: mount.source,
        options: mount.options,
        device,
        writable: refused.is_none(),
        direct: tried.direct,
        profile,
        facts: findings.facts,
    })
}

fn not_found(path: &Path, source: std::io::Error) -> TargetError {
    match source.kind() {
        std::io::ErrorKind::NotFound => TargetError::Absent { path: path.into(), source },
        _ => TargetError::Io { path: path.into(), action: "find", source },
    }
}

/// The error without the name of the run directory, which differs each time.
fn without_path(error: &TargetError) -> String {
    match error {
        TargetError::Io { action, source, .. } => format!("can't {action}: {source}"),
        other => other.to_string(),
    }
}

/// The results of trying a mount.
#[derive(Debug)]
struct TriedMount {
    direct: DirectIo,
    features: Vec<FeatureFinding>,
    /// The layout of a file that was made.
    layout: Option<StripeLayout>,
    engines: Option<EngineTrial>,
}

impl Default for TriedMount {
    /// No results.
    fn default() -> Self {
        TriedMount { direct: DirectIo::Unknown, features: Vec::new(), layout: None, engines: None }
    }
}

/// Tries every feature in a run directory; an error if nothing can be written here at all.
fn try_mount(
    path: &Path,
    kind: FileSystemKind,
    control: Option<StripeControl>,
) -> Result<TriedMount, TargetError> {
    let id = u64::from(std::process::id()) << 32
        | u64::from(rustix::thread::gettid().as_raw_pid().cast_unsigned());
    let run = RunDirectory::create(path, id)?;
    let direct = match direct_in(&run) {
        Err(errno @ (Errno::INVAL | Errno::OPNOTSUPP)) => Ok(DirectIo::Refused(errno.to_string())),
        other => other,
    };
    let tried = direct.map(|direct| TriedMount {
        features: tried(run.root(), &direct),
        // The query for the directory's layout reports why it fails.
        layout: control.and_then(|control| layout_of_new_file(control, run.root(), run.path()).ok()),
        engines: takes_rings_by_a_detour(kind, run.root())
            .then(|| try_engines(&run, matches!(direct, DirectIo::Real { .. }))),
        direct,
    });
    run.remove()?;
    tried.map_err(TargetError::io(path, "write to"))
}

fn is_full(error: &TargetError) -> bool {
    let full = [Errno::NOSPC, Errno::DQUOT].map(Errno::raw_os_error);
    matches!(error, TargetError::Io { source, .. } if source.raw_os_error().is_some_and(|errno| full.contains(&errno)))
}

/// `FUSE_SUPER_MAGIC` of linux/magic.h.
const FUSE: u64 = 0x6573_5546;

/// Returns true if the kernel may carry out operations of a ring in another way than system calls. Local file systems
/// do not, and FUSE puts both into one queue.
fn takes_rings_by_a_detour(kind: FileSystemKind, directory: BorrowedFd<'_>) -> bool {
    let is_fuse = || fs::fstatfs(directory).is_ok_and(|found| found.f_type.cast_unsigned() == FUSE);
    !kind.is_certainly_local() && !is_fuse()
}

fn direct_in(run: &RunDirectory) -> Result<DirectIo, Errno> {
    let flags =
        OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::DIRECT;
    let file = retry_on_intr(|| fs::openat(run.root(), "n_direct", flags, Mode::RUSR | Mode::WUSR))?;
    let mut block = Buffer::alone(64 << 10);
    block.fill(0x5a);
    retry_on_intr(|| rustix::io::pwrite(&file, &block, 0))?;
    let cached =
        cache::resident_pages(&file).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    if cached > 0 {
        return Ok(DirectIo::Buffered);
    }
    Ok(DirectIo::Real {
        alignment: stated_alignment(&file).unwrap_or_else(|| tried_alignment(&file, &block)),
    })
}

/// Returns the alignment that the file system states (statx(2), since Linux 6.1).
fn stated_alignment(file: &OwnedFd) -> Option<u32> {
    let stat = fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::from_bits_retain(0x2000)).ok()?;
    let alignment = stat.stx_dio_mem_align.max(stat.stx_dio_offset_align);
    (alignment.is_power_of_two() && alignment <= 1 << 20).then_some(alignment)
}

/// Returns the smallest of the usual alignments that the file system accepts.
fn tried_alignment(file: &OwnedFd, block: &Buffer) -> u32 {
    let taken = |&alignment: &u32| {
        retry_on_intr(|| rustix::io::pwrite(file, &block[..alignment as usize], u64::from(alignment))).is_ok()
    };
    [512, 4096].into_iter().find(taken).unwrap_or(64 << 10)
}

/// Lets a child process describe a target, `program describe --exchange -- ADDRESS`. Gives up after `limit`,
/// because hung storage never answers.
pub fn describe_in_child(
    program: &Path,
    path: &Path,
    limit: Nanos,
) -> Result<TargetDescription, TargetError> {
    let failed = |action| move |source| TargetError::Io { path: program.into(), action, source };
    let mut child = Command::new(program)
        .args(["describe", "--exchange", "--"])
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed("start"))?;
    // Other threads read the pipes: a child that writes more than a pipe holds would wait for ever.
    let pipes = [reader(child.stdout.take()), reader(child.stderr.take())];
    let steps = limit.0 / STEP.as_nanos() as u64;
    for _ in 0..steps.max(1) {
        if let Some(status) = child.try_wait().map_err(failed("wait for"))? {
            let [text, message] = pipes.map(|reader| reader.join().unwrap_or_default());
            return answer(path, status.success(), &text, &message);
        }
        std::thread::sleep(STEP);
    }
    // A child in uninterruptible sleep can't be killed. Leave it behind without waiting.
    drop(child.kill());
    Err(TargetError::Hung { path: path.into(), limit })
}

const STEP: Duration = Duration::from_millis(2);

fn answer(path: &Path, success: bool, text: &str, message: &str) -> Result<TargetDescription, TargetError> {
    let said = |message: String| TargetError::Probe { path: PathBuf::from(path), message };
    if !success {
        let message = message.trim().trim_start_matches("nilometer: ");
        return Err(said(message.trim_start_matches(&format!("{}: ", path.display())).to_owned()));
    }
    serde_json::from_str(text).map_err(|error| said(format!("the description can't be read: {error}")))
}
