//! Copies from an old storage to a new one beside users, and the forecast of a whole move: by the real program, from a
//! directory on a disk to one in memory.

use std::{fs, path::PathBuf, time::Duration};

use nilometer_plan::{BackgroundLoad, Measured, Results};
use nilometer_tests::{Ended, await_some, run_directories, start};
use serde_json::Value;
use tempfile::TempDir;

const HEAD: &str = "title = \"a move\"\nreserve = \"0 B\"\nrepeats = 2\n";
/// Users who wait for two seconds, beside a copy of two trees with two workers.
const NOBODY: &str = "[[stage]]\nname = \"nobody\"\n[stage.workload.wait]\nduration = \"200 ms\"\noperations = 10\n\
                      [stage.background]\nworkers = 2\nrate = [\"2 MB/s\", \"1 TB/s\"]\n\
                      [stage.background.workload.unpack]\nsource = \"disk\"\ndurable = true\ndirectories = 5\n\
                      files = [100, 4]\nsize = \"4 MB\"\n";
/// Users who list, beside no copy and a copy.
const USERS: &str = "[[stage]]\nname = \"users\"\n[stage.workload.walk]\nlevels = 1\nbranching = 2\nfiles = 20\n\
                     cold = false\n[stage.background]\nrate = [\"0 MB/s\", \"1 TB/s\"]\n\
                     [stage.background.workload.unpack]\nsource = \"disk\"\ndirectories = 5\nfiles = 50\n\
                     size = \"4 MB\"\n";
const PATIENCE: Duration = Duration::from_mins(10);

/// An old storage on a disk with a plan beside it, and a new one in memory.
struct Move {
    home: TempDir,
    new: TempDir,
}

impl Move {
    fn with(stages: &str) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        fs::write(home.path().join("plan.toml"), format!("{HEAD}{stages}")).expect("space");
        fs::create_dir(home.path().join("old")).expect("space");
        Move { home, new: tempfile::tempdir_in("/dev/shm").expect("memory") }
    }

    fn line<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let new = self.new.path().to_str().expect("a plain name");
        let line = ["evaluate", "old", "--plan", "./plan.toml", "--record", "r.sqlite", "--copy-to", new];
        line.iter().chain(more).copied().collect()
    }

    fn run(&self, line: &[&str]) -> Ended {
        start(self.home.path(), line).end(PATIENCE)
    }

    fn report(&self, more: &[&str]) -> Ended {
        let line: Vec<&str> = ["report", "r.sqlite"].iter().chain(more).copied().collect();
        self.run(&line)
    }

    /// The run directories that are left on either storage.
    fn left(&self) -> Vec<PathBuf> {
        [self.home.path().join("old"), self.new.path().into()]
            .iter()
            .flat_map(|at| run_directories(at))
            .collect()
    }

    fn results(&self) -> Results {
        nilometer_record::read(&self.home.path().join("r.sqlite")).expect("a record")
    }
}

/// The samples beside a copy that did something. On a busy machine there may be none.
fn copied(results: &Results) -> Vec<&Measured> {
    let beside = |measured: &&Measured| {
        let load = results.cells[measured.key.cell].background();
        load.is_some_and(BackgroundLoad::migrates) && measured.sample.invalid.is_none()
    };
    let is_known = |measured: &&Measured| measured.sample.background.is_some_and(|done| done.wall.0 > 0);
    results.samples.iter().filter(beside).filter(is_known).collect()
}

