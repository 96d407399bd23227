//! The program on real storage systems, of which servers and mounts are lost while it works: what is one campaign over all of
//! them, and what becomes of recordings. `testbed/` starts them on this machine.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use nilometer_model::{FileSystemKind, Goal, Invalid, Sample};
use nilometer_plan::{Measured, Results};
use nilometer_recording::reader::{Recording, Trust};
use nilometer_tests::{Ended, Running, Testbed, await_some, nilometer, run, start};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_mins(5);

/// Of what is written only so much that each system is looked at.
const PLAN: &str = "title = \"a look at each\"\nrepeats = 1\n[[stage]]\nname = \"files\"\nworkers = 2\n\
                    time_limit = \"1 s\"\n[stage.workload.stream]\nfile_size = \"4 MiB\"\nblock_size = \"1 MiB\"\n\
                    access = \"buffered\"\n";

/// Frames of 1 MiB that are always the same for a seed.
const DETECTOR: &str = "name = \"detector\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [512, 1024]\n\
                        pixel = \"uint16\"\nframe_rate = \"20 Hz\"\ndata = \"diffraction\"\n\
                        [recording]\nformat = \"hdf5\"\ncompression = \"bslz4\"\n";

/// The same in plain files: `XRootD`'s FUSE client lets nobody open a file a second time that is written, as HDF5 needs it.
fn plain_detector() -> String {
    DETECTOR.replace("format = \"hdf5\"\ncompression = \"bslz4\"\n", "storing = \"files\"\n")
}

/// An instrument is recorded on each of them, and each answer fits what was recorded.
fn each_ends_in_a_verdict(testbed: &Testbed, mounts: &[PathBuf]) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let [instrument, record] = ["detector.toml", "record.sqlite"].map(|name| place.path().join(name));
    fs::write(&instrument, plain_detector()).expect("room");
    let mut arguments = vec![nilometer().to_str().expect("plain letters"), "evaluate", "--plan", "none"];
    arguments.extend(["--for", instrument.to_str().expect("plain letters")]);
    arguments.extend(["--record", record.to_str().expect("plain letters")]);
    arguments.extend(["--duration", "1 s", "--buffer", "64 MiB", "--keep", "32 MiB", "--readers", "0"]);
    arguments.extend(mounts.iter().map(|mount| mount.to_str().expect("plain letters")));
    let ended = testbed.verb("enter", &arguments);
    assert!(ended.has_answered(), "{ended:?}");
    let results = nilometer_record::read(&record).expect("a record");
    let report = run(&["report".as_ref(), record.as_os_str(), "--format".as_ref(), "json".as_ref()]);
    let report: Value =
        serde_json::from_str(&report.stdout).unwrap_or_else(|error| panic!("{error}: {report:?}"));
    let verdicts = report["verdicts"].as_array().expect("verdicts");
    assert_eq!(verdicts.len(), mounts.len(), "{ended:?}");
    for (target, verdict) in verdicts.iter().enumerate() {
        assert!(fits(&results, target, verdict), "{}: {verdict}: {ended:?}", mounts[target].display());
    }
}

fn has_failed(sample: &Sample) -> bool {
    matches!(sample.invalid, Some(Invalid::Errors | Invalid::Hung | Invalid::Refused(_)))
}

/// Whether a verdict fits what was recorded at the instrument's own pace. What was kept is what was delivered in any case.
fn fits(results: &Results, target: usize, verdict: &Value) -> bool {
    let here = results.samples.iter().filter(|measured| measured.key.target == target);
    let ingests = here.filter_map(|measured| Some((&measured.sample, measured.sample.ingest.as_ref()?)));
    let paced: Vec<_> = ingests.filter(|(_, ingest)| ingest.goal == Goal::Pace).collect();
    let [(sample, ingest)] = paced[..] else { return false };
    let is_right = ingest.readers.iter().all(|reader| (reader.wrong, reader.failed) == (0, 0));
    let is_whole = (ingest.due, ingest.stored + ingest.lost) == (20, 20);
    match verdict["decision"].as_str() {
        Some("carries") => is_right && is_whole && ingest.lost == 0 && !has_failed(sample),
        Some("does not carry") => is_right && ingest.lost > 0,
        Some("not decided") => is_right && verdict["sentence"].is_string(),
        _ => false,
    }
}

