//! The signals that end a command: SIGINT (ctrl-C), SIGTERM (`kill`, a service manager) and SIGHUP (the terminal or
//! the ssh session is gone). The first ends the work in order. A second SIGINT or SIGTERM ends the program unless it
//! comes with the first; SIGHUP beside one of them does not, since a session that ends sends both (`SendSIGHUP=` in
//! systemd.kill(5)).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use anyhow::{Context, Result};
use nilometer_model::Nanos;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ},
    flag,
    iterator::Signals,
};

/// The environment variable of the child.
pub(crate) const CHILD: &str = "NILOMETER_WATCHED";

/// Signals that end a command. Without SIGHUP if the caller ignores it, as `nohup` does: the program must go
/// on then.
pub(crate) fn ending() -> Vec<i32> {
    let mut signals = vec![SIGINT, SIGTERM];
    if !is_ignored(SIGHUP) {
        signals.push(SIGHUP);
    }
    signals
}

/// True in the child that does the work while another process watches it.
pub(crate) fn is_watched() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// The shortest time between two signals that are two wishes. `timeout(1)` and service managers signal a process and
/// then its group, so that one wish arrives twice within a millisecond.
pub(crate) const SAME_SIGNAL: Nanos = Nanos::from_millis(1000);

/// A flag that the first signal sets. A second SIGINT or SIGTERM ends the program if it arrives later than
/// [`SAME_SIGNAL`].
///
/// In a process that another one watches, the watching process counts: a service manager signals both, and the same
/// signal must not count twice.
pub(crate) fn stop_on_signal() -> Result<Arc<AtomicBool>> {
    let [stop, again] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    for signal in ending() {
        if !is_watched() && signal != SIGHUP {
            flag::register_conditional_shutdown(signal, 1, again.clone())
                .context("can't watch for signals")?;
        }
        flag::register(signal, stop.clone()).context("can't watch for signals")?;
    }
    if !is_watched() {
        set_behind_first(again)?;
    }
    Ok(stop)
}

/// Sets the flag once [`SAME_SIGNAL`] has passed since the first SIGINT or SIGTERM.
fn set_behind_first(again: Arc<AtomicBool>) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("can't watch for signals")?;
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || wait_and_set(&mut signals, &again))
        .map(drop)
        .context("can't watch for signals")
}

fn wait_and_set(signals: &mut Signals, again: &AtomicBool) {
    if signals.forever().next().is_some() {
        thread::sleep(SAME_SIGNAL.duration());
        again.store(true, Ordering::Relaxed);
    }
}

/// A file that grows beyond the limit of this process (`ulimit -f`) is an error of the write, as a full disk is, and
/// not the end of the program.
pub(crate) fn report_file_size_limit() -> Result<()> {
    flag::register(SIGXFSZ, Arc::default()).map(drop).context("can't watch for signals")
}

/// True if a signal was ignored at the start of this program, by a bit in `SigIgn` of `proc_pid_status(5)`.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored_in(&status, signal)
}

fn ignored_in(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nohup_ignores_stays_ignored() {
        let status = "Name:\tnilometer\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert!(ignored_in(status, SIGHUP) && !ignored_in(status, SIGINT) && !ignored_in(status, SIGTERM));
        assert!(!ignored_in("", SIGHUP));
    }
}