#[test]
fn a_copy_beside_users_has_a_rate_a_cost_and_a_forecast() {
    let case = Move::with(&format!("{NOBODY}{USERS}"));
    let ended = case.run(&case.line(&[]));
    assert!(ended.has_answered(), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(case.left(), Vec::<PathBuf>::new());
    let results = case.results();
    let copied = copied(&results);
    for measured in &copied {
        let done = measured.sample.background.expect("a copy");
        assert_eq!(done.errors, 0, "{measured:?}");
    }
    let report = case.report(&["--format", "json", "--move", "340 TB", "--move-files", "200000000"]);
    let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
    let migrations = report["migrations"].as_array().expect("a list");
    let stages = |name: &str| migrations.iter().filter(move |of| of["stage"] == name).count();
    let has = |name: &str| copied.iter().any(|of| results.cells[of.key.cell].stage == name);
    assert_eq!((stages("nobody") > 0, stages("users") > 0), (has("nobody"), has("users")), "{migrations:?}");
    for migration in migrations {
        assert_eq!(migration["amount_bytes"], 340_000_000_000_000_u64);
        assert_eq!(migration["amount_files"], 200_000_000);
    }
    let has_moved = copied.iter().any(|of| of.sample.background.is_some_and(|done| done.bytes > 0));
    let text = case.report(&["--move", "340 TB", "--move-files", "200000000"]).stdout;
    assert_eq!(text.contains("340 TB in 200000000 files take "), has_moved, "{text}");
    let markdown = case.report(&["--format", "markdown"]).stdout;
    assert_eq!(markdown.contains("1 TB of such files take "), has_moved, "{markdown}");
}

#[test]
fn a_killed_campaign_leaves_copies_that_its_continuation_removes() {
    let case = Move::with(NOBODY);
    let running = start(case.home.path(), &case.line(&[]));
    let is_copied = || {
        let runs = run_directories(case.new.path());
        runs.iter().any(|run| run.join("n_w0/n_f0").exists()).then_some(())
    };
    await_some("the first copied file", is_copied);
    running.killed();
    assert_ne!(case.left(), Vec::<PathBuf>::new());
    let ended = case.run(&["evaluate", "--resume", "--record", "r.sqlite"]);
    assert!(ended.has_answered(), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(case.left(), Vec::<PathBuf>::new());
}

#[test]
fn a_tree_like_a_census_has_the_forecast_of_that_census() {
    let stage = NOBODY
        .replace("directories = 5\nfiles = [100, 4]\nsize = \"4 MB\"", "like = \"census.json\"\nfiles = 20");
    assert_ne!(stage, NOBODY);
    let case = Move::with(&stage);
    let home = case.home.path().join("users");
    fs::create_dir(&home).expect("space");
    for number in 0..40 {
        fs::write(home.join(number.to_string()), vec![7; 5000]).expect("space");
    }
    let census = case.run(&["census", "users", "--format", "json"]).stdout;
    fs::write(case.home.path().join("census.json"), census).expect("space");
    let ended = case.run(&case.line(&[]));
    assert!(ended.has_answered(), "{}{}", ended.stdout, ended.stderr);
    let results = case.results();
    if copied(&results).iter().all(|of| of.sample.background.is_none_or(|done| done.bytes == 0)) {
        return;
    }
    assert!(ended.stdout.contains("200 kB in 40 files take "), "{}", ended.stdout);
}

#[test]
fn a_copy_without_a_place_and_a_place_without_a_copy_are_refused() {
    let case = Move::with(NOBODY);
    let refused = |line: &[&str], words: &[&str]| {
        let ended = case.run(line);
        assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
        assert!(words.iter().all(|word| ended.stderr.contains(word)), "{words:?} in {}", ended.stderr);
    };
    refused(&["evaluate", "old", "--plan", "./plan.toml"], &["stage `nobody`", "write --copy-to DIRECTORY"]);
    let new = case.new.path().to_str().expect("a plain name");
    refused(
        &["evaluate", "old", "--plan", "quick", "--copy-to", new],
        &["nothing of this plan is copied", "migration"],
    );
    let measured = format!(
        "{HEAD}[[stage]]\nname = \"measured\"\n[stage.workload.unpack]\nsource = \"disk\"\ndirectories = 1\n\
         files = 1\nsize = \"1 B\"\n"
    );
    fs::write(case.home.path().join("measured.toml"), measured).expect("space");
    refused(&["evaluate", "old", "--plan", "./measured.toml"], &["measured.toml:5", "copies as a load only"]);
    let both = NOBODY.replace("nobody", "others").replace("source = \"disk\"\n", "");
    fs::write(case.home.path().join("both.toml"), format!("{HEAD}{NOBODY}{both}")).expect("space");
    refused(
        &["evaluate", "old", "--plan", "./both.toml", "--copy-to", new],
        &["stage `others`", "write two plans"],
    );
    assert_eq!(case.left(), Vec::<PathBuf>::new());
}