#[test]
fn one_campaign_knows_each_of_the_systems_that_it_measures() {
    let systems = ["ext4", "xfs", "btrfs-raid0", "gluster", "moosefs", "xrootd"];
    let Some(testbed) = Testbed::of(&systems) else { return };
    let place = tempfile::tempdir().expect("a temporary directory");
    let [plan, record] = ["plan.toml", "record.sqlite"].map(|name| place.path().join(name));
    fs::write(&plan, PLAN).expect("room");
    let mounts: Vec<PathBuf> = systems.iter().flat_map(|system| testbed.mounts(system)).collect();
    assert_eq!(mounts.len(), 10);
    let mut arguments = vec![nilometer().to_owned(), "evaluate".into(), "--plan".into(), plan];
    arguments.extend(["--record".into(), record.clone()]);
    arguments.extend(mounts.iter().cloned());
    let texts: Vec<&str> = arguments.iter().map(|path| path.to_str().expect("plain letters")).collect();
    // The tools of some systems ask servers, which are in the namespace.
    let ended = testbed.verb("enter", &texts);
    assert!(ended.has_answered(), "{ended:?}");
    let results = nilometer_record::read(&record).expect("a record");
    let found: Vec<_> = results
        .targets
        .iter()
        .map(|target| {
            let profile = &target.description.as_ref().expect("it was described").profile;
            (profile.kind, profile.redundancy.as_deref().unwrap_or_default())
        })
        .collect();
    let expected = [
        (FileSystemKind::Ext4, "none known"),
        (FileSystemKind::Xfs, "none known"),
        (FileSystemKind::Btrfs, "none (raid0 over 4)"),
        (FileSystemKind::GlusterFs, "1 copy"),
        (FileSystemKind::GlusterFs, "1 copy"),
        (FileSystemKind::GlusterFs, "erasure code 2+1"),
        (FileSystemKind::GlusterFs, "2 copies"),
        (FileSystemKind::MooseFs, "1 copy"),
        (FileSystemKind::MooseFs, "2 copies"),
        (FileSystemKind::XRootD, ""),
    ];
    assert_eq!(found, expected);
    assert!(results.samples.iter().all(|measured| measured.sample.errors.is_empty()), "{ended:?}");
    let measured = |target: usize| results.samples.iter().any(|sample| sample.key.target == target);
    assert!((0..mounts.len()).all(measured), "{ended:?}");
    for part in ["erasure code 2+1", "not configured alike"] {
        let all = ["--format", "markdown", "--all"].map(AsRef::as_ref);
        let report = run(&[&["report".as_ref(), record.as_os_str()][..], &all].concat());
        assert!(report.stdout.contains(part), "{part}: {report:?}");
    }
    let other_volumes = ["distributed", "sharded", "replicated", "goal-1"];
    let is_of_these = |mount: &&PathBuf| other_volumes.iter().any(|name| mount.ends_with(name));
    let one_of_each: Vec<PathBuf> = mounts.iter().filter(|mount| !is_of_these(mount)).cloned().collect();
    assert_eq!(one_of_each.len(), systems.len());
    each_ends_in_a_verdict(&testbed, &one_of_each);
    // What is measured without its mount is the disk below.
    testbed.must("harm", &["moosefs", "unmount"]);
    let below = testbed.folder().join("moosefs/mount");
    let refused = run(&["describe".as_ref(), "--expect".as_ref(), "moosefs".as_ref(), below.as_os_str()]);
    assert!(refused.code == Some(2) && refused.stderr.contains("not on the expected moosefs"), "{refused:?}");
}

/// Records onto a mount until it is stopped.
fn recording(place: &TempDir, mount: &Path, format: &[&str]) -> Running {
    let instrument = place.path().join("detector.toml");
    fs::write(&instrument, DETECTOR).expect("room");
    let to = mount.to_str().expect("plain letters");
    let options = ["--name", "scan", "--duration", "10 min", "--reserve", "0 B", "--to", to];
    let mut running = start(place.path(), &[&["simulate", "detector.toml"][..], &options, format].concat());
    running.await_said("recording scan");
    running
}

/// Another client of the same system, at a place of its own.
struct SecondMount(TempDir);

impl SecondMount {
    fn of(testbed: &Testbed, command: &[&str]) -> Self {
        let place = SecondMount(tempfile::tempdir().expect("a temporary directory"));
        let at = place.0.path().to_str().expect("plain letters");
        let command: Vec<&str> = command.iter().map(|word| if *word == "AT" { at } else { word }).collect();
        testbed.must("enter", &command);
        place
    }
}

