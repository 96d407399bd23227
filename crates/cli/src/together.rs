//! A recording by several processes of an MPI launcher, and the messages between them. Each records a part
//! into directories of its own: its turn of the frames (`simulate`), or the packets of its ports (`record`).
//!
//! ```text
//! rank 0   Share ->  Lanes -> Lanes ->  Prepared -> Prepared ->  start agreed ......  Stored -> all results
//! others   Share <-  Lanes -> Lanes <-  Prepared -> Prepared <-  start agreed ......  Stored
//! ```
//!
//! A single process does the same, and waits for nobody.

use std::{collections::BTreeSet, fmt::Display, net::SocketAddr, path::PathBuf, sync::Arc};

use anyhow::anyhow;
use nilometer_cluster::{
    Cluster, ClusterDecision, RankReport, SharedRecording, SharingDecision, SharingReport, StoredPart,
    UnpreparedPart,
};
use nilometer_model::{Moment, Nanos};
use nilometer_storage::{
    Calendar, Clock, PATIENCE, in_time,
    target::{Directory, KeptDirectory},
};

use crate::{Failure, explained, tell};

/// The recording of all processes, and this process's part in it.
#[derive(Debug)]
pub(crate) struct Together<'a> {
    cluster: &'a dyn Cluster,
    /// The recording in the words of rank 0's command line.
    pub(crate) shared: SharedRecording,
    /// The reason why this process can't take part, if its command line differs.
    unlike: Option<String>,
    places: PartPlaces,
}

/// The directories into which several processes record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartPlaces {
    /// Each process has its own.
    Own,
    /// All processes have the one that rank 0 makes.
    Common,
}

/// The lanes of a recording that belong to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnLanes {
    /// The number of the first one.
    pub(crate) first: u32,
    /// The number of lanes of all processes.
    pub(crate) all: u32,
}

impl<'a> Together<'a> {
    /// Sends the recording of rank 0's command line to all.
    pub(crate) fn share(cluster: &'a dyn Cluster, own: &SharedRecording) -> Self {
        let decided = (cluster.rank() == 0).then(|| SharingDecision::Asked(own.clone()));
        let SharingDecision::Asked(shared) = told(cluster, decided) else {
            unreachable!("process 0 sends the recording first")
        };
        let unlike = unlike(own, &shared);
        Together { cluster, shared, unlike, places: PartPlaces::Own }
    }

    /// Lets all processes record into one directory.
    pub(crate) fn in_one_directory(self) -> Self {
        Together { places: PartPlaces::Common, ..self }
    }

    /// Checks that this process has the same command line as rank 0.
    pub(crate) fn check_alike(&self) -> Result<(), Failure> {
        self.unlike.as_ref().map_or(Ok(()), |why| Err(Failure::Input(anyhow!("{why}"))))
    }

    /// The number of this process, from 0.
    pub(crate) fn rank(&self) -> u32 {
        self.cluster.rank()
    }

    /// The number of processes.
    pub(crate) fn size(&self) -> u32 {
        self.cluster.size()
    }

    /// True if there are other processes.
    pub(crate) fn is_shared(&self) -> bool {
        self.cluster.size() > 1
    }

    /// True if all processes record into one directory, which rank 0 makes.
    pub(crate) fn is_in_common(&self) -> bool {
        self.is_shared() && self.places == PartPlaces::Common
    }

    /// The name of this process's directories. Each process has its own, even on a common file system, unless
    /// all write one file.
    pub(crate) fn directory(&self) -> String {
        let SharedRecording { name, .. } = &self.shared;
        let is_own = self.is_shared() && self.places == PartPlaces::Own;
        if is_own { format!("{name}.{}", self.cluster.rank()) } else { name.clone() }
    }

