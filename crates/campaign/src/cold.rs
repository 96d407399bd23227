//! Makes the reads of a phase cold. Files are dropped from the cache one by one; for names and inodes all
//! caches of this machine are dropped. The kernel tells if a file is gone. For names and inodes the bytes that
//! the device or the network delivers decide.

use std::{io::ErrorKind, sync::Arc};

use nilometer_model::{Bytes, Coldness, Invalid, Sample, TargetDescription};
use nilometer_plan::Work;
use nilometer_storage::{Target, target::TargetError, within};

use crate::{
    task::{Run, Task},
    workload,
};

/// Drops the phase's files from the cache.
pub(crate) fn chilled(
    run: &Run,
    number: usize,
    target: &Arc<dyn Target>,
    task: &Task<'_>,
) -> Result<Option<Coldness>, Invalid> {
    if task.never_saw(number) {
        return Ok(None);
    }
    if task.drops_caches() {
        return within(run.hang_after, target, |target| Some(dropped(target))).map_err(|_| Invalid::Hung);
    }
    let cell = task.cell.clone();
    let phase = task.phase;
    let places = task.places();
    if workload::files_of(&cell.workload, phase, task.places()).next().is_none() {
        return Ok(None);
    }
    let target = task.read_from(target);
    within(run.hang_after, target, move |target| {
        chill(target, workload::files_of(&cell.workload, phase, places))
    })
    .map_err(|_| Invalid::Hung)
}

/// Drops the phase's files from the cache and returns the worst result. Some may not exist, because of a time
/// limit.
fn chill(target: &dyn Target, files: impl Iterator<Item = String>) -> Option<Coldness> {
    let state = |name: String| match target.chill(&name) {
        Err(TargetError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => None,
        state => Some(state.unwrap_or(Coldness::NotProvable)),
    };
    files.filter_map(state).max_by_key(|coldness| coldness.severity())
}

/// Drops all caches of this machine. The bytes that the device or the network delivers must then prove the
/// coldness.
fn dropped(target: &dyn Target) -> Coldness {
    match target.drop_caches() {
        Ok(true) => Coldness::Proved,
        Ok(false) | Err(_) => Coldness::NotProvable,
    }
}

/// The coldness of the phase. If all caches were dropped before, the bytes delivered in the phase decide.
pub(crate) fn delivered(sample: &Sample, target: &dyn Target, task: &Task<'_>) -> Option<Coldness> {
    if sample.coldness != Some(Coldness::Proved) || !task.drops_caches() {
        return sample.coldness;
    }
    let done = Work { bytes: sample.bytes, operations: sample.operations };
    let least = task.cell.workload.parameters().least_delivered(done);
    Some(judged_by_traffic(least, sample, target.description()))
}

/// Judges coldness by the bytes delivered. For a network file system these are all bytes that this machine
/// received. If they were too few, or came over its loopback device, nothing can be proved.
fn judged_by_traffic(Bytes(least): Bytes, sample: &Sample, of: &TargetDescription) -> Coldness {
    match sample.device {
        Some(traffic) if traffic.read < least => Coldness::Contradicted,
        // Storage below the device may still have the data in memory, and a load also reads.
        _ if sample.background.is_some() => Coldness::NotProvable,
        Some(_) if of.has_a_cache_of_its_own() => Coldness::NotProvable,
        Some(_) => Coldness::Proved,
        None if of.is_remote() && sample.during.received >= least => Coldness::Proved,
        None => Coldness::NotProvable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::{Activity, BackgroundDone, DeviceTraffic, Nanos};
    use nilometer_storage::target::probe;

    #[test]
    fn names_were_cold_if_the_storage_delivered_them() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let found = probe(home.path()).expect("a directory");
        let of = |file_system: &str, kind: &str| TargetDescription {
            file_system: file_system.into(),
            profile: nilometer_model::StorageProfile {
                kind: kind.parse().expect("a kind"),
                ..nilometer_model::StorageProfile::default()
            },
            ..found.clone()
        };
        let [disk, network] = [of("xfs", "xfs"), of("nfs4", "nfs")];
        let read = |read| Sample {
            device: Some(DeviceTraffic { read, ..DeviceTraffic::default() }),
            ..Sample::new(Nanos(0))
        };
        let received = |received| Sample {
            during: Activity { received, ..Activity::default() },
            ..Sample::new(Nanos(0))
        };
        let judged = |sample: &Sample, of| judged_by_traffic(Bytes(100), sample, of);
        assert_eq!(judged(&read(100), &disk), Coldness::Proved);
        assert_eq!(judged(&read(99), &disk), Coldness::Contradicted);
        assert_eq!(judged(&received(100), &network), Coldness::Proved);
        assert_eq!(judged(&received(99), &network), Coldness::NotProvable);
        assert_eq!(judged(&received(100), &disk), Coldness::NotProvable, "nothing comes over a network");
        let beside = |sample| Sample { background: Some(BackgroundDone::default()), ..sample };
        assert_eq!(judged(&beside(read(100)), &disk), Coldness::NotProvable, "it may be the other's");
        assert_eq!(judged(&beside(read(99)), &disk), Coldness::Contradicted);
    }
}