impl Drop for SecondMount {
    fn drop(&mut self) {
        // Its program ends with it. If it can't be unmounted its directory stays, and umount says why.
        drop(Command::new("umount").arg("--lazy").arg(self.0.path()).status());
    }
}

fn verified(recording: &Path) -> Ended {
    run(&["verify".as_ref(), recording.as_os_str()])
}

/// Frames of a recording that goes on.
fn acknowledged(mount: &Path) -> usize {
    let recording = Recording::open(&[mount.join("scan")], Trust::Acknowledged);
    recording.map_or(0, |recording| recording.index.frames.iter().count())
}

/// Of all files of a recording, without opening them.
fn bytes_below(recording: &Path) -> u64 {
    let entries = fs::read_dir(recording).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// A server is lost while frames are recorded. Another client finds all of them.
fn survives(testbed: &Testbed, server: [&str; 2], mount: &Path, second: (&[&str], &str)) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let running = recording(&place, mount, &[]);
    testbed.must("harm", &[server[0], "kill-server", server[1]]);
    // Some frames came without the server.
    let before = acknowledged(mount);
    await_some("more frames", || (acknowledged(mount) > before + 20).then_some(()));
    kill_process(running.worker(), Signal::TERM).expect("it runs");
    let ended = running.end(LIMIT);
    // It was interrupted; on a busy machine frames find no room, too: those that were stored are there.
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let lost = ended.stderr.contains("were not stored");
    assert!(!ended.stderr.contains("dropped out"), "{ended:?}");
    let (command, below) = second;
    let other = SecondMount::of(testbed, command);
    let verified = verified(&other.0.path().join(below).join("scan"));
    assert_eq!(verified.code, Some(i32::from(lost)), "{verified:?}");
    assert!(verified.stdout.contains("compared with the frames of the simulated instrument"), "{verified:?}");
    assert!(!verified.stdout.contains("damaged"), "{verified:?}");
}

#[test]
fn a_brick_that_is_lost_costs_a_recording_on_gluster_nothing() {
    let Some(testbed) = Testbed::of(&["gluster"]) else { return };
    let mounts = testbed.mounts("gluster");
    let mount = mounts.iter().find(|mount| mount.ends_with("dispersed")).expect("a volume");
    let status = testbed.status();
    let address = status["address"].as_str().expect("an address");
    let volume = format!("{address}:/dispersed");
    survives(&testbed, ["gluster", "dispersed-2"], mount, (&["mount", "-t", "glusterfs", &volume, "AT"], ""));
}

#[test]
fn a_chunk_server_that_is_lost_costs_a_recording_on_moosefs_nothing() {
    let Some(testbed) = Testbed::of(&["moosefs"]) else { return };
    let mounts = testbed.mounts("moosefs");
    let mount = mounts.iter().find(|mount| mount.ends_with("goal-2")).expect("a directory");
    let status = testbed.status();
    let address = status["address"].as_str().expect("an address");
    survives(&testbed, ["moosefs", "2"], mount, (&["mfsmount", "AT", "-H", address, "-S", "/"], "goal-2"));
}

#[test]
fn a_mount_that_is_gone_in_the_middle_ends_a_recording_in_order() {
    let Some(testbed) = Testbed::of(&["xrootd"]) else { return };
    let place = tempfile::tempdir().expect("a temporary directory");
    let mount = &testbed.mounts("xrootd")[0];
    // XRootD's FUSE client lets nobody open a file a second time that is written, as HDF5 needs it.
    let running = recording(&place, mount, &["--format", "raw", "--storing", "files"]);
    await_some("some frames", || (bytes_below(&mount.join("scan")) > 20 << 20).then_some(()));
    testbed.must("harm", &["xrootd", "kill-client"]);
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for part in ["dropped out", "no directory was left"] {
        assert!(ended.stderr.contains(part), "{part}: {ended:?}");
    }
    // What was under way when the client died is ended by another error than what comes after it.
    let said =
        ["Transport endpoint is not connected", "Software caused connection abort", "Input/output error"];
    assert!(said.iter().any(|said| ended.stdout.contains(said)), "{ended:?}");
}

