//! What users do all day, by the real program on real file systems: the plan of the study that measured it, caches that are really
//! dropped before a tree is walked, and a file system that runs out of inodes in the middle.

use std::{
    fs::{self, File},
    iter::repeat_with,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use nilometer_model::{Coldness, Invalid, Phase, Sample};
use nilometer_plan::{Measured, Results};
use nilometer_tests::{Ended, FileSystem, Running, Testbed, may_mount, nilometer, run_directories, start};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_mins(5);

/// What the study calls each test, as reports name it: the stage and the phase.
const TESTS: [(&str, &str); 9] = [
    ("ten dd at once", "write"),
    ("untar, 30 thousand files of 2 GB", "untar"),
    ("untar, 46 thousand files of an archive of 80 MB", "untar"),
    ("20 GB as writes of 100 bytes, and at once", "write"),
    ("grep, 5.6 GB", "grep"),
    ("ls -lR and du", "ls -lR"),
    ("ls -lR and du", "du"),
    ("make -j8 and -j32", "make"),
    ("hot file", "read"),
];

#[test]
fn the_plan_of_uci_ends_in_verdicts_by_test() {
    let _alone = alone();
    if !may_mount() {
        return;
    }
    let systems = [FileSystem::ext4(1500), FileSystem::xfs(1500)];
    let home = tempfile::tempdir().expect("a temporary directory");
    let targets = systems.each_ref().map(|system| system.path().to_owned());
    ends_in_verdicts(home.path(), &start(home.path(), &of_uci(&targets, "1/200")).end(LIMIT));
    for system in &systems {
        assert!(run_directories(system.path()).is_empty(), "something is left behind");
    }
}

#[test]
fn the_plan_of_uci_ends_in_verdicts_on_two_systems_of_servers() {
    let _alone = alone();
    let Some(testbed) = Testbed::of(&["gluster", "moosefs"]) else { return };
    let all = ["gluster", "moosefs"].into_iter().flat_map(|system| testbed.mounts(system));
    let of_these = |mount: &PathBuf| ["distributed", "goal-1"].iter().any(|name| mount.ends_with(name));
    let targets: Vec<PathBuf> = all.filter(of_these).collect();
    assert_eq!(targets.len(), 2);
    let home = tempfile::tempdir().expect("a temporary directory");
    // A file there takes as long as twenty on a disk.
    let arguments = of_uci(&targets, "1/1000");
    let mut command = testbed.command("enter", &[nilometer().to_str().expect("plain letters")]);
    command.args(arguments).current_dir(home.path());
    ends_in_verdicts(home.path(), &Running::of(command).end(Duration::from_mins(90)));
    for target in &targets {
        assert!(run_directories(target).is_empty(), "something is left behind");
    }
}

/// At this scale, or that which the study's page has, where there is time for it.
fn of_uci(targets: &[PathBuf], scale: &str) -> Vec<String> {
    let scale = if std::env::var_os("NILOMETER_LONG").is_some() { "1/20" } else { scale };
    let targets = targets.iter().map(|target| target.display().to_string());
    let rest = ["--plan", "uci", "--scale", scale, "--reserve", "0 B", "--record", "r.sqlite"];
    std::iter::once("evaluate".to_owned()).chain(targets).chain(rest.map(str::to_owned)).collect()
}

/// Each test of the study was measured three times on each of two targets, and compared wherever its figures can be used.
fn ends_in_verdicts(home: &Path, ended: &Ended) {
    assert!(matches!(ended.code, Some(0 | 4)), "{}\n{}", ended.stdout, ended.stderr);
    let results = nilometer_record::read(&home.join("r.sqlite")).expect("a record");
    let told = start(home, &["report", "r.sqlite", "--format", "json"]).end(LIMIT);
    let report: Value = serde_json::from_str(&told.stdout).expect("JSON");
    let compared = report["comparisons"].as_array().expect("comparisons");
    assert!(!compared.is_empty(), "{}", ended.stdout);
    for (stage, phase) in TESTS {
        let title = format!("{stage}, {phase}");
        let of_test: Vec<_> = results
            .samples
            .iter()
            .filter(|measured| {
                results.cells[measured.key.cell].stage == stage && measured.key.phase.name() == phase
            })
            .collect();
        assert!(!of_test.is_empty() && of_test.len() % 6 == 0, "{title}: three repeats on each of two");
        let spoilt = |sample: &Sample| sample.invalid.is_some();
        for Measured { sample, key } in of_test.iter().copied() {
            // A processor that was busy is no fault of the program; nor is it that names of a small tree lie in a journal in
            // memory, which no dropping of caches reaches.
            let why = &sample.invalid;
            let is_excused = matches!(why, None | Some(Invalid::Starved(_) | Invalid::WarmRead));
            assert!(is_excused, "{title}, {}: {why:?}", key.target);
        }
        let verdict = compared.iter().find(|pair| pair["stage"] == stage && pair["phase"] == phase);
        let expected = !of_test.iter().any(|measured| spoilt(&measured.sample));
        assert!(verdict.is_some() || !expected, "{title}: no verdict");
    }
}

/// Caches are those of the whole machine: tests of what is cold, or at hand, come one after the other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A plan in a directory of its own, and the record of what came of it.
struct Evaluated {
    home: TempDir,
}

impl Evaluated {
    fn new(plan: &str) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        fs::write(home.path().join("plan.toml"), plan).expect("space");
        Evaluated { home }
    }

    fn arguments(targets: &[&Path]) -> Vec<PathBuf> {
        let fixed = ["evaluate", "--plan", "plan.toml", "--record", "r.sqlite"].map(PathBuf::from);
        fixed.into_iter().chain(targets.iter().map(|target| target.to_path_buf())).collect()
    }

    fn record(&self) -> PathBuf {
        self.home.path().join("r.sqlite")
    }

    fn results(&self) -> Results {
        nilometer_record::read(&self.record()).expect("a record")
    }
}