    /// Makes the directories of this process. If all processes record into one, rank 0 makes it, and the others
    /// join it by its inode.
    pub(crate) fn directories(
        &self,
        make: impl FnOnce() -> Result<Vec<Arc<dyn KeptDirectory>>, Failure>,
        join: impl FnOnce(u64) -> Result<Vec<Arc<dyn KeptDirectory>>, Failure>,
    ) -> Result<Vec<Arc<dyn KeptDirectory>>, Failure> {
        if !self.is_in_common() {
            return make();
        }
        let own = (self.cluster.rank() == 0).then(make);
        let decided = own.as_ref().map(|own| SharingDecision::Directory(identity_of(own)));
        let SharingDecision::Directory(identity) = told(self.cluster, decided) else {
            unreachable!("behind the time comes the directory")
        };
        match (own, identity) {
            (Some(own), _) => own,
            (None, Ok(identity)) => join(identity),
            (None, Err(why)) => Err(Failure::Run(anyhow!(why))),
        }
    }

    /// A clock that is at zero at the same moment in all processes, as far as their clocks can be compared.
    /// With it comes that moment by the calendar of rank 0's machine: others may be set otherwise.
    pub(crate) fn clock(&self) -> (Clock, Moment) {
        let clock = Clock::start();
        if !self.is_shared() {
            return (clock, Calendar::start_of(clock));
        }
        self.cluster.barrier();
        let at = self.cluster.agree_start(&clock);
        clock.sleep_until(at);
        let clock = clock.with_zero_at(at);
        let begins =
            (self.cluster.rank() == 0).then(|| SharingDecision::Begins(Calendar::start_of(clock).0.0));
        let SharingDecision::Begins(begins) = told(self.cluster, begins) else {
            unreachable!("behind the lanes comes when they begin")
        };
        (clock, Moment(Nanos(begins)))
    }

    /// The lanes of this process, which has `mine` of them. `None` in a process that is done because there is
    /// no recording.
    pub(crate) fn lanes(&self, mine: Result<u32, Failure>) -> Result<Option<OwnLanes>, Failure> {
        if !self.is_shared() {
            return mine.map(|all| Some(OwnLanes { first: 0, all }));
        }
        let mine = self.check_alike().and(mine).map_err(|failure| self.said(&failure));
        let reports = self.all_said(SharingReport::Lanes(mine));
        let decided = (self.cluster.rank() == 0).then(|| SharingDecision::Lanes(all_lanes(reports)));
        match told(self.cluster, decided) {
            SharingDecision::Lanes(Ok(lanes)) => Ok(Some(own_lanes(&lanes, self.cluster.rank()))),
            SharingDecision::Lanes(Err(why)) if self.cluster.rank() == 0 => Err(Failure::Input(anyhow!(why))),
            _ => Ok(None),
        }
    }

    /// Waits until all are ready. If one is not, rank 0 reports the reason.
    pub(crate) fn all_prepared<T>(
        &self,
        mine: Result<T, Failure>,
        discard: impl FnOnce(T),
    ) -> Result<Option<T>, Failure> {
        if !self.is_shared() {
            return mine.map(Some);
        }
        let said = mine.as_ref().map(|_| ()).map_err(|failure| self.unprepared(failure));
        let reports = self.all_said(SharingReport::Prepared(said));
        let decided = (self.cluster.rank() == 0).then(|| SharingDecision::Prepared(first_wrong(reports)));
        match told(self.cluster, decided) {
            SharingDecision::Prepared(Ok(())) => mine.map(Some),
            SharingDecision::Prepared(Err(unprepared)) => {
                let failed = mine.map(discard).err();
                // Process 0 reports for the others too.
                let told =
                    (self.cluster.rank() == 0).then(|| failed.unwrap_or_else(|| failure_of(unprepared)));
                told.map_or(Ok(None), Err)
            }
            decision => unreachable!("nothing else comes before the start than {decision:?}"),
        }
    }

