//! Runs the user's own commands, which a plan names for its conditions and settings.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read, Seek},
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::{Child, Command, ExitStatus, Stdio},
};

use nilometer_model::{Nanos, TargetAddress};
use nilometer_storage::Clock;
use rustix::{
    fs::{MemfdFlags, memfd_create},
    process::{Pid, Signal, kill_process_group},
};

/// A command of the user.
#[derive(Debug)]
pub(crate) struct UserCommand<'a> {
    /// The command line for a shell.
    pub(crate) command: &'a str,
    /// The value of `NILOMETER_TARGET`.
    pub(crate) target: &'a TargetAddress,
    /// The command is ended when it takes longer.
    pub(crate) time_limit: Nanos,
    /// One more environment variable, with its value.
    pub(crate) variable: Option<(&'static str, &'a str)>,
    /// True if the caller reads the output. Other output is discarded: processes that the command leaves in the
    /// background may print for ever.
    pub(crate) is_read: bool,
    /// A descriptor that stays open until the command has ended, even if this process dies before.
    pub(crate) holds: Option<OwnedFd>,
}

/// Runs a command, and holds the descriptor that comes as input. Processes that the command leaves in the background
/// do not hold it. A shell may replace itself by its last command, so that must not be the user's.
const RUN_AND_HOLD: &str = "trap '' INT\nexec 3>&0 </dev/null\nsh -c \"$1\" 3>&-\nexit $?";

/// The most bytes of a command's output that are kept.
const OUTPUT_MOST: u64 = 64 << 10;

/// Runs a command of the user to its end, or until its time limit, and returns its output.
///
/// An interrupt from the terminal does not stop the command. It ends the campaign, which then takes back all it
/// has begun. Processes left in the background are not waited for. A command that takes too long is ended with
/// all of them.
pub(crate) fn output_of(asked: UserCommand<'_>) -> Result<String, String> {
    let UserCommand { command, target, time_limit, variable, is_read, holds } = asked;
    let failed = |error: io::Error| format!("`{command}` can't be started: {error}");
    // A pipe would stay open for as long as a background process holds it.
    let said = memfd_create("condition", MemfdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
    let mut said = File::from(said);
    let printed = memfd_create("printed", MemfdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
    let mut printed = File::from(printed);
    let script = if holds.is_some() { RUN_AND_HOLD.into() } else { format!("trap '' INT\n{command}") };
    let mut run = Command::new("sh")
        .args(["-c", &script, "sh", command])
        .env("NILOMETER_TARGET", named_target(target))
        .stdin(holds.map_or_else(Stdio::null, Stdio::from))
        .envs(variable)
        .stdout(if is_read { printed.try_clone().map_err(failed)?.into() } else { Stdio::null() })
        .stderr(said.try_clone().map_err(failed)?)
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let Some(status) = ended(&mut run, time_limit).map_err(failed)? else {
        return Err(format!("`{command}` took longer than {time_limit} and {}", put_an_end(&mut run)));
    };
    if status.success() {
        return text_of(&mut printed).map_err(failed);
    }
    let text = text_of(&mut said).map_err(failed)?;
    Err(format!("`{command}` failed ({status}): {}", text.trim()))
}

/// The value of `NILOMETER_TARGET`: the path of a directory, or a URL.
pub(crate) fn named_target(target: &TargetAddress) -> OsString {
    target.directory().map_or_else(|| target.to_string().into(), OsString::from)
}

/// The beginning of a file's text.
fn text_of(file: &mut File) -> io::Result<String> {
    let mut text = Vec::new();
    file.rewind()?;
    file.take(OUTPUT_MOST).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// How often `ended` checks if a command has ended.
const STEP: Nanos = Nanos::from_millis(5);
/// The time that a command has to end after SIGTERM.
const GRACE: Nanos = Nanos::from_millis(2000);

/// The exit status of a command, if it ends within this time.
fn ended(run: &mut Child, limit: Nanos) -> io::Result<Option<ExitStatus>> {
    let clock = Clock::start();
    loop {
        let status = run.try_wait()?;
        if status.is_some() || clock.now() >= limit {
            return Ok(status);
        }
        std::thread::sleep(STEP.duration());
    }
}

/// Ends a command and all that it started, first with SIGTERM, then with SIGKILL. Returns the result in words.
fn put_an_end(run: &mut Child) -> &'static str {
    let group = Pid::from_child(run);
    for signal in [Signal::TERM, Signal::KILL] {
        // The process exists until it is waited for, so the group is still this one.
        kill_process_group(group, signal).ok();
        if signal == Signal::TERM {
            std::thread::sleep(GRACE.duration());
        }
    }
    match ended(run, GRACE) {
        Ok(Some(_)) => "was ended",
        _ => "can't be ended: it hangs in the kernel",
    }
}
