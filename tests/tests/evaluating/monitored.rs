//! Evaluations that monitoring watches: the metrics of a record, the weekly check, and its units. promtool reads the metrics.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use nilometer_tests::{nilometer, root, start, tool};
use rusqlite::Connection;
use tempfile::TempDir;

/// A stage with a rate of its own, so that all runs measure nearly the same on a busy machine too.
const PLAN: &str = "title = \"weekly \\\"one\\\"\"\nrepeats = 4\nreserve = \"0 B\"\n[[stage]]\nname = \"files\"\nrate = \"2 MB/s\"\n\
                    [stage.workload.stream]\nfile_size = \"1 MiB\"\nblock_size = \"256 KiB\"\naccess = \"buffered\"\n";

/// Evaluations of which one at least has no figure that a busy machine spoilt.
const TRIES: usize = 10;

fn contrib(name: &str) -> PathBuf {
    root().join("contrib/weekly").join(name)
}

/// A directory with a target, a plan and the settings of a check.
struct WeeklyCheck {
    home: TempDir,
}

impl WeeklyCheck {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        for folder in ["target", "textfiles"] {
            fs::create_dir(home.path().join(folder)).expect("space");
        }
        fs::write(home.path().join("plan.toml"), PLAN).expect("space");
        let check = WeeklyCheck { home };
        check.set("target");
        check
    }

    /// Writes the settings for a check of this target.
    fn set(&self, target: &str) {
        let place = self.home.path().display();
        let settings = format!(
            "NAME=one\nTARGETS={place}/{target}\nOPTIONS='--plan {place}/plan.toml'\nRECORDS={place}/records\nBASELINES=1\n\
             TEXTFILES={place}/textfiles\nMAIL_TO=storage@example.org\nMAILER='tee {place}/mail'\nNILOMETER={}\n",
            nilometer().display()
        );
        fs::write(self.home.path().join("weekly.conf"), settings).expect("space");
    }

    /// Runs the check. Returns its exit code and the result in its metrics.
    fn run(&self) -> (Option<i32>, String) {
        let mut script = Command::new(contrib("nilometer-weekly"));
        let output = script.arg(self.home.path().join("weekly.conf")).output().expect("it starts");
        let result = self.value_of("nilometer_weekly_result", " 1");
        let result = result.split("result=\"").nth(1).and_then(|rest| rest.split('"').next());
        (output.status.code(), result.unwrap_or_else(|| panic!("{output:?}")).to_owned())
    }

    /// Runs the check until it has a baseline. A busy machine makes figures INVALID, which make none.
    fn make_baseline(&self) {
        for _ in 0..TRIES {
            let (code, result) = self.run();
            if (code, result.as_str()) != (Some(4), "undecided") {
                assert_eq!((code, result.as_str()), (Some(0), "baseline"), "{}", self.mail());
                assert_eq!(self.mail(), "", "nothing is wrong");
                return;
            }
            fs::remove_file(self.home.path().join("mail")).expect("it says what is INVALID");
        }
        panic!("no baseline in {TRIES} evaluations");
    }

    fn textfile(&self, kind: &str) -> String {
        let path = self.home.path().join("textfiles").join(format!("nilometer_{kind}_one.prom"));
        fs::read_to_string(path).expect("metrics")
    }

    /// The line of the check's metrics with this begin and end.
    fn value_of(&self, begin: &str, end: &str) -> String {
        let text = self.textfile("weekly");
        let line = text.lines().find(|line| line.starts_with(begin) && line.ends_with(end));
        line.unwrap_or_else(|| panic!("{begin}: {text}")).to_owned()
    }

    fn mail(&self) -> String {
        fs::read_to_string(self.home.path().join("mail")).unwrap_or_default()
    }

    /// The only baseline.
    fn baseline(&self) -> PathBuf {
        let folder = self.home.path().join("records/baseline");
        let entries: Vec<_> =
            fs::read_dir(folder).expect("baselines").map(|entry| entry.expect("one").path()).collect();
        assert_eq!(entries.len(), 1, "{entries:?}");
        entries[0].clone()
    }
}

/// Asserts that promtool reads the metrics and has nothing to say against their names.
fn promtool_reads(metrics: &str) {
    let Some(mut promtool) = tool("promtool") else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("metrics.prom");
    fs::write(&path, metrics).expect("space");
    let file = fs::File::open(path).expect("it was just written");
    let output = promtool.args(["check", "metrics"]).stdin(Stdio::from(file)).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}\n{metrics}");
}

/// Makes all samples of a record a hundred times as fast.
fn hasten(record: &Path) {
    let changed =
        Connection::open(record).expect("a record").execute("UPDATE sample SET wall = wall / 100", []);
    assert!(changed.expect("samples") > 0);
}

