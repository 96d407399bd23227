//! A child process reads an HDF5 file that a stranger may have made. The library that reads it may crash, run
//! for ever or take all memory. The parent only waits. It knows at which object the child is, and ends it if
//! it does not go on.
//!
//! The child's standard input is one end of a pair of sockets, on which it writes a line before each object
//! that it reads.

use std::{
    io::{ErrorKind, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            net::UnixStream,
            process::{CommandExt, ExitStatusExt},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    sync::OnceLock,
    time::Duration,
};

use anyhow::{Context, Result};
use nilometer_hdf5_recording::lone_file::note_reading;
use nilometer_report::in_line;
use nilometer_storage::{new_file::remove_dead, process::processors};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Resource, Rlimit, Signal, getrlimit, setrlimit},
};

use super::progress::ReadingProgress;
use crate::{
    tell,
    watch::{PassedSignals, end_with_parent},
};

/// The environment variable of the child.
const CHILD: &str = "NILOMETER_READS_FILE";
/// The exit code if the child did not give one.
const FAILED: u8 = 1;
/// The time between two looks at the child's progress.
const TICK: Duration = Duration::from_millis(200);
/// The longest time that a child may take to end after its work, or after a kill.
const GRACE: Duration = Duration::from_secs(10);

/// Address space of the child without a file, and for each processor, on which threads pack chunks.
const MEMORY: u64 = 2 << 30;
const MEMORY_A_PROCESSOR: u64 = 160 << 20;
/// Memory for the metadata of a file, in bytes for each of its own.
const MEMORY_A_BYTE: u64 = 16;
/// Address space for each byte of frames that are joined from chunks.
const MEMORY_A_FRAME_BYTE: u64 = 4;

/// The child's way to report its present object.
static PARENT: OnceLock<UnixStream> = OnceLock::new();

/// Runs `work`, which reads this file and returns an exit code, in a child process. Without a file it runs
/// here.
pub(crate) fn guarded(file: Option<&Path>, to: Option<&Path>, work: impl FnOnce() -> u8) -> u8 {
    let Some(file) = file else { return work() };
    let ended =
        if std::env::var_os(CHILD).is_some() { begun(file).map(|()| work()) } else { watch(file, to) };
    ended.unwrap_or_else(|error| {
        tell::last_note(format!("{}: {error:#}", file.display()));
        FAILED
    })
}

/// Sets the limits of the child, and lets it report each object.
fn begun(file: &Path) -> Result<()> {
    end_with_parent()?;
    let socket = std::io::stdin().as_fd().try_clone_to_owned().context("can't hear the parent process")?;
    PARENT.set(socket.into()).ok();
    note_reading(tell_parent);
    let bytes = file.metadata().map_or(0, |file| file.len());
    let threads = MEMORY_A_PROCESSOR.saturating_mul(processors().len() as u64);
    let memory = MEMORY.saturating_add(threads).saturating_add(bytes.saturating_mul(MEMORY_A_BYTE));
    limit(Resource::As, memory)
}

/// Lowers a limit of this process; a lower one stays.
fn limit(resource: Resource, bytes: u64) -> Result<()> {
    let Rlimit { current, maximum } = getrlimit(resource);
    let lowest = [current, maximum].into_iter().flatten().fold(bytes, u64::min);
    setrlimit(resource, Rlimit { current: Some(lowest), maximum }).context("can't limit the process")
}

/// Gives the child more memory, for frames that are joined from chunks.
pub(super) fn allow_memory(frame_bytes: u64) -> Result<()> {
    if PARENT.get().is_none() {
        return Ok(());
    }
    let Rlimit { current, maximum } = getrlimit(Resource::As);
    let more = frame_bytes.saturating_mul(MEMORY_A_FRAME_BYTE);
    let raised = current.map(|current| current.saturating_add(more));
    let raised = raised.map(|raised| maximum.map_or(raised, |maximum| raised.min(maximum)));
    setrlimit(Resource::As, Rlimit { current: raised, maximum }).context("can't raise the limit of memory")
}

/// Limits each file that the child writes to this size. A write beyond it fails, as on a full disk.
pub(super) fn limit_output(bytes: u64) -> Result<()> {
    if PARENT.get().is_none() {
        return Ok(());
    }
    limit(Resource::Fsize, bytes)
}

/// The longest name of an object that the parent learns.
const NAME_MAX: usize = 500;

