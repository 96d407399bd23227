//! Memory, descriptors and threads of a program that runs for long.

use std::fs;

use crate::{Running, await_some, program::children_of};

/// What a program holds at one moment, with all its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Resident memory in bytes, without pages of files.
    pub memory: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
}

impl Footprint {
    /// Looks at a program that runs.
    pub fn of(running: &Running) -> Self {
        let mut processes = vec![running.process().to_string()];
        processes.extend(children_of(running.process()));
        let one = |field| processes.iter().map(|process| number(process, field)).sum();
        let descriptors = processes.iter().map(|process| open_descriptors(process)).sum();
        Footprint { memory: one("RssAnon:") * 1024, descriptors, threads: one("Threads:") }
    }

    /// The greatest of each.
    fn united(self, other: Footprint) -> Footprint {
        Footprint {
            memory: self.memory.max(other.memory),
            descriptors: self.descriptors.max(other.descriptors),
            threads: self.threads.max(other.threads),
        }
    }
}

/// Seconds that a test of a long run takes about, by `NILOMETER_SOAK_SECONDS`. `None` if the user did not ask.
///
/// # Panics
/// If they are no whole number.
pub fn soak_seconds() -> Option<u64> {
    let asked = std::env::var("NILOMETER_SOAK_SECONDS").ok()?;
    Some(asked.parse().expect("NILOMETER_SOAK_SECONDS is a whole number"))
}

/// Compares the last footprints of a program with those of the first quarter, and prints them. Memory may grow by
/// `growth` bytes at any time. Descriptors and threads may come and go: it waits until they are as few again as in
/// the first quarter.
///
/// # Panics
/// If something grew, or there are fewer than four footprints.
pub fn assert_flat(what: &str, running: &Running, found: &[Footprint], growth: u64) {
    assert!(found.len() >= 4, "{what}: {} looks are too few", found.len());
    let (first, rest) = found.split_at(found.len() / 4);
    let greatest = |some: &[Footprint]| some.iter().copied().reduce(Footprint::united);
    let (first, rest) = (greatest(first).expect("one"), greatest(rest).expect("three"));
    eprintln!("{what}: {} looks; the first quarter at most {first:?}, the rest {rest:?}", found.len());
    assert!(rest.memory <= first.memory + growth, "{what}: memory grew: {found:?}");
    await_some(&format!("{what} with no more descriptors and threads than {first:?}: {found:?}"), || {
        let now = Footprint::of(running);
        (now.descriptors <= first.descriptors && now.threads <= first.threads).then_some(())
    });
}

/// A number of `/proc/PROCESS/status`. 0 for a process that has ended.
fn number(process: &str, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

fn open_descriptors(process: &str) -> u64 {
    fs::read_dir(format!("/proc/{process}/fd")).map_or(0, |entries| entries.count() as u64)
}
