//! What a piece of work costs: processor time as the kernel accounts it, and wall time.

use std::process::{Command, Output, Stdio};

use anyhow::Context;
use nilometer_storage::{Clock, process::Usage};

use crate::contest::Cost;

/// Runs the work in this process and counts all of its threads, the kernel's workers for `io_uring` included.
pub(crate) fn here(amount: f64, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Cost> {
    let (cpu, clock) = (processor_time(libc::RUSAGE_SELF), Clock::start());
    work()?;
    let wall = clock.now().seconds();
    Ok(Cost { amount, cpu: processor_time(libc::RUSAGE_SELF) - cpu, wall })
}

/// Runs the work and counts the calling thread alone.
pub(crate) fn thread(amount: f64, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Cost> {
    let (clock, before) = (Clock::start(), Usage::of_thread());
    work()?;
    let wall = clock.now().seconds();
    Ok(Cost { amount, cpu: Usage::of_thread().since(before).total().seconds(), wall })
}

/// Runs a command to its end and counts the whole process, its start included. It must succeed.
pub(crate) fn child(amount: f64, command: &mut Command) -> anyhow::Result<(Cost, Output)> {
    let (cpu, clock) = (processor_time(libc::RUSAGE_CHILDREN), Clock::start());
    let output = command.stdin(Stdio::null()).output();
    let wall = clock.now().seconds();
    let cpu = processor_time(libc::RUSAGE_CHILDREN) - cpu;
    let program = command.get_program().to_string_lossy().into_owned();
    let output = output.with_context(|| format!("can't run `{program}`: is it installed?"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "`{program}` failed ({}): {}", output.status, said.trim());
    Ok((Cost { amount, cpu, wall }, output))
}

/// User and system time, in seconds.
fn processor_time(whose: libc::c_int) -> f64 {
    // SAFETY: all zeroes is a valid rusage, and the kernel writes only into it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(whose, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_here_and_in_a_child_is_counted() {
        let before = Usage::of_thread();
        let spin = || {
            while Usage::of_thread().since(before).total().seconds() < 0.05 {}
            Ok(())
        };
        let cost = here(1.0, spin).expect("it spins");
        assert!(cost.cpu >= 0.04 && cost.wall >= 0.04, "{cost:?}");
        let (cost, output) = child(1.0, Command::new("echo").arg("well")).expect("echo is everywhere");
        assert!(cost.wall > 0.0 && output.stdout == b"well\n", "{cost:?}");
        assert!(child(1.0, &mut Command::new("false")).is_err());
    }
}
