//! The beginning of a campaign of several processes: all join the run that rank 0 made on the targets, or
//! nothing begins.

use std::{os::unix::fs::MetadataExt, sync::Arc};

use nilometer_cluster::{CampaignRanks, Cluster, ClusterDecision, JoinedRun, RankReport};
use nilometer_model::{Nanos, TargetAddress, TargetDescription};
use nilometer_plan::RankNodes;
use nilometer_remote::join;
use nilometer_storage::{Target, TargetError};

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

/// At rank 0, has all processes join the run on these targets, in the order of the plan. `nodes` is the result
/// of [`all_present`].
///
/// # Errors
/// If some can't join, with the reasons in words, a line each. All others have then ended, and the campaign
/// must not begin.
pub fn joined_by_all(
    cluster: &dyn Cluster,
    version: &str,
    targets: &[Option<Arc<dyn Target>>],
    hang_after: Nanos,
    nodes: RankNodes,
) -> Result<CampaignRanks, String> {
    if cluster.size() == 1 {
        return Ok(CampaignRanks::alone());
    }
    let joined = shared_runs(targets).and_then(|runs| {
        let version = version.into();
        cluster.broadcast(Some(ClusterDecision::Join { version, targets: runs, hang_after }));
        clients(cluster.gather(RankReport::Joined(Ok(own_clients(cluster, targets)))))
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
fn shared_runs(targets: &[Option<Arc<dyn Target>>]) -> Result<Vec<Option<JoinedRun>>, String> {
    targets.iter().map(|target| target.as_deref().map(shared_run).transpose()).collect()
}

fn shared_run(target: &dyn Target) -> Result<JoinedRun, String> {
    let description = target.description().clone();
    let address = &description.address;
    if target.source().is_some() {
        return Err(format!(
            "{address}: copies are made by one process, and there are several: leave them out"
        ));
    }
    let run = target.share().map_err(|error| error.to_string())?;
    if run.is_none() && description.keeps() {
        return Err(format!("{address}: several processes can't work in the same run there: start one"));
    }
    Ok(JoinedRun { description, run })
}

/// Compares this process's view with the run that rank 0 made. Returns the joined targets, or the reason why it
/// can't join.
pub(crate) fn joined(
    theirs: &str,
    ours: &str,
    targets: &[Option<JoinedRun>],
    describe: Describe<'_>,
) -> Result<Vec<Option<Arc<dyn Target>>>, String> {
    if theirs != ours {
        return Err(format!(
            "its program is {ours}, and that of rank 0 is {theirs}: run the same on all nodes"
        ));
    }
    targets.iter().map(|run| run.as_ref().map(|run| joined_run(run, describe)).transpose()).collect()
}

fn joined_run(run: &JoinedRun, describe: Describe<'_>) -> Result<Arc<dyn Target>, String> {
    let there = &run.description;
    let here = describe(&there.address).map_err(|error| error.to_string())?;
    if here.file_system != there.file_system {
        return Err(format!(
            "{} is {} here and {} for rank 0: is it mounted here?",
            there.address, here.file_system, there.file_system
        ));
    }
    let joined = join(here, run.run.as_ref());
    joined.map_err(|error| {
        format!(
            "files of rank 0 on {} are missing here: is it the same file system? ({error})",
            there.address
        )
    })
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
        let runs = shared_runs(&targets).expect("it can be shared");
        assert!(joined("1", "1", &runs, &describe).is_ok_and(|all| all[0].is_some() && all[1].is_none()));
        let refused = |theirs: &str, runs: &[Option<JoinedRun>]| {
            joined(theirs, "1", runs, &describe).expect_err("it is refused")
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
