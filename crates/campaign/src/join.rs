//! The beginning of a campaign of several processes: all join the run that rank 0 made on the targets, or
//! nothing begins.

use std::{os::unix::fs::MetadataExt, sync::Arc};

use nilometer_cluster::{CampaignRanks, Cluster, ClusterDecision, JoinedRun, RankReport};
use nilometer_model::{Nanos, TargetAddress, TargetDescription};
use nilometer_plan::RankNodes;
use nilometer_remote::{CopySource, join, join_own, join_with_source};
use nilometer_storage::{Target, TargetError, target::run_id};

/// Describes a target. If it hangs, the function never returns, or a child process does the work and is given
/// up.
pub type Describe<'a> = &'a dyn Fn(&TargetAddress) -> Result<TargetDescription, TargetError>;

/// At rank 0, the first exchange: finds the node of each process.
pub fn all_present(cluster: &dyn Cluster) -> RankNodes {
    let reports = cluster.gather(RankReport::Present(cluster.node()));
    let name = |report| match report {
        RankReport::Present(name) => name,
        other => unreachable!("nothing is reported before {other:?}"),
    };
    RankNodes::of(&reports.into_iter().map(name).collect::<Vec<_>>())
}

/// The places that rank 0 made, for all processes.
#[derive(Debug, Clone, Copy)]
pub struct SharedPlaces<'a> {
    /// The run on each target, in the order of the plan; `None` for one that is left out.
    pub targets: &'a [Option<Arc<dyn Target>>],
    /// The places for the loads of each rank, in the order of targets; `None` for a target without a load.
    pub loads: &'a [Vec<Option<Arc<dyn Target>>>],
}

/// The places of a process that joined.
#[derive(Debug, Default)]
pub(crate) struct JoinedPlaces {
    /// The run on each target, in the order of the plan; `None` for one that is left out.
    pub(crate) targets: Vec<Option<Arc<dyn Target>>>,
    /// The place for the loads of this process on each target; `None` for a target without a load.
    pub(crate) loads: Vec<Option<Arc<dyn Target>>>,
}

/// At rank 0, has all processes join the run in these places. `nodes` is the result
/// of [`all_present`].
///
/// # Errors
/// If some can't join, with the reasons in words, a line each. All others have then ended, and the campaign
/// must not begin.
pub fn joined_by_all(
    cluster: &dyn Cluster,
    version: &str,
    places: SharedPlaces<'_>,
    hang_after: Nanos,
    nodes: RankNodes,
) -> Result<CampaignRanks, String> {
    if cluster.size() == 1 {
        return Ok(CampaignRanks::alone());
    }
    let joined = shared_runs(places).and_then(|runs| {
        let version = version.into();
        cluster.broadcast(Some(ClusterDecision::Join { version, targets: runs, hang_after }));
        clients(cluster.gather(RankReport::Joined(Ok(own_clients(cluster, places.targets)))))
    });
    let clients = joined.inspect_err(|_| dismiss(cluster))?;
    let ranks = CampaignRanks::of(nodes, &clients);
    cluster.broadcast(Some(ClusterDecision::Begun(ranks.clone())));
    Ok(ranks)
}

/// The client through which this process reaches each target.
pub(crate) fn own_clients(cluster: &dyn Cluster, targets: &[Option<Arc<dyn Target>>]) -> Vec<Option<String>> {
    targets.iter().map(|target| client(target.as_deref()?.description(), cluster.rank())).collect()
}

/// The client through which a process reaches a target, and which may cache its data.
///
/// For a mounted file system it is the kernel's boot and the device number; each mount of a network file system
/// or of FUSE has its own number. For a URL each process is a client. `None` if neither can be found.
fn client(target: &TargetDescription, rank: u32) -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let boot = boot.trim();
    if target.address.url().is_some() {
        return Some(format!("{boot} rank {rank}"));
    }
    let device = std::fs::metadata(target.directory()?).ok()?.dev();
    Some(format!("{boot} device {device}"))
}

/// At rank 0, ends the others, before the campaign begins.
pub fn dismiss(cluster: &dyn Cluster) {
    cluster.broadcast(Some(ClusterDecision::End));
    cluster.barrier();
}

/// The clients of each rank; or the reasons why some can't join, a line each, without repetition.
fn clients(reports: Vec<RankReport>) -> Result<Vec<Vec<Option<String>>>, String> {
    let mut clients = Vec::new();
    let mut refused = Vec::new();
    for report in reports {
        match report {
            RankReport::Joined(Ok(of_rank)) => clients.push(of_rank),
            RankReport::Joined(Err(why)) if !refused.contains(&why) => refused.push(why),
            _ => {}
        }
    }
    if refused.is_empty() { Ok(clients) } else { Err(refused.join("\n")) }
}

/// The data that other processes need to join.
fn shared_runs(places: SharedPlaces<'_>) -> Result<Vec<Option<JoinedRun>>, String> {
    let shared = |(number, target): (usize, &Option<Arc<dyn Target>>)| {
        target.as_deref().map(|target| shared_run(target, number, places.loads)).transpose()
    };
    places.targets.iter().enumerate().map(shared).collect()
}