/// The samples of a phase on a target, with their stages.
fn samples(results: &Results, target: usize, phase: Phase) -> Vec<(&str, &Sample)> {
    let wanted = results
        .samples
        .iter()
        .filter(|measured| measured.key.target == target && measured.key.phase == phase);
    wanted.map(|measured| (&*results.cells[measured.key.cell].stage, &measured.sample)).collect()
}

const COLD_AND_WARM: &str = r#"
title = "what a drop of caches does"
repeats = 2
reserve = "0 B"
[[stage]]
name = "cold"
[stage.workload.walk]
directories = 200
total_files = 4000
total_size = "8 MB"
command = ["ls", "du"]
[[stage]]
name = "warm"
[stage.workload.walk]
directories = 200
total_files = 4000
total_size = "8 MB"
command = ["ls", "du"]
cold = false
[[stage]]
name = "search"
[stage.workload.search]
directories = 200
files = 4000
size = "40 MB"
[[stage]]
name = "open"
[stage.workload.open_files]
directories = 200
files = 4000
size = "40 MB"
operations = 500
"#;

/// On a loop device what is read may lie in the memory of the image's file, so that it is not provable; what a device delivers is
/// there to be seen all the same.
#[test]
fn caches_are_dropped_before_names_and_files_are_to_be_cold() {
    let _alone = alone();
    if !may_mount() {
        return;
    }
    let systems = [FileSystem::ext4(1000), FileSystem::xfs(1000)];
    // Another test may drop the caches of the machine while this one measures what is at hand.
    let at_hand =
        |results: &Results| (0..systems.len()).all(|target| warm_names_are_at_hand(results, target));
    let mut campaigns = repeat_with(|| cold_and_warm(&systems)).take(3);
    let results = campaigns.find(at_hand).expect("one of three campaigns reads what is at hand");
    for target in 0..systems.len() {
        for (stage, sample) in names(&results, target) {
            let least = 64 * sample.operations;
            assert!(stage != "cold" || read(sample) >= least, "{} B for {least} on {target}", read(sample));
            let coldness = (stage == "cold").then_some(Coldness::NotProvable);
            assert_eq!(sample.coldness, coldness, "{stage} on {target}");
        }
        for (_, sample) in samples(&results, target, Phase::Search) {
            assert_eq!((sample.bytes, sample.operations), (40_000_000, 4000));
            assert!(read(sample) > 36_000_000, "{:?}", sample.device);
        }
        let [first, second] = samples(&results, target, Phase::OpenFiles)[..] else { panic!("two repeats") };
        assert_eq!([first, second].map(|(_, sample)| sample.operations), [500; 2]);
    }
}

fn cold_and_warm(systems: &[FileSystem]) -> Results {
    let evaluated = Evaluated::new(COLD_AND_WARM);
    let targets: Vec<_> = systems.iter().map(FileSystem::path).collect();
    let ended = start(evaluated.home.path(), &Evaluated::arguments(&targets)).end(LIMIT);
    assert!(matches!(ended.code, Some(0 | 4)), "{}\n{}", ended.stdout, ended.stderr);
    evaluated.results()
}

