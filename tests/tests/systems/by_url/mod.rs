//! Storage that no kernel mounts, reached by URL: real servers of `testbed/`, through the clients' own libraries. Servers are in a
//! network namespace, so what asks them runs there: the program, and this test itself for what needs an engine.

mod broken;
mod copies;
mod endless;
mod hadoop;
mod interrupted;
mod objects;
mod recorded;

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use nilometer_model::{EngineKind, FileSystemKind, TargetAddress, TargetUrl};
use nilometer_storage::{Clock, Target, engine::Options, testing::conformance};
use nilometer_tests::{Ended, MARKER, Testbed, await_some, nilometer, run_directories};
use rustix::process::{Pid, Signal, kill_process};

/// The URL of a server, in the environment of this test when it runs where the server is.
const URL: &str = "NILOMETER_TEST_URL";

/// A command where the servers are, with the keys of the S3 server where there is one.
fn inside(testbed: &Testbed, arguments: &[&str]) -> Command {
    let mut command = testbed.command("enter", arguments);
    let keys = fs::read_to_string(testbed.folder().join("s3/environment")).unwrap_or_default();
    command.envs(keys.lines().filter_map(|line| line.split_once('=')));
    command
}

/// Runs a test of this module again, where the servers are. `test` is its path below this module.
fn again_inside(testbed: &Testbed, test: &str, url: &str) {
    let program = std::env::current_exe().expect("this test");
    let program = program.to_str().expect("plain letters");
    let test = format!("by_url::{test}");
    let mut command = inside(testbed, &[program, "--exact", &test, "--nocapture"]);
    let output = command.env(URL, url).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Runs the program where the servers are.
fn program(testbed: &Testbed, arguments: &[&str]) -> Ended {
    let program = nilometer().to_str().expect("plain letters");
    ended(&mut inside(testbed, &[&[program][..], arguments].concat()))
}

fn ended(command: &mut Command) -> Ended {
    let output = command.output().expect("it starts");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Ended { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// A plan whose one file of small blocks takes half a minute.
const LASTING: &str = "title = \"lasting\"\nrepeats = 1\nreserve = \"0 B\"\n[[stage]]\nname = \"files\"\n\
                       [stage.workload.stream]\nfile_size = \"1 GiB\"\nblock_size = \"4 KiB\"\naccess = \"buffered\"\n";

/// A campaign that is started and goes on while the test does.
fn begun(testbed: &Testbed, url: &str, plan: &str, place: &Path) -> Child {
    let written = place.join("plan.toml");
    fs::write(&written, plan).expect("room");
    let record = place.join("record.sqlite");
    let [plan, record] = [&written, &record].map(|path| path.to_str().expect("plain letters"));
    let program = nilometer().to_str().expect("plain letters");
    let arguments = [program, "evaluate", url, "--plan", plan, "--record", record, "--time-limit", "20 min"];
    let mut command = inside(testbed, &arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

/// Targets on a server, a new one each time.
struct Server(TargetAddress);

impl Server {
    /// If this test runs where the server is.
    fn here() -> Option<Self> {
        let url = std::env::var(URL).ok()?;
        Some(Server(url.parse().expect("a URL")))
    }

    fn target(&self) -> std::sync::Arc<dyn Target> {
        let description = nilometer_remote::describe(&self.0).expect("the server runs");
        let id = nilometer_storage::target::run_id().0;
        nilometer_remote::open(&description, id, None).expect("a run directory")
    }
}

/// Runs the suites of targets and engines on a server, by the test of this name.
fn keeps_to_what_engines_and_targets_must_do(system: &str, test: &str) {
    if let Some(server) = Server::here() {
        return pass_the_suites(&server);
    }
    let Some(testbed) = Testbed::of_client(system, system) else { return };
    again_inside(&testbed, test, &testbed.url(system));
}

fn pass_the_suites(server: &Server) {
    conformance::target_suite(server.target().as_ref());
    let capabilities = server.target().description().capabilities.clone();
    let mut targets = Vec::new();
    conformance::engine_suite(&capabilities, &mut |depth, slots| {
        // In a run's own a marker is listed.
        let description = nilometer_remote::describe(&server.0).expect("the server runs");
        let name = nilometer_storage::target::run_id().0.to_string();
        let target = nilometer_remote::create_directory(description, &name).expect("a directory");
        let options = Options { kind: EngineKind::Sync, depth, slots, clock: Clock::start() };
        let engine = target.engine(&options).expect("the server runs");
        targets.push(target);
        engine
    });
}

#[test]
fn xrootd_does_what_engines_and_targets_must_do() {
    keeps_to_what_engines_and_targets_must_do("xrootd", "xrootd_does_what_engines_and_targets_must_do");
}

#[test]
fn nfs_does_what_engines_and_targets_must_do() {
    keeps_to_what_engines_and_targets_must_do("nfs", "nfs_does_what_engines_and_targets_must_do");
}

/// A detector with frames of 1 MiB that can be made again, and a plan that looks at all kinds of operations.
const DETECTOR: &str = "name = \"detector\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [512, 1024]\n\
                        pixel = \"uint16\"\nframe_rate = \"20 Hz\"\ndata = \"diffraction\"\n";
const PLAN: &str = "title = \"a look\"\nrepeats = 1\nreserve = \"0 B\"\n\
                    [[stage]]\nname = \"files\"\nworkers = 2\ntime_limit = \"1 s\"\n[stage.workload.stream]\n\
                    file_size = \"4 MiB\"\nblock_size = \"1 MiB\"\naccess = \"buffered\"\n\
                    [[stage]]\nname = \"names\"\n[stage.workload.tree]\nlevels = 1\nbranching = 2\n\
                    items = 10\n\
                    [[stage]]\nname = \"copies\"\n[stage.workload.stream]\nfile_size = \"1 MiB\"\nblock_size = \"1 MiB\"\n\
                    access = \"buffered\"\nsource = \"disk\"\n";

/// What is measured and recorded on a server is found there again, and what is left there removed.
fn is_measured_and_recorded(system: &str, client: &str, kind: FileSystemKind) {
    let Some(testbed) = Testbed::of_client(system, client) else { return };
    let url = testbed.url(system);
    let place = tempfile::tempdir().expect("a temporary directory");
    let [plan, record, detector, source] = ["plan.toml", "record.sqlite", "detector.toml", "source"]
        .map(|name| place.path().join(name).to_str().expect("plain letters").to_owned());
    fs::write(&plan, PLAN).expect("room");
    fs::write(&detector, DETECTOR).expect("room");
    fs::create_dir(&source).expect("a directory");
    let asked = [
        "evaluate",
        &url,
        "--plan",
        &plan,
        "--record",
        &record,
        "--source",
        &source,
        "--expect",
        kind.name(),
    ];
    let ended = program(&testbed, &asked);
    assert!(ended.has_answered(), "{ended:?}");
    let results = nilometer_record::read(Path::new(&record)).expect("a record");
    let stages = |key: &nilometer_plan::Key| results.cells[key.cell].stage.clone();
    let faults = results.samples.iter().filter(|measured| !measured.sample.errors.is_empty());
    assert_eq!(faults.map(|measured| stages(&measured.key)).collect::<Vec<_>>(), [""; 0], "{ended:?}");
    let measured = |stage: &str| results.samples.iter().any(|sample| stages(&sample.key) == stage);
    assert!(measured("files") && measured("names") && !measured("copies"), "{ended:?}");
    assert!(ended.stdout.contains("being mounted"), "what is not supported is said: {ended:?}");

    let to = ["simulate", &detector, "--to", &url, "--duration", "2 s", "--name", "scan", "--reserve", "0 B"];
    let ended = program(&testbed, &to);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(program(&testbed, &to).code, Some(2), "it is there");
    let scan = url.parse::<TargetUrl>().expect("a URL").join("scan").to_string();
    let verified = program(&testbed, &["verify", &scan]);
    assert!(verified.code == Some(0) && verified.stdout.contains("right       40 frames"), "{verified:?}");
    let file = place.path().join("exported");
    let file = file.to_str().expect("plain letters");
    let exported = program(&testbed, &["export", &scan, "--to", file, "--verify"]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    let scanned = program(&testbed, &["scan", &scan, "--json"]);
    assert!(scanned.code == Some(0) && scanned.stdout.contains("\"scan\""), "{scanned:?}");
    let nothing = program(&testbed, &["clean", &url]);
    assert!(nothing.code == Some(0) && nothing.stdout.contains("nothing to clean"), "{nothing:?}");
}

#[test]
fn xrootd_is_measured_and_recorded() {
    is_measured_and_recorded("xrootd", "xrootd", FileSystemKind::XRootD);
}

#[test]
fn nfs_is_measured_and_recorded() {
    is_measured_and_recorded("nfs", "nfs", FileSystemKind::Nfs);
}

/// One message, exit code 2, and nothing on the server.
#[test]
fn what_can_not_be_reached_is_refused() {
    let Some(testbed) = Testbed::of_client("xrootd", "xrootd") else { return };
    let url = testbed.url("xrootd");
    let refused_port = url.replace(":1094", ":1999");
    for (arguments, part) in [
        (&["evaluate", &refused_port][..], "does the server run"),
        (&["evaluate", &format!("{url}/none")], "there is no such directory"),
        (&["describe", "--expect", "nfs", &url], "not on the expected nfs"),
        (&["verify", &format!("{url}/none")], "no such directory"),
        (&["evaluate", "gsiftp://server/x"], "mount it, and name the directory"),
        (&["mount", &url, "--at", "/mnt"], "a directory that is mounted"),
        (
            &["simulate", "pco-edge", "--to", &url, "--format", "hdf5"],
            "HDF5 needs a directory that is mounted",
        ),
    ] {
        let ended = program(&testbed, arguments);
        assert!(ended.code == Some(2) && ended.stderr.contains(part), "{arguments:?}: {ended:?}");
    }
}

/// Once the file is there with bytes in it, the program is killed; then what it left is removed, and nothing else.
#[test]
fn what_a_killed_campaign_left_on_a_server_is_removed() {
    let Some(testbed) = Testbed::of_client("xrootd", "xrootd") else { return };
    let url = testbed.url("xrootd");
    let place = tempfile::tempdir().expect("a temporary directory");
    let running = begun(&testbed, &url, LASTING, place.path());
    let store = testbed.folder().join("xrootd/private/run/store");
    let run = await_some("files of a run", || {
        let run = run_directories(&store).pop()?;
        fs::read_dir(&run)
            .ok()?
            .any(|entry| entry.is_ok_and(|entry| entry.file_name() != MARKER))
            .then_some(run)
    });
    let marker = fs::read_to_string(run.join(MARKER)).expect("a marker");
    let held = program(&testbed, &["clean", &url]);
    assert!(held.code == Some(1) && held.stderr.contains("in use"), "{held:?}");
    assert!(run.exists());
    kill_maker(&marker);
    cleaned_behind(&testbed, &url, running);
    assert!(run_directories(&store).is_empty());
}

/// `clean` removes what a killed process left as soon as that is gone.
fn cleaned_behind(testbed: &Testbed, url: &str, running: Child) {
    running.wait_with_output().expect("it was killed");
    let cleaned = await_some("the end of the process", || {
        let cleaned = program(testbed, &["clean", url]);
        cleaned.stdout.contains("removed").then_some(cleaned)
    });
    assert_eq!(cleaned.code, Some(0), "{cleaned:?}");
}

/// A campaign by URL.
struct MeasuredByUrl {
    /// How the program ended.
    ended: Ended,
    /// The stages that were measured there.
    stages: Vec<String>,
    /// The bytes of its record.
    record: Vec<u8>,
}

/// Measures a plan by URL, without a fault and with nothing left.
fn measured(testbed: &Testbed, url: &str, plan: &str, kind: FileSystemKind) -> MeasuredByUrl {
    let place = tempfile::tempdir().expect("a temporary directory");
    let [file, record] = ["plan.toml", "record.sqlite"]
        .map(|name| place.path().join(name).to_str().expect("plain letters").to_owned());
    fs::write(&file, plan).expect("room");
    let asked = ["evaluate", url, "--plan", &file, "--record", &record, "--expect", kind.name()];
    let ended = program(testbed, &asked);
    assert!(ended.has_answered(), "{ended:?}");
    let results = nilometer_record::read(Path::new(&record)).expect("a record");
    let stage = |key: &nilometer_plan::Key| results.cells[key.cell].stage.clone();
    let faults = results.samples.iter().filter(|measured| !measured.sample.errors.is_empty());
    assert_eq!(faults.map(|measured| stage(&measured.key)).collect::<Vec<_>>(), [""; 0], "{ended:?}");
    // Onto `null:` all of them are.
    let there =
        results.samples.iter().filter(|sample| results.targets[sample.key.target].path.contains("://"));
    let stages: BTreeSet<String> = there.map(|sample| stage(&sample.key)).collect();
    let nothing = program(testbed, &["clean", url]);
    assert!(nothing.code == Some(0) && nothing.stdout.contains("nothing to clean"), "{nothing:?}");
    let record = fs::read(&record).expect("a record");
    MeasuredByUrl { ended, stages: stages.into_iter().collect(), record }
}

/// Kills the process that made a run's directory, by its marker.
fn kill_maker(marker: &str) {
    let process = marker.lines().find_map(|line| line.strip_prefix("process "));
    let process: i32 = process.and_then(|id| id.parse().ok()).expect("a process");
    let pid = Pid::from_raw(process).expect("a process");
    kill_process(pid, Signal::KILL).expect("it runs");
}