#[test]
fn the_weekly_check_keeps_a_baseline_and_tells_a_loss() {
    let check = WeeklyCheck::new();
    check.make_baseline();
    promtool_reads(&check.textfile("weekly"));
    let evaluation = check.textfile("evaluation");
    promtool_reads(&evaluation);
    let figure = "nilometer_evaluation_rate_bytes_per_second{title=\"weekly \\\"one\\\"\",stage=\"files\",";
    assert!(evaluation.lines().any(|line| line.starts_with(figure)), "{evaluation}");
    // It compares with what it kept. With four repeats the answer may be open, and a machine that others use more than
    // before is slower.
    let (code, result) = check.run();
    let answers = [(Some(0), "held"), (Some(4), "undecided"), (Some(3), "worse")];
    assert!(answers.contains(&(code, result.as_str())), "{code:?} {result}");
    hasten(&check.baseline());
    assert_eq!(check.run(), (Some(3), "worse".into()), "{}", check.mail());
    check.value_of("nilometer_weekly_exit_code{check=\"one\",step=\"compare\"}", " 3");
    promtool_reads(&check.textfile("weekly"));
    let mail = check.mail();
    assert!(mail.starts_with("To: storage@example.org\nSubject: Nilometer on "), "{mail}");
    assert!(mail.contains("check one, result worse (exit code 3)\n\n"), "{mail}");
    assert!(mail.contains("files") && mail.contains("Record: "), "{mail}");
}

#[test]
fn a_check_that_comes_to_no_end_is_told_and_leaves_the_last_evaluation() {
    let check = WeeklyCheck::new();
    check.make_baseline();
    let before = check.textfile("evaluation");
    check.set("not-there");
    assert_eq!(check.run(), (Some(1), "failed".into()));
    assert!(check.mail().contains("not-there"), "{}", check.mail());
    assert_eq!(check.textfile("evaluation"), before);
    fs::write(check.home.path().join("weekly.conf"), "NAME='a b'\n").expect("space");
    let mut script = Command::new(contrib("nilometer-weekly"));
    let refused = script.arg(check.home.path().join("weekly.conf")).output().expect("it starts");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("NAME=a b"), "{said}");
}

#[test]
fn metrics_take_the_place_of_earlier_ones_at_once() {
    let check = WeeklyCheck::new();
    let limit = Duration::from_mins(2);
    let evaluate = ["evaluate", "target", "--plan", "plan.toml", "--record", "r.sqlite", "--quiet"];
    let ended = start(check.home.path(), &evaluate).end(limit);
    assert!(ended.has_answered(), "{ended:?}");
    let path = check.home.path().join("textfiles/nilometer.prom");
    fs::write(&path, "earlier ones\n").expect("space");
    let reading = fs::File::open(&path).expect("it is there");
    let report = ["report", "r.sqlite", "--format", "prometheus"];
    let output = ["--output", "textfiles/nilometer.prom"];
    let ended = start(check.home.path(), &[&report[..], &output].concat()).end(limit);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let length = reading.metadata().expect("it is open").len();
    assert_eq!(length, 13, "a reader of the earlier file keeps all of it");
    assert_ne!(
        fs::metadata(&path).expect("it is there").ino(),
        reading.metadata().expect("it is open").ino()
    );
    let printed = start(check.home.path(), &report).end(limit);
    assert_eq!((printed.code, fs::read_to_string(&path).expect("text")), (Some(0), printed.stdout));
    let files = fs::read_dir(check.home.path().join("textfiles")).expect("a directory").count();
    assert_eq!(files, 1, "nothing is left beside it");
    // A fifo or a device gets the text itself.
    let device = start(check.home.path(), &[&report[..], &["--output", "/dev/null"]].concat()).end(limit);
    assert_eq!(device.code, Some(0), "{device:?}");
    assert!(!fs::metadata("/dev/null").expect("a device").is_file());
}

fn text_of(name: &str) -> String {
    fs::read_to_string(contrib(name)).expect("it is there")
}

#[test]
fn the_units_and_the_line_of_cron_start_the_same() {
    let service = text_of("nilometer-weekly.service");
    let started =
        service.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("it starts something");
    let cron = text_of("nilometer-weekly.cron");
    assert!(cron.lines().any(|line| line == format!("0 2 * * 0 root {started}")), "{cron}");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = started.split(' ').next().expect("a word");
    let copies = ["nilometer-weekly.service", "nilometer-weekly.timer"].map(|name| {
        let path = directory.path().join(name);
        fs::write(&path, text_of(name).replace(program, "/bin/true")).expect("space");
        path
    });
    let Ok(verified) = Command::new("systemd-analyze").arg("verify").args(&copies).output() else {
        eprintln!("skipped: no systemd-analyze here");
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !said.contains("nilometer-weekly"), "{said}");
}

#[test]
fn the_delivered_settings_are_those_that_the_script_knows() {
    let script = text_of("nilometer-weekly");
    let settings = text_of("weekly.conf");
    let lines = settings.lines().map(|line| line.trim_start_matches('#'));
    let keys: Vec<_> = lines.filter_map(|line| line.split_once('=')).map(|(key, _)| key).collect();
    assert!(keys.len() > 8, "{keys:?}");
    let unknown: Vec<_> = keys.iter().filter(|key| !script.contains(&format!("${key}"))).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
