//! A process with a thread that hangs in the kernel can't end, not even when it is killed. Everything that
//! touches storage under load therefore runs in a child. The process of the user only waits for the child's
//! end, or for its message that it is done, and passes signals on.
//!
//! The child's standard input is one end of a pair of sockets. The child writes its exit code there. Signals
//! wake the parent through the same sockets.

use std::{
    io::{Read, Write},
    os::{
        fd::AsFd,
        unix::{net::UnixStream, process::CommandExt},
    },
    process::{Child, Command, ExitStatus},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use nilometer_cluster::let_go_of_output;
use nilometer_model::Nanos;
use nilometer_storage::Clock;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FileType, fstat},
    process::{Pid, Signal, getpid, kill_process, set_parent_process_death_signal},
};
use signal_hook::{
    consts::{SIGCHLD, SIGHUP, SIGTSTP},
    flag, low_level,
};

use crate::{
    signals::{self, CHILD, SAME_SIGNAL, is_watched},
    tell,
};

/// The exit code of a fault, as for [`crate::Failure`].
const FAILED: u8 = 1;

/// The longest time that a child may take to end after its work, or after two interrupts.
const GRACE: Duration = Duration::from_secs(2);

/// Runs `work`, which returns an exit code, in a child. If the child hangs, the parent leaves it behind.
pub(crate) fn watched(work: impl FnOnce() -> u8) -> Result<u8> {
    if !is_watched() {
        return watch();
    }
    // The program must not load storage for a user who is gone.
    end_with_parent()?;
    // Prepares the clock now, before the first use.
    Clock::prepare();
    let code = work();
    if let Ok(socket) = std::io::stdin().as_fd().try_clone_to_owned() {
        // A parent that no longer listens does not need the code.
        drop(UnixStream::from(socket).write_all(&[code]));
    }
    let_go_of_output();
    Ok(code)
}

/// Asks the kernel to kill this process when its parent ends. The parent holds the other end of the socket at
/// standard input. Fails if that end is closed, because the kernel does not report a parent that ended
/// earlier.
pub(crate) fn end_with_parent() -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("can't follow the parent process")?;
    let stdin = std::io::stdin();
    let kind = fstat(&stdin).map(|stat| FileType::from_raw_mode(stat.st_mode));
    let mut ends = [PollFd::new(&stdin, PollFlags::empty())];
    poll(&mut ends, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))
        .context("can't look for the parent process")?;
    let is_closed = ends[0].revents().contains(PollFlags::HUP);
    ensure!(!is_closed || kind != Ok(FileType::Socket), "the process that started this one has ended");
    Ok(())
}

/// Signals of the user, which a parent passes on to the child that does the work.
#[derive(Debug)]
pub(crate) struct PassedSignals {
    stop: Arc<AtomicBool>,
    /// True after the terminal has gone.
    hang_up: Arc<AtomicBool>,
    pause: Arc<AtomicBool>,
    /// How often the user interrupted the work, and when last.
    interrupts: u32,
    interrupted: Option<Nanos>,
    clock: Clock,
}

impl PassedSignals {
    /// Catches the signals from now on.
    pub(crate) fn caught() -> Result<Self> {
        let [stop, hang_up, pause] = [(); 3].map(|()| Arc::default());
        let clock = Clock::start();
        let signals = PassedSignals { stop, hang_up, pause, interrupts: 0, interrupted: None, clock };
        let flag_of = |signal| if signal == SIGHUP { &signals.hang_up } else { &signals.stop };
        let stops = signals::ending().into_iter().map(|signal| (signal, flag_of(signal)));
        for (signal, flag) in stops.chain([(SIGTSTP, &signals.pause)]) {
            flag::register(signal, flag.clone()).context("can't watch for signals")?;
        }
        Ok(signals)
    }

    /// Passes on the signals that came. The second interrupt kills the child.
    pub(crate) fn pass_on(&mut self, child: &Child) -> Result<()> {
        if self.hang_up.swap(false, Ordering::Relaxed) {
            kill_process(Pid::from_child(child), Signal::INT).context("can't pass the signal on")?;
        }
        if self.stop.swap(false, Ordering::Relaxed) && self.is_another() {
            self.interrupts += 1;
            let signal = if self.is_insisted() { Signal::KILL } else { Signal::INT };
            kill_process(Pid::from_child(child), signal).context("can't pass the signal on")?;
        }
        if self.pause.swap(false, Ordering::Relaxed) {
            pause(child).context("can't pass the signal on")?;
        }
        Ok(())
    }

    /// True unless the signal is the one before, sent to this process and then to its group.
    fn is_another(&mut self) -> bool {
        let now = self.clock.now();
        let is_another = self.interrupted.is_none_or(|before| now.since(before) >= SAME_SIGNAL);
        if is_another {
            self.interrupted = Some(now);
        }
        is_another
    }

    /// The user interrupted the work more than once.
    pub(crate) fn is_insisted(&self) -> bool {
        self.interrupts > 1
    }
}

fn watch() -> Result<u8> {
    let (mut news, childs_end) = UnixStream::pair().context("can't make a pair of sockets")?;
    let mut signals = PassedSignals::caught()?;
    for signal in signals::ending().into_iter().chain([SIGTSTP, SIGCHLD]) {
        low_level::pipe::register(signal, childs_end.try_clone()?).context("can't watch for signals")?;
    }
    let mut child = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(CHILD, "1")
        .stdin(std::os::fd::OwnedFd::from(childs_end))
        // A ctrl-C in a terminal reaches only this process, which passes it on once.
        .process_group(0)
        .spawn()
        .context("can't start a process of its own for the work")?;
    follow(&mut child, &mut news, &mut signals)
}

/// Waits until the child is done.
fn follow(child: &mut Child, news: &mut UnixStream, signals: &mut PassedSignals) -> Result<u8> {
    loop {
        let mut said = [0];
        news.read_exact(&mut said).context("can't hear the process that does the work")?;
        if let Some(status) = child.try_wait()? {
            return Ok(code_of(status));
        }
        signals.pass_on(child)?;
        if signals.is_insisted() {
            return leave(child, FAILED);
        }
        if said != [WAKE] {
            return leave(child, said[0]);
        }
    }
}

/// The child's exit code. A killed child has none, and counts as a fault.
fn code_of(status: ExitStatus) -> u8 {
    if status.code().is_none() {
        tell::note(format_args!("nilometer: the process that does the work was ended: {status}"));
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED)
}

/// ctrl-Z: both stop, until somebody continues this process.
fn pause(child: &Child) -> rustix::io::Result<()> {
    kill_process(Pid::from_child(child), Signal::STOP)?;
    kill_process(getpid(), Signal::STOP)?;
    kill_process(Pid::from_child(child), Signal::CONT)
}

/// The byte that a signal writes; no exit code has this value.
const WAKE: u8 = b'X';

/// Waits a short time for the child's end. Leaves a child behind that hangs in the kernel: nothing ends it
/// before the storage answers.
fn leave(child: &mut Child, code: u8) -> Result<u8> {
    let step = Duration::from_millis(2);
    for _ in 0..GRACE.as_millis() / step.as_millis() {
        if child.try_wait()?.is_some() {
            return Ok(code);
        }
        std::thread::sleep(step);
    }
    drop(child.kill());
    let id = child.id();
    tell::note(format_args!(
        "nilometer: process {id} hangs in the kernel and is left there: it ends when the storage answers"
    ));
    Ok(code)
}
