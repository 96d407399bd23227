//! What else the machine did stands beside every figure; who serves a FUSE mount is found; a terminal shows what runs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use nilometer_model::{Nanos, Phase};
use nilometer_storage::{process::daemons, target::probe};
use nilometer_tests::{FileSystem, await_some, may_mount, nilometer, start};
use tempfile::TempDir;

const PLAN: &str = r#"
title = "files"
repeats = 2
reserve = "0 B"
[[stage]]
name = "files"
[stage.workload.stream]
file_size = "16 MiB"
block_size = "1 MiB"
access = "buffered"
"#;

fn with_plan() -> TempDir {
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::write(home.path().join("plan.toml"), PLAN).expect("a file");
    home
}

fn calendar() -> Nanos {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    Nanos(time.as_nanos() as u64)
}

/// The loop device under the file system is served by a thread of the kernel, which is the client's time.
#[test]
fn what_the_machine_did_is_beside_every_figure() {
    if !may_mount() {
        return;
    }
    let (system, home, begun) = (FileSystem::ext4(128), with_plan(), calendar());
    let arguments = ["evaluate", "--plan", "plan.toml", "--record", "r.sqlite"].map(PathBuf::from);
    let arguments = [&arguments[..], &[system.path().into()]].concat();
    let ended = start(home.path(), &arguments).end(Duration::from_mins(5));
    let took = calendar().since(begun);
    assert!(ended.has_answered(), "{ended:?}");
    let results = nilometer_record::read(&home.path().join("r.sqlite")).expect("a record");
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    for measured in &results.samples {
        let sample = &measured.sample;
        let (before, during) = (sample.before, sample.during);
        // The looks are around the phase, and within the campaign.
        assert!(during.over >= sample.wall && before.over + during.over < took, "{took}: {sample:?}");
        assert!(before.over > Nanos(0) && during.switches > 0, "{sample:?}");
        // Two ticks more for each processor: the time is of a clock that is read just before the counters.
        assert!(during.busy.0 <= processors * (during.over.0 + 20_000_000), "{sample:?}");
        assert!(sample.machine <= during.busy, "{sample:?}");
        assert_eq!(during.pressure.is_some(), Path::new("/proc/pressure/cpu").exists());
        assert!(sample.started > begun && sample.started < calendar(), "{sample:?}");
        assert!(sample.switches.voluntary + sample.switches.involuntary > 0, "{sample:?}");
        let kernel = fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd");
        if kernel && measured.key.phase == Phase::Write {
            assert!(sample.client > Nanos(0), "{sample:?}");
        }
    }
    let fact = |key: &str| results.environment.iter().find(|(known, _)| known == key);
    assert!(fact("kernel").is_some() && fact("command").is_some_and(|(_, said)| said.contains("--plan")));
    let scheduler =
        results.environment.iter().any(|(key, _)| key.starts_with("loop") && key.ends_with(": scheduler"));
    assert!(scheduler, "{:?}", results.environment);
}

/// A FUSE mount that nobody answers, held by a process of its own.
struct Unanswered {
    point: TempDir,
    holder: Child,
}

impl Unanswered {
    fn mount() -> Self {
        let point = tempfile::tempdir().expect("a temporary directory");
        let mount = "exec 5<>/dev/fuse && mount -i -n -t fuse.test nobody \"$0\" \
                     -o fd=5,rootmode=40000,user_id=0,group_id=0 && exec sleep 60";
        let mut holder = Command::new("sh");
        let holder = holder.args(["-c", mount]).arg(point.path()).stdin(Stdio::null()).spawn();
        let unanswered = Unanswered { holder: holder.expect("a shell"), point };
        let table = || fs::read_to_string("/proc/self/mountinfo").expect("a table of mounts");
        let there = || table().contains(&*unanswered.point.path().to_string_lossy()).then_some(());
        await_some("the mount", there);
        let comm = format!("/proc/{}/comm", unanswered.holder.id());
        await_some("the holder", || {
            fs::read_to_string(&comm).is_ok_and(|name| name == "sleep\n").then_some(())
        });
        unanswered
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(self.point.path()).status());
        drop(self.holder.kill());
        drop(self.holder.wait());
    }
}

#[test]
fn who_serves_a_fuse_mount_is_found() {
    if !may_mount() || !Path::new("/dev/fuse").exists() {
        return;
    }
    let (one, other) = (Unanswered::mount(), Unanswered::mount());
    let mut description = probe(&std::env::temp_dir()).expect("a directory");
    assert_eq!(daemons(&description), Vec::<i32>::new(), "not FUSE");
    description.file_system = "fuse.test".into();
    for mounted in [&one, &other] {
        description.mount_point = mounted.point.path().into();
        let found = daemons(&description);
        // Before Linux 6.16 the kernel does not say whose connection it is, and `sleep` was not told the mount point.
        let told = fs::read_to_string(format!("/proc/{}/fdinfo/5", mounted.holder.id()));
        let expected = if told.is_ok_and(|info| info.contains("fuse_connection:")) {
            vec![mounted.holder.id().cast_signed()]
        } else {
            Vec::new()
        };
        assert_eq!(found, expected);
    }
}

/// `script` gives the program a terminal.
#[test]
fn a_terminal_shows_what_runs_in_two_lines() {
    let (home, target) = (with_plan(), tempfile::tempdir().expect("a temporary directory"));
    let plan = PLAN.replace("[[stage]]", "[[stage]]\ntime_limit = \"1500 ms\"").replace(
        "[stage.workload.stream]\nfile_size = \"16 MiB\"\nblock_size = \"1 MiB\"",
        "[stage.workload.random]\nfile_size = \"1 MiB\"\nblock_size = \"4 KiB\"\noperations = 1000000000",
    );
    fs::write(home.path().join("plan.toml"), plan).expect("a file");
    let command = format!("{} evaluate {} --plan plan.toml", nilometer().display(), target.path().display());
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output()
        .expect("script is there, as part of util-linux");
    let said = String::from_utf8_lossy(&output.stdout);
    // On a busy machine all samples may be INVALID.
    assert!(matches!(output.status.code(), Some(0 | 3 | 4)), "{said}");
    // Each is written from where the one before was erased.
    let written: Vec<&str> = said.split("\x1b[J").skip(1).filter(|text| text.starts_with('[')).collect();
    let (shown, samples): (Vec<&str>, Vec<&str>) =
        written.iter().partition(|text| text.contains(", repeat "));
    assert!(shown.len() >= 4, "it is rewritten five times a second: {said:?}");
    for text in &shown {
        let lines: Vec<&str> =
            text.split('\n').map(|line| line.split('\r').next().unwrap_or_default()).collect();
        assert!(lines.len() == 2 && lines.iter().all(|line| line.chars().count() < 80), "{text:?}");
    }
    assert!(shown.iter().any(|text| text.contains(": read ") && text.contains("B/s")), "{shown:?}");
    let cleared = samples.iter().any(|text| text.starts_with("[1/3] "));
    assert!(cleared, "it is erased before the line of a sample: {said:?}");
}