fn tell_parent(object: Option<&str>) {
    let line = object.map_or_else(
        || "\n".to_owned(),
        |object| {
            let name: String = in_line(object).chars().take(NAME_MAX).collect();
            format!("{name}\n")
        },
    );
    // A parent that is gone has ended this process too.
    drop(PARENT.get().map(|mut parent| parent.write_all(line.as_bytes())));
}

/// Starts the child, and waits for its end.
fn watch(file: &Path, to: Option<&Path>) -> Result<u8> {
    let (news, childs_end) = UnixStream::pair().context("can't make a pair of sockets")?;
    let mut signals = PassedSignals::caught()?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(CHILD, "1")
        .stdin(OwnedFd::from(childs_end))
        // A ctrl-C in a terminal reaches only this process, which passes it on once.
        .process_group(0)
        .spawn()
        .context("can't start a process of its own that reads it")?;
    let mut progress = ReadingProgress::of(child.id(), file.metadata().map_or(0, |file| file.len()));
    let stuck = follow(&mut child, news, &mut signals, &mut progress)?;
    if stuck.is_some() {
        child.kill().ok();
    }
    let status = ended(&mut child)?;
    if let (None, Some(code)) = (&stuck, status.and_then(|status| status.code())) {
        return Ok(u8::try_from(code).unwrap_or(FAILED));
    }
    remove_left(to);
    if !signals.is_insisted() {
        let why = stuck.unwrap_or_else(|| words(status));
        tell::last_note(format!(
            "{}: {why}, at {}: the file is damaged or malicious; Nilometer reads no more of it",
            file.display(),
            progress.object()
        ));
    }
    Ok(FAILED)
}

/// Waits until the child ends or makes no progress. Returns the reason to kill it, if any.
fn follow(
    child: &mut Child,
    mut news: UnixStream,
    signals: &mut PassedSignals,
    progress: &mut ReadingProgress,
) -> Result<Option<String>> {
    let mut read = [0; 4096];
    loop {
        if is_readable(&news)? {
            match news.read(&mut read) {
                Ok(count) if count > 0 => progress.take(&read[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The child ended, perhaps before it had read all its input.
                Ok(_) | Err(_) => return Ok(None),
            }
        }
        signals.pass_on(child)?;
        if let Some(why) = progress.stuck() {
            return Ok(Some(why));
        }
    }
}

/// True if the child wrote something, or ended, within a tick.
fn is_readable(news: &UnixStream) -> Result<bool> {
    let limit = Timespec::try_from(TICK).context("no such time")?;
    match poll(&mut [PollFd::new(news, PollFlags::IN)], Some(&limit)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno).context("can't hear the process that reads it"),
    }
}

/// Waits for the end of the child; `None` if it hangs in the kernel, where nothing ends it.
fn ended(child: &mut Child) -> Result<Option<ExitStatus>> {
    let step = Duration::from_millis(2);
    for _ in 0..GRACE.as_millis() / step.as_millis() {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(step);
    }
    child.kill().ok();
    Ok(child.try_wait()?)
}

fn words(status: Option<ExitStatus>) -> String {
    match status.and_then(|status| status.signal()) {
        Some(signal) => format!("the process that read it was ended by {}", signal_name(signal)),
        None => "the process that read it hangs in the kernel".into(),
    }
}

fn signal_name(signal: i32) -> String {
    let name = match Signal::from_named_raw(signal) {
        Some(Signal::SEGV) => " (SIGSEGV)",
        Some(Signal::ABORT) => " (SIGABRT)",
        Some(Signal::BUS) => " (SIGBUS)",
        Some(Signal::FPE) => " (SIGFPE)",
        Some(Signal::KILL) => " (SIGKILL)",
        _ => "",
    };
    format!("signal {signal}{name}")
}

/// Removes the file that the child started to write.
fn remove_left(to: Option<&Path>) {
    let Some(to) = to else { return };
    let above = to.parent().filter(|above| !above.as_os_str().is_empty());
    let directory =
        if to.is_dir() { to.to_owned() } else { above.map_or_else(|| PathBuf::from("."), Path::to_owned) };
    let name = to.file_name().filter(|_| !to.is_dir()).and_then(|name| name.to_str());
    for path in remove_dead(&directory, name).removed {
        tell::note(format_args!("removed {}, which was begun", path.display()));
    }
}