/// The run on the target of this number, with the places of each rank's loads there.
fn shared_run(
    target: &dyn Target,
    number: usize,
    loads: &[Vec<Option<Arc<dyn Target>>>],
) -> Result<JoinedRun, String> {
    let description = target.description().clone();
    let address = &description.address;
    let run = target.share().map_err(|error| error.to_string())?;
    if run.is_none() && description.keeps() {
        return Err(format!("{address}: several processes can't work in the same run there: start one"));
    }
    let places = loads.iter().filter_map(|of_rank| of_rank.get(number)?.as_deref());
    let loads = places.map(|place| place.share().map_err(|error| error.to_string()));
    let loads = loads.collect::<Result<_, _>>()?;
    let source = target.source().map(|source| source.description().address.clone());
    Ok(JoinedRun { description, run, loads, source })
}

/// Compares this process's view with the run that rank 0 made. Returns the joined targets, or the reason why it
/// can't join.
pub(crate) fn joined(
    theirs: &str,
    ours: &str,
    rank: u32,
    runs: &[Option<JoinedRun>],
    describe: Describe<'_>,
) -> Result<JoinedPlaces, String> {
    if theirs != ours {
        return Err(format!(
            "its program is {ours}, and that of rank 0 is {theirs}: run the same on all nodes"
        ));
    }
    let mut places = JoinedPlaces::default();
    for run in runs {
        let joined = run.as_ref().map(|run| joined_run(run, rank, describe)).transpose()?;
        let (target, load) = joined.unzip();
        places.targets.push(target);
        places.loads.push(load.flatten());
    }
    Ok(places)
}

/// A target, with the place there for the loads of a process, if there is one.
type TargetWithLoad = (Arc<dyn Target>, Option<Arc<dyn Target>>);

/// Joins the run on a target, and the place there for the loads of this rank.
fn joined_run(run: &JoinedRun, rank: u32, describe: Describe<'_>) -> Result<TargetWithLoad, String> {
    let there = &run.description;
    let here = describe(&there.address).map_err(|error| error.to_string())?;
    if here.file_system != there.file_system {
        return Err(format!(
            "{} is {} here and {} for rank 0: is it mounted here?",
            there.address, here.file_system, there.file_system
        ));
    }
    let load = run.loads.get(rank as usize).map(|load| join_own(here.clone(), load.as_ref())).transpose();
    let source = run.source.as_ref().map(|source| own_source(source, rank, describe)).transpose()?;
    let joined = match (&run.run, source) {
        (Some(run), Some(source)) => join_with_source(here, run, source),
        (run, _) => join(here, run.as_ref()),
    };
    let joined = joined.and_then(|target| Ok((target, load?)));
    joined.map_err(|error| {
        format!(
            "files of rank 0 on {} are missing here: is it the same file system? ({error})",
            there.address
        )
    })
}

/// The source of this process's copies: a run of its own in the directory of that name. It may be on a disk of this
/// machine.
fn own_source(address: &TargetAddress, rank: u32, describe: Describe<'_>) -> Result<CopySource, String> {
    let description = describe(address).map_err(|error| format!("the source of copies: {error}"))?;
    if !description.writable || !description.keeps() {
        return Err(format!("{address}, the source of copies, can't be written here"));
    }
    let run = run_id().named("source").part(rank.into()).0;
    Ok(CopySource { description, run })
}

#[cfg(test)]
mod tests {
    use nilometer_remote::describe;
    use nilometer_storage::target::{Posix, probe};

    use super::*;

    #[test]
    fn what_is_another_file_system_or_another_program_is_not_joined() {
        let place = tempfile::tempdir().expect("a directory");
        let target = Posix::create(probe(place.path()).expect("a directory"), 1).expect("writable");
        let target: Option<Arc<dyn Target>> = Some(Arc::new(target));
        let targets = [target, None];
        let places = SharedPlaces { targets: &targets, loads: &[] };
        let runs = shared_runs(places).expect("it can be shared");
        let all = joined("1", "1", 1, &runs, &describe).expect("it is the same");
        assert!(all.targets[0].is_some() && all.targets[1].is_none() && all.loads[0].is_none());
        let refused = |theirs: &str, runs: &[Option<JoinedRun>]| {
            joined(theirs, "1", 1, runs, &describe).expect_err("it is refused")
        };
        assert!(refused("2", &runs).contains("that of rank 0 is 2"));
        let mut foreign = runs.clone();
        foreign[0].as_mut().expect("there is one").description.file_system = "gpfs".into();
        let why = refused("1", &foreign);
        assert!(why.contains("gpfs for rank 0: is it mounted here?"), "{why}");
        let mut elsewhere = runs;
        let run = elsewhere[0].as_mut().and_then(|run| run.run.as_mut()).expect("there is one");
        run.name = "nilometer-00000000000000ff".into();
        let why = refused("1", &elsewhere);
        assert!(why.contains("is it the same file system?"), "{why}");
    }
}
