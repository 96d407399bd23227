//! The program on real storage systems, of which servers and mounts are lost while it works: what is one campaign over all of
//! them, and what becomes of recordings. `testbed/` starts them on this machine.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use nilometer_model::FileSystemKind;
use nilometer_recording::reader::{Recording, Trust};
use nilometer_tests::{Ended, Running, Testbed, await_some, nilometer, run, start};
use rustix::process::{Signal, kill_process};
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
        let report = run(&["report".as_ref(), record.as_os_str(), "--format".as_ref(), "markdown".as_ref()]);
        assert!(report.stdout.contains(part), "{part}: {report:?}");
    }
    // What is measured without its mount is the disk below.
    testbed.must("harm", &["moosefs", "unmount"]);
    let below = testbed.folder().join("moosefs/mount");
    let refused = run(&["describe".as_ref(), "--expect".as_ref(), "moosefs".as_ref(), below.as_os_str()]);
    assert!(refused.code == Some(2) && refused.stderr.contains("not on moosefs"), "{refused:?}");
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
    assert!(
        verified.stdout.contains("compared with what the simulated instrument delivered"),
        "{verified:?}"
    );
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
    assert!(ended.stdout.contains("Transport endpoint is not connected"), "{ended:?}");
}