    /// The ends at which the processes take starts and ends of a series from each other, in the order of ranks. `None`
    /// in a process that is done because one of them has none.
    pub(crate) fn relays(
        &self,
        mine: Result<SocketAddr, Failure>,
    ) -> Result<Option<Vec<SocketAddr>>, Failure> {
        let said = mine.map_err(|failure| self.unprepared(&failure));
        let reports = self.all_said(SharingReport::Relay(said));
        let decided = (self.cluster.rank() == 0).then(|| SharingDecision::Relays(all_relays(reports)));
        match told(self.cluster, decided) {
            SharingDecision::Relays(Ok(ends)) => Ok(Some(ends)),
            SharingDecision::Relays(Err(unprepared)) if self.cluster.rank() == 0 => {
                Err(failure_of(unprepared))
            }
            _ => Ok(None),
        }
    }

    /// The time at which the first frame of all is due; `None` if that is at once.
    pub(crate) fn start(&self, clock: Clock) -> Option<Nanos> {
        self.is_shared().then(|| {
            self.cluster.barrier();
            self.cluster.agree_start(&clock)
        })
    }

    /// The stored parts of all processes, at rank 0. Empty elsewhere.
    pub(crate) fn stored(&self, mine: StoredPart) -> Vec<StoredPart> {
        let parts =
            self.all_said(SharingReport::Stored(mine)).into_iter().filter_map(|report| match report {
                SharingReport::Stored(part) => Some(part),
                _ => None,
            });
        parts.collect()
    }

    /// The reports of all processes, in the order of ranks, at rank 0. Empty elsewhere.
    fn all_said(&self, mine: SharingReport) -> Vec<SharingReport> {
        let reports = self.cluster.gather(RankReport::Shared(Box::new(mine))).into_iter();
        let said = reports.filter_map(|report| match report {
            RankReport::Shared(report) => Some(*report),
            _ => None,
        });
        said.collect()
    }

    /// This process's name in messages.
    fn who(&self) -> String {
        format!("process {} on {}", self.cluster.rank(), self.cluster.node())
    }

    /// Prints a note that all processes share, once.
    pub(crate) fn note(&self, what: impl Display) {
        if self.cluster.rank() == 0 {
            tell::note(format_args!("{what}"));
        }
    }

    /// The name of this process's machine.
    pub(crate) fn node(&self) -> String {
        self.cluster.node()
    }

    fn unprepared(&self, failure: &Failure) -> UnpreparedPart {
        UnpreparedPart { why: self.said(failure), asked_wrongly: matches!(failure, Failure::Input(_)) }
    }

    fn said(&self, failure: &Failure) -> String {
        format!("{}: {}", self.who(), explained(failure.error()))
    }
}

/// The inode of the one directory that rank 0 has made.
fn identity_of(made: &Result<Vec<Arc<dyn KeptDirectory>>, Failure>) -> Result<u64, String> {
    let made = made.as_ref().map_err(|failure| explained(failure.error()))?;
    let path = made.first().map(|directory| directory.path().to_owned()).unwrap_or_default();
    let asked = path.clone();
    let found =
        in_time(PATIENCE, path, move || Directory::identity(&asked).map_err(|error| error.to_string()));
    found.map_err(|error| error.to_string())?
}

/// Takes the decision of rank 0.
fn told(cluster: &dyn Cluster, decided: Option<SharingDecision>) -> SharingDecision {
    let decided = decided.map(|decided| ClusterDecision::Share(Box::new(decided)));
    let ClusterDecision::Share(decided) = cluster.broadcast(decided) else {
        unreachable!("processes that record say nothing else")
    };
    *decided
}

/// The first difference between a process's recording and that of rank 0; `None` without one.
fn unlike(own: &SharedRecording, first: &SharedRecording) -> Option<String> {
    let same = |of: &SharedRecording| (of.is_series, of.instrument.clone(), of.duration, of.frames);
    if own.version != first.version {
        return Some(format!("it is version {}, and process 0 is version {}", own.version, first.version));
    }
    (same(own) != same(first)).then(|| {
        "its instrument, duration or number of frames differs from that of process 0: write the same for all".into()
    })
}

