//! Finds out what a path is on. A hung file system never answers, so a campaign asks through a child process.

use std::{
    io::Read,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use nilometer_model::{Capabilities, DirectIo, Nanos, TargetDescription};
use rustix::{
    fs::{self, AtFlags, Mode, OFlags, StatxFlags},
    io::Errno,
};

use super::{
    super::TargetError,
    cache,
    mounts::mount_of,
    run_directory::RunDirectory,
    space,
    stripe::{layout, stripe_control},
};
use crate::Buffer;

/// Describes a path: what is mounted there, and what it can do. Tries `O_DIRECT` in a run directory of its own.
pub fn probe(path: &Path) -> Result<TargetDescription, TargetError> {
    let io = |action| move |source| TargetError::Io { path: path.into(), action, source };
    let real = path.canonicalize().map_err(io("find"))?;
    if !real.is_dir() {
        return Err(TargetError::NotADirectory { path: path.into() });
    }
    let table = std::fs::read_to_string("/proc/self/mountinfo").map_err(io("read the mount table for"))?;
    let mount = mount_of(&real, &table).ok_or_else(|| io("find the mount of")(not_mounted()))?;
    let device = device_of(&mount.source);
    let direct = try_direct(&real);
    let striping = stripe_control(&mount.file_system);
    let stripes = striping.and_then(|control| layout(control, &real).ok());
    let stripe_size = stripes.and_then(|stripes| stripes.stripe_size);
    Ok(TargetDescription {
        space: space(&real)?,
        address: real.into(),
        capabilities: Capabilities::all(),
        striping,
        stripe_size,
        file_system: mount.file_system,
        mount_point: mount.mount_point,
        source: mount.source,
        options: mount.options,
        device,
        // A full disk can be written: what is missing is said when the plan is resolved.
        writable: direct.as_ref().map_or_else(is_full, |_| true),
        direct: direct.unwrap_or(DirectIo::Unknown),
        facts: Vec::new(),
    })
}

/// In a chroot whose root is no mount, the table of mounts has none for it.
fn not_mounted() -> std::io::Error {
    let why = "/proc/self/mountinfo has none (a chroot needs one at its root: mount --bind ROOT ROOT)";
    std::io::Error::new(std::io::ErrorKind::NotFound, why)
}

/// The name in `/sys/class/block` of a mounted device.
fn device_of(source: &str) -> Option<String> {
    let path = Path::new(source).canonicalize().ok().filter(|path| path.starts_with("/dev"))?;
    let name = path.file_name()?.to_str()?.to_owned();
    Path::new("/sys/class/block").join(&name).exists().then_some(name)
}

/// What `O_DIRECT` does; an error if nothing can be written here at all.
fn try_direct(path: &Path) -> Result<DirectIo, TargetError> {
    let id = u64::from(std::process::id()) << 32
        | u64::from(rustix::thread::gettid().as_raw_pid().cast_unsigned());
    let run = RunDirectory::create(path, id)?;
    let direct = direct_in(&run);
    run.remove()?;
    match direct {
        Err(errno @ (Errno::INVAL | Errno::OPNOTSUPP)) => Ok(DirectIo::Refused(errno.to_string())),
        Err(errno) => Err(TargetError::io(path, "write to")(errno)),
        Ok(direct) => Ok(direct),
    }
}

fn is_full(error: &TargetError) -> bool {
    let full = [Errno::NOSPC, Errno::DQUOT].map(Errno::raw_os_error);
    matches!(error, TargetError::Io { source, .. } if source.raw_os_error().is_some_and(|errno| full.contains(&errno)))
}

fn direct_in(run: &RunDirectory) -> Result<DirectIo, Errno> {
    let flags =
        OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::DIRECT;
    let file = fs::openat(run.root(), "n_direct", flags, Mode::RUSR | Mode::WUSR)?;
    let mut block = Buffer::alone(64 << 10);
    block.fill(0x5a);
    rustix::io::pwrite(&file, &block, 0)?;
    let cached =
        cache::resident_pages(&file).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    if cached > 0 {
        return Ok(DirectIo::Buffered);
    }
    Ok(DirectIo::Real {
        alignment: stated_alignment(&file).unwrap_or_else(|| tried_alignment(&file, &block)),
    })
}

/// What the file system states (statx(2), since Linux 6.1).
fn stated_alignment(file: &OwnedFd) -> Option<u32> {
    let stat = fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::from_bits_retain(0x2000)).ok()?;
    let alignment = stat.stx_dio_mem_align.max(stat.stx_dio_offset_align);
    (alignment.is_power_of_two() && alignment <= 1 << 20).then_some(alignment)
}

/// The least of the usual alignments that is taken.
fn tried_alignment(file: &OwnedFd, block: &Buffer) -> u32 {
    let taken = |&alignment: &u32| {
        rustix::io::pwrite(file, &block[..alignment as usize], u64::from(alignment)).is_ok()
    };
    [512, 4096].into_iter().find(taken).unwrap_or(64 << 10)
}

/// [`probe`] in a child process, `program describe --exchange -- PATH`, with a time limit.
pub(crate) fn probe_in_child(
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
    let steps = limit.0 / STEP.as_nanos() as u64;
    for _ in 0..steps.max(1) {
        if let Some(status) = child.try_wait().map_err(failed("wait for"))? {
            let text = read_all(child.stdout.take());
            let message = read_all(child.stderr.take());
            return answer(path, status.success(), &text, &message);
        }
        std::thread::sleep(STEP);
    }
    // A child in uninterruptible sleep can't be killed: it is left behind, and must not be waited for.
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

fn read_all(pipe: Option<impl Read>) -> String {
    let mut text = String::new();
    if let Some(mut pipe) = pipe {
        drop(pipe.read_to_string(&mut text));
    }
    text
}