/// Sixteen files a repeat, so that some are on each brick.
const MANY_FILES: &str = "title = \"many files\"\nrepeats = 4\nreserve = \"0 B\"\nhang_after = \"1 min\"\n[[stage]]\n\
                          name = \"files\"\nworkers = 4\n[stage.workload.stream]\nfiles = 4\nfile_size = \"1 MiB\"\n\
                          block_size = \"256 KiB\"\naccess = \"buffered\"\nread_back = false\n";

/// Repeats of a target that are good, but for a processor that was busy.
fn good(results: &Results, target: usize) -> usize {
    let of_target = results.samples.iter().filter(|measured| measured.key.target == target);
    of_target.filter(|measured| matches!(measured.sample.invalid, None | Some(Invalid::Starved(_)))).count()
}

#[test]
fn servers_that_are_lost_cost_a_campaign_what_is_on_them_and_nothing_else() {
    let Some(testbed) = Testbed::of(&["ext4", "gluster", "xrootd"]) else { return };
    let place = tempfile::tempdir().expect("a temporary directory");
    fs::write(place.path().join("plan.toml"), MANY_FILES).expect("room");
    let gluster = testbed.mounts("gluster");
    let volume = |name: &str| gluster.iter().find(|mount| mount.ends_with(name)).expect("a volume").clone();
    let [ext4, xrootd] = ["ext4", "xrootd"].map(|system| testbed.mounts(system).remove(0));
    let mounts = [ext4, volume("dispersed"), volume("distributed"), xrootd];
    let mut arguments: Vec<&str> = ["evaluate", "--plan", "./plan.toml", "--record", "r.sqlite"].to_vec();
    arguments.extend(mounts.iter().map(|mount| mount.to_str().expect("plain letters")));
    let mut running = start(place.path(), &arguments);
    // Each was measured once, and the tool by itself. It does not go on while servers are lost: it might be done by then.
    running.await_said("[6/");
    let worker = running.worker();
    kill_process(worker, Signal::STOP).expect("it runs");
    for server in ["dispersed-1", "distributed-1"] {
        testbed.must("harm", &["gluster", "kill-server", server]);
    }
    testbed.must("harm", &["xrootd", "kill-server", "1"]);
    kill_process(worker, Signal::CONT).expect("it is stopped");
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(1), "something failed: {ended:?}");
    let results =
        nilometer_record::read(&place.path().join("r.sqlite")).expect("a record is valid whatever happens");
    assert_eq!([good(&results, 0), good(&results, 1)], [4, 4], "they go on: {ended:?}");
    for (target, mount) in mounts.iter().enumerate().skip(2) {
        let here = |measured: &&Measured| measured.key.target == target;
        let failed = results.samples.iter().filter(here).any(|measured| has_failed(&measured.sample));
        let left_out = results.targets[target].left_out.is_some();
        assert!(failed || left_out, "{}: {ended:?}", mount.display());
        assert!((1..4).contains(&good(&results, target)), "{}: {ended:?}", mount.display());
    }
    assert!(results.targets[..2].iter().all(|target| target.left_out.is_none()), "{ended:?}");
    for text in [&ended.stdout, &run(&["report".as_ref(), place.path().join("r.sqlite").as_os_str()]).stdout]
    {
        assert!(text.contains("INVALID") || text.contains("left out"), "{text}");
    }
}

#[test]
fn a_volume_of_servers_that_fills_ends_a_recording_in_order() {
    let Some(testbed) = Testbed::with_room_of(2600, &["gluster"]) else { return };
    testbed.leave_room_of(400);
    let place = tempfile::tempdir().expect("a temporary directory");
    let mounts = testbed.mounts("gluster");
    let mount = mounts.iter().find(|mount| mount.ends_with("distributed")).expect("a volume");
    let fast = ["--format", "raw", "--storing", "files", "--rate", "200 Hz"];
    let ended = recording(&place, mount, &fast).end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for part in ["dropped out", "no directory was left"] {
        assert!(ended.stderr.contains(part), "{part}: {ended:?}");
    }
    assert!(
        ended.stdout.contains("No space left on device") || ended.stdout.contains("full up to"),
        "{ended:?}"
    );
    // What was acknowledged before is there, and is what the detector delivered.
    let verified = verified(&mount.join("scan"));
    assert!(verified.stdout.contains("compared with the frames of the simulated instrument"), "{verified:?}");
    assert!(!verified.stdout.contains("damaged"), "{verified:?}");
}