/// The samples of `ls` and `du` on a target, with their stages.
fn names(results: &Results, target: usize) -> Vec<(&str, &Sample)> {
    [Phase::Walk, Phase::DiskUsage].into_iter().flat_map(|phase| samples(results, target, phase)).collect()
}

/// Bytes that the device delivered for a sample.
fn read(sample: &Sample) -> u64 {
    sample.device.expect("a loop device counts").read
}

fn warm_names_are_at_hand(results: &Results, target: usize) -> bool {
    let named = names(results, target);
    let mut warm = named.iter().filter(|(stage, _)| *stage == "warm").map(|(_, sample)| sample).peekable();
    assert!(warm.peek().is_some(), "they were measured");
    warm.all(|sample| read(sample) < 16 * sample.operations)
}

/// On a device of this machine itself what was delivered proves that nothing was at hand.
#[test]
fn a_disk_that_delivers_proves_that_names_were_cold() {
    let _alone = alone();
    if !may_mount() {
        return;
    }
    let target = tempfile::tempdir().expect("a temporary directory");
    let evaluated = Evaluated::new(COLD_AND_WARM);
    let ended = start(evaluated.home.path(), &Evaluated::arguments(&[target.path()])).end(LIMIT);
    assert!(matches!(ended.code, Some(0 | 4)), "{}\n{}", ended.stdout, ended.stderr);
    let results = evaluated.results();
    let described = results.targets[0].description.as_ref().expect("a description");
    let provable = described.device.is_some() && !described.has_a_cache_of_its_own();
    let expected = if provable { Coldness::Proved } else { Coldness::NotProvable };
    for (stage, sample) in samples(&results, 0, Phase::Walk) {
        let expected = (stage == "cold").then_some(expected);
        assert_eq!(sample.coldness, expected, "{stage}: {:?}", sample.device);
    }
}

const MANY: &str = r#"
title = "more files than there are inodes for"
repeats = 1
reserve = "0 B"
[[stage]]
name = "untar"
[stage.workload.unpack]
directories = 500
files = 40000
size = "40 kB"
[[stage]]
name = "mdtest"
[stage.workload.tree]
levels = 0
branching = 0
items = 40000
kind = "files"
"#;

/// There is room for all when it begins, and then somebody else takes some of it.
#[test]
fn inodes_that_run_out_in_the_middle_are_data_and_the_other_target_is_measured() {
    let _alone = alone();
    if !may_mount() {
        return;
    }
    let few = FileSystem::ext4_for(400, 50_000);
    let enough = FileSystem::tmpfs("size=1g,nr_inodes=200k");
    let evaluated = Evaluated::new(MANY);
    let running = start(evaluated.home.path(), &Evaluated::arguments(&[few.path(), enough.path()]));
    running.await_run_directory(few.path(), &evaluated.record());
    // The campaign stands still meanwhile, so that it does not come first to what there is room for only once.
    kill_process(running.worker(), Signal::STOP).expect("it runs");
    let others = few.path().join("others");
    fs::create_dir(&others).expect("an inode");
    let taken =
        (0..20_000).take_while(|number| File::create(others.join(number.to_string())).is_ok()).count();
    kill_process(running.worker(), Signal::CONT).expect("it is there");
    let ended = running.end(LIMIT);
    assert!(matches!(ended.code, Some(1 | 4)), "{ended:?}");
    let results = evaluated.results();
    let mut full = 0;
    for (target, phase) in
        [0, 1].into_iter().flat_map(|target| [Phase::Unpack, Phase::CreateFiles].map(|phase| (target, phase)))
    {
        let [(_, sample)] = samples(&results, target, phase)[..] else { panic!("{phase:?} on {target}") };
        if target == 0 {
            assert_eq!(sample.invalid, Some(Invalid::Errors), "{phase:?} beside {taken} files of others");
            assert_eq!(sample.errors.keys().copied().collect::<Vec<_>>(), [ENOSPC], "{phase:?}");
            assert!(sample.operations < 40_000, "{phase:?}");
            full += 1;
        } else {
            assert!(!matches!(sample.invalid, Some(Invalid::Errors)), "{phase:?}: {:?}", sample.errors);
            assert_eq!(sample.operations, 40_000, "{phase:?}");
        }
    }
    assert_eq!(full, 2);
    assert!(ended.stdout.contains("operations failed"), "the report says why: {}", ended.stdout);
    assert!(results.targets[0].left_out.is_none() && run_directories(few.path()).is_empty(), "{ended:?}");
}

/// Of Linux.
const ENOSPC: i32 = 28;