/// The number of lanes of each process, or the reason of the first process without any.
fn all_lanes(reports: Vec<SharingReport>) -> Result<Vec<u32>, String> {
    let lanes = reports.into_iter().filter_map(|report| match report {
        SharingReport::Lanes(lanes) => Some(lanes),
        _ => None,
    });
    lanes.collect()
}

/// The end of each process, or the reason of the first process without one.
fn all_relays(reports: Vec<SharingReport>) -> Result<Vec<SocketAddr>, UnpreparedPart> {
    let ends = reports.into_iter().filter_map(|report| match report {
        SharingReport::Relay(end) => Some(end),
        _ => None,
    });
    ends.collect()
}

fn failure_of(unprepared: UnpreparedPart) -> Failure {
    let UnpreparedPart { why, asked_wrongly } = unprepared;
    if asked_wrongly { Failure::Input(anyhow!(why)) } else { Failure::Run(anyhow!(why)) }
}

fn first_wrong(reports: Vec<SharingReport>) -> Result<(), UnpreparedPart> {
    let prepared = reports.into_iter().filter_map(|report| match report {
        SharingReport::Prepared(prepared) => Some(prepared),
        _ => None,
    });
    prepared.collect()
}

fn own_lanes(lanes: &[u32], rank: u32) -> OwnLanes {
    OwnLanes { first: lanes.iter().take(rank as usize).sum(), all: lanes.iter().sum() }
}

/// The number of machines that made these parts, as text.
pub(crate) fn machines_of(parts: &[StoredPart]) -> String {
    let nodes: BTreeSet<&String> = parts.iter().map(|part| &part.node).collect();
    match nodes.len() {
        1 => "one machine".into(),
        several => format!("{several} machines"),
    }
}

/// The directories of the recording, each once.
pub(crate) fn directories_of(parts: &[StoredPart]) -> Vec<PathBuf> {
    let mut directories: Vec<_> = parts.iter().flat_map(|part| part.directories.iter().cloned()).collect();
    directories.dedup();
    directories
}

/// The first of these directories, made by other processes, that this process can't see.
pub(crate) fn unseen(directories: &[PathBuf]) -> Option<&PathBuf> {
    let is_seen = |path: PathBuf| in_time(PATIENCE, path.clone(), move || path.is_dir()).unwrap_or(false);
    directories.iter().find(|path| !is_seen((*path).clone()))
}

#[cfg(test)]
pub(crate) mod tests {
    use nilometer_model::Seed;

    use super::*;

    /// A recording of several processes.
    pub(crate) fn shared() -> SharedRecording {
        SharedRecording {
            version: "1".into(),
            id: 7,
            name: "scan".into(),
            is_series: false,
            key: 0,
            instrument: "{}".into(),
            duration: Nanos(5),
            frames: None,
            seed: Seed(1),
        }
    }

    #[test]
    fn lanes_are_numbered_over_all_processes() {
        let lanes = [2, 1, 3];
        let own: Vec<_> = (0..3).map(|rank| own_lanes(&lanes, rank)).collect();
        let expected = [0, 2, 3].map(|first| OwnLanes { first, all: 6 });
        assert_eq!(own, expected);
        let said = |lanes: Vec<Result<u32, String>>| lanes.into_iter().map(SharingReport::Lanes).collect();
        assert_eq!(all_lanes(said(vec![Ok(2), Ok(1)])), Ok(vec![2, 1]));
        let wrong = vec![Ok(2), Err("no space".into()), Err("no mount".into())];
        assert_eq!(all_lanes(said(wrong)), Err("no space".into()));
    }

    #[test]
    fn all_are_asked_for_the_same() {
        let first = shared();
        // Each process has its own number and data, and takes those of process 0.
        assert_eq!(unlike(&SharedRecording { id: 8, seed: Seed(2), ..shared() }, &first), None);
        for other in [
            SharedRecording { version: "2".into(), ..shared() },
            SharedRecording { instrument: "{\"name\":1}".into(), ..shared() },
            SharedRecording { frames: Some(3), ..shared() },
        ] {
            assert!(unlike(&other, &first).is_some(), "{other:?}");
        }
    }
}
