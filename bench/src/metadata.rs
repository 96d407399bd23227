//! Create and close, stat, unlink of 100 000 empty files, in directories of their own on fresh file systems.

use std::{
    cell::Cell,
    ffi::CStr,
    fs::File,
    os::fd::{AsRawFd, RawFd},
    path::Path,
};

use nilometer_model::Nanos;
use nilometer_storage::{Buffer, Completion, OpKind, Open, Operation, ROOT, Slot, Step, Wait, Workload};

use crate::{
    bare,
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure,
    ours::{Driving, Ours},
    place::{self, Volume},
};

const FILES: u32 = 100_000;
const FILE: Slot = Slot(1);

const BARE: &str = "bare calls";
const OURS: &str = "nilometer, engine sync, recorded";

/// What is done to every file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Create,
    Stat,
    Unlink,
}

const PHASES: [Phase; 3] = [Phase::Create, Phase::Stat, Phase::Unlink];

/// In memory, without a device.
pub(crate) fn on_tmpfs(stop: &Stop) -> anyhow::Result<Outcome> {
    contest(place::in_memory()?.path(), "tmpfs").run(stop)
}

/// On a loop device.
pub(crate) fn on_ext4(stop: &Stop) -> anyhow::Result<Outcome> {
    contest(Volume::make("ext4")?.path(), "ext4").run(stop)
}

/// On a loop device.
pub(crate) fn on_xfs(stop: &Stop) -> anyhow::Result<Outcome> {
    contest(Volume::make("xfs")?.path(), "xfs").run(stop)
}

fn contest<'a>(path: &'a Path, kind: &str) -> Contest<'a> {
    let number = Cell::new(0);
    Contest {
        title: format!("metadata: 100 000 empty files on a fresh {kind}, an operation is a file"),
        quantity: Quantity::CpuPerOperation,
        phases: &["create+close", "stat", "unlink"],
        rounds: 11,
        contestants: vec![
            Contestant::new(BARE, move || bare(path)),
            Contestant::new(OURS, move || {
                number.set(number.get() + 1);
                driven(path, number.get())
            }),
        ],
        bounds: vec![Bound { subject: OURS, peer: BARE, limit: Limit::Times(1.10) }],
    }
}

fn bare(path: &Path) -> anyhow::Result<Vec<Cost>> {
    let directory = tempfile::tempdir_in(path)?;
    let root = File::open(directory.path())?;
    PHASES
        .map(|phase| measure::here(f64::from(FILES), || every(root.as_raw_fd(), phase)))
        .into_iter()
        .collect()
}

fn every(directory: RawFd, phase: Phase) -> anyhow::Result<()> {
    let mut buffer = [0; 16];
    for number in 0..FILES {
        let length = name(&mut buffer, number);
        let name = CStr::from_bytes_with_nul(&buffer[..=length])?;
        match phase {
            Phase::Create => bare::create(directory, name)?,
            Phase::Stat => drop(std::hint::black_box(bare::stat(directory, name)?)),
            Phase::Unlink => bare::unlink(directory, name)?,
        }
    }
    Ok(())
}

fn driven(path: &Path, number: u64) -> anyhow::Result<Vec<Cost>> {
    let ours = Ours::at(path, number)?;
    let one = |phase| {
        let make = |buffers| Names { phase, next: 0, close: false, buffers };
        ours.drive(f64::from(FILES), Driving::sync(4096), make).map(|(cost, _)| cost)
    };
    PHASES.map(one).into_iter().collect()
}

/// The name of a file with its NUL, without formatting; its length without the NUL.
#[inline]
fn name(buffer: &mut [u8], mut number: u32) -> usize {
    let length = 3 + number.checked_ilog10().unwrap_or(0) as usize;
    buffer[..2].copy_from_slice(b"n_");
    buffer[length] = 0;
    for place in (2..length).rev() {
        buffer[place] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    length
}

/// One phase as a workload, one operation at a time.
#[derive(Debug)]
struct Names {
    phase: Phase,
    next: u32,
    /// A file was made and is to be closed.
    close: bool,
    buffers: Vec<Buffer>,
}

impl Workload for Names {
    fn next(&mut self, now: Nanos) -> Step {
        if self.next == FILES && !self.close {
            return Step::Done;
        }
        let Some(mut buffer) = self.buffers.pop() else { return Step::Wait(Wait::ForOne) };
        if std::mem::take(&mut self.close) {
            return Step::Issue(Operation::on(OpKind::Close, FILE, buffer), now);
        }
        let kind = match self.phase {
            Phase::Create => OpKind::Open(Open::CREATE),
            Phase::Stat => OpKind::Stat,
            Phase::Unlink => OpKind::Unlink,
        };
        let length = name(&mut buffer, self.next) as u32;
        self.next += 1;
        self.close = self.phase == Phase::Create;
        Step::Issue(Operation { kind, file: FILE, dir: ROOT, length, offset: 0, buffer }, now)
    }

    fn completed(&mut self, completion: Completion) {
        self.buffers.push(completion.operation.buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decimal_and_end_with_a_nul() {
        for number in [0, 9, 10, 99_999] {
            let mut buffer = [b'x'; 16];
            let length = name(&mut buffer, number);
            assert_eq!(&buffer[..=length], format!("n_{number}\0").as_bytes());
        }
    }
}
