//! Recordings that stay, of which several processes make a part each: they are read as if one had made them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use nilometer_model::Seed;
use nilometer_tests::{
    Ended, Mounted, Mpi, MpiKind, Testbed, await_some, kills, may_show, python, run, undamaged,
};
use rustix::process::{Signal, kill_process};
use tempfile::TempDir;

use super::{CAMERA, Running, journals};

/// A directory for recordings, and an instrument.
struct Kept {
    home: TempDir,
}

impl Kept {
    fn new() -> Self {
        let home = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
        // Files of a position have ten frames; other ways of storing have their own.
        let camera = format!("{CAMERA}[recording]\nframes_per_file = 10\n");
        fs::write(home.path().join("camera.toml"), camera).expect("space");
        Kept { home }
    }

    fn at(&self) -> &Path {
        self.home.path()
    }

    /// The directories of a recording of so many processes.
    fn directories(&self, name: &str, processes: u32) -> Vec<String> {
        let path =
            |number| self.at().join(format!("{name}.{number}")).to_str().expect("plain letters").into();
        (0..processes).map(path).collect()
    }

    /// What `nilometer` says of a recording.
    fn asked(command: &str, directories: &[String], options: &[&str]) -> Ended {
        let directories: Vec<&str> = directories.iter().map(String::as_str).collect();
        run(&[&[command][..], &directories, options].concat())
    }

    /// All frames of a recording, as export writes them.
    fn exported(&self, directories: &[String]) -> Vec<u8> {
        let file = self.at().join("exported");
        let to = file.to_str().expect("plain letters");
        let ended = Kept::asked("export", directories, &["--to", to, "--verify"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let bytes = fs::read(&file).expect("it was written");
        fs::remove_file(file).expect("it is there");
        bytes
    }

    /// The same frames, recorded by one process.
    fn by_one(&self) -> Vec<u8> {
        let alone = ["simulate", "camera.toml", "--to", ".", "--name", "alone"];
        let mut command = std::process::Command::new(nilometer_tests::nilometer());
        command.current_dir(self.at()).args(alone).args(ONE_SECOND);
        let ended = Running::of(command).end(super::Duration::from_mins(2));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        self.exported(&[self.at().join("alone").to_str().expect("plain letters").into()])
    }

    fn names(&self) -> Vec<String> {
        super::names_in(self.at())
    }
}

/// 200 frames of the camera, the same ones each time.
const ONE_SECOND: [&str; 6] = ["--duration", "1 s", "--seed", "7", "--buffer", "32 MiB"];

/// So many processes record it, laid out as these options say.
fn recorded(mpi: &Mpi, processes: u32, kept: &Kept, name: &str, options: &[&str]) -> Ended {
    let asked = ["simulate", "camera.toml", "--to", ".", "--name", name];
    let ended = mpi.run(processes, kept.at(), &[&asked[..], &ONE_SECOND, options].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

#[test]
fn what_several_processes_record_in_turn_is_what_one_would_have_recorded() {
    let kept = Kept::new();
    let by_one = kept.by_one();
    assert_eq!(by_one.len(), 200 * 10_000);
    for mpi in Mpi::all() {
        for storing in ["files", "growing", "shared"] {
            let name = format!("{storing}-{:?}", mpi.kind());
            let ended = recorded(&mpi, 3, &kept, &name, &["--storing", storing]);
            assert!(
                ended.stdout.contains("3 processes on one machine, frames in turn")
                    && ended.stdout.contains("stored      200 frames"),
                "{ended:?}"
            );
            let directories = kept.directories(&name, 3);
            assert!(
                ended.stdout.contains(&format!("nilometer verify {}", directories.join(" "))),
                "{ended:?}"
            );
            let verified = Kept::asked("verify", &directories, &[]);
            assert!(verified.stdout.contains("right       200 frames"), "{storing}: {verified:?}");
            assert!(kept.exported(&directories) == by_one, "{storing}: other bytes than one process writes");
        }
    }
}

#[test]
fn a_part_that_is_lost_is_missing_and_the_rest_is_there() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let kept = Kept::new();
    recorded(&mpi, 3, &kept, "scan", &[]);
    let directories = kept.directories("scan", 3);
    let left = [directories[0].clone(), directories[2].clone()];
    let verified = Kept::asked("verify", &left, &[]);
    // Of 200 frames the second of three processes has 67.
    assert!(verified.code == Some(1) && verified.stdout.contains("right       133 frames"), "{verified:?}");
    if !may_show() {
        return;
    }
    let mounted = Mounted::of(&directories.iter().map(PathBuf::from).collect::<Vec<_>>());
    let file = mounted.file("scan.raw");
    assert!(fs::read(&file).expect("it is shown") == kept.exported(&directories), "other bytes are shown");
}

const READ_ALL: &str = "import sys, h5py, numpy\n\
    with h5py.File(sys.argv[1]) as file:\n\
    \x20   data = file['/entry/data/data']\n\
    \x20   raw = numpy.fromfile(sys.argv[2], dtype='<u2').reshape(data.shape)\n\
    \x20   print(data.shape[0], len(data.virtual_sources()), bool((data[:] == raw).all()))\n";

/// How many frames a file has, in how many parts, and whether they are these.
fn read_whole(file: &Path, frames: &Path) -> String {
    let mut python = python(&["h5py", "numpy"]).expect("it was there before");
    let read = python.args(["-c", READ_ALL]).arg(file).arg(frames).output().expect("it starts");
    let said = String::from_utf8_lossy(&read.stdout).trim().to_owned();
    format!("{said}{}", String::from_utf8_lossy(&read.stderr))
}

#[test]
fn a_file_over_those_of_all_processes_has_every_frame_in_its_place() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    if python(&["h5py", "numpy"]).is_none() {
        return;
    }
    let kept = Kept::new();
    let by_one = kept.at().join("by-one");
    fs::write(&by_one, kept.by_one()).expect("space");
    let master = kept.at().join("scan.0/scan_master.h5");
    let ended = recorded(&mpi, 3, &kept, "scan", &["--format", "hdf5", "--compression", "none"]);
    assert!(ended.stdout.contains(&format!("all frames  {}", master.display())), "{ended:?}");
    // Every third frame of each file is one part, not one for each frame.
    assert_eq!(read_whole(&master, &by_one), "200 3 True");
    // It can be made again, and finds the others wherever all are moved to.
    fs::remove_file(&master).expect("it is there");
    let repaired = Kept::asked("repair", &kept.directories("scan", 3), &[]);
    assert!(repaired.code == Some(0) && master.exists(), "{repaired:?}");
    let moved = kept.at().join("moved");
    fs::create_dir(&moved).expect("space");
    for part in ["scan.0", "scan.1", "scan.2"] {
        fs::rename(kept.at().join(part), moved.join(part)).expect("it is there");
    }
    assert_eq!(read_whole(&moved.join("scan.0/scan_master.h5"), &by_one), "200 3 True");
}

/// Each of three processes has every third of 25 lines of 8 frames.
#[test]
fn whole_lines_of_a_scan_are_dealt_out_to_the_processes() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let kept = Kept::new();
    let by_one = kept.by_one();
    let by_one_file = kept.at().join("by-one");
    fs::write(&by_one_file, &by_one).expect("space");
    for (name, scan, shape) in [("fixed", "25x8", "(25, 8, 50, 100)"), ("open", "?x8", "(25, 8, 50, 100)")] {
        // A file has a line.
        let files = ["--format", "hdf5", "--compression", "bslz4", "--frames-per-file", "8"];
        let ended = recorded(&mpi, 3, &kept, name, &[&files[..], &["--scan", scan]].concat());
        assert!(ended.stdout.contains("3 processes on one machine, lines in turn"), "{ended:?}");
        assert!(ended.stdout.contains("process 0 on ") && ended.stdout.contains(": 72 frames"), "{ended:?}");
        assert!(ended.stdout.contains(": 64 frames"), "9, 8 and 8 lines: {ended:?}");
        let directories = kept.directories(name, 3);
        let verified = Kept::asked("verify", &directories, &[]);
        assert!(verified.stdout.contains("right       200 frames"), "{verified:?}");
        assert!(kept.exported(&directories) == by_one, "other bytes than one process writes");
        if python(&["h5py", "numpy", "hdf5plugin"]).is_none() {
            continue;
        }
        let master = kept.at().join(format!("{name}.0/{name}_master.h5"));
        let seen = format!("{shape} 25 True");
        assert_eq!(read_scan(&master, &by_one_file), seen);
        fs::remove_file(&master).expect("it is there");
        let repaired = Kept::asked("repair", &directories, &[]);
        assert!(repaired.code == Some(0) && master.exists(), "{repaired:?}");
        assert_eq!(read_scan(&master, &by_one_file), seen);
    }
}

const READ_SCAN: &str = "import sys, h5py, hdf5plugin, numpy\n\
    with h5py.File(sys.argv[1]) as file:\n\
    \x20   data = file['/entry/data/data']\n\
    \x20   raw = numpy.fromfile(sys.argv[2], dtype='<u2').reshape(data.shape)\n\
    \x20   print(data.shape, len(data.virtual_sources()), bool((data[:] == raw).all()))\n";

/// The dimensions of a scan, its number of parts, and whether its frames are these.
fn read_scan(file: &Path, frames: &Path) -> String {
    let mut python = python(&["h5py", "numpy", "hdf5plugin"]).expect("it was there before");
    let read = python.args(["-c", READ_SCAN]).arg(file).arg(frames).output().expect("it starts");
    let said = String::from_utf8_lossy(&read.stdout).trim().to_owned();
    format!("{said}{}", String::from_utf8_lossy(&read.stderr))
}

/// Starts three processes and kills one of them this long after all of them have recorded.
fn is_killed(mpi: &Mpi, victim: u32, after: super::Duration) {
    let kept = Kept::new();
    let asked = ["simulate", "camera.toml", "--to", ".", "--name", "scan", "--duration", "10 min"];
    let mut running = mpi.start(3, kept.at(), &[&asked[..], &["--buffer", "32 MiB"]].concat());
    let parts: Vec<PathBuf> = (0..3).map(|part| kept.at().join(format!("scan.{part}"))).collect();
    // Fifty records and more of each.
    await_some("frames of all", || parts.iter().all(|part| journals(part) > 3200).then_some(()));
    std::thread::sleep(after);
    let worker = await_some("the process", || mpi.worker_of(victim, kept.at()));
    kill_process(worker, Signal::KILL).expect("it runs");
    await_some("the end of all", || running.is_over().then_some(()));
    let verified = Kept::asked("verify", &kept.directories("scan", 3), &[]);
    assert!(undamaged(&verified) >= 100 && !verified.stdout.contains("wrong"), "{verified:?}");
}

/// What was acknowledged before one of the processes was killed, and with it all others, is there.
#[test]
fn a_killed_process_ends_the_recording_and_leaves_what_was_acknowledged() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let mut moments = Seed(u64::from(std::process::id())).named("processes").stream();
    for kill in 0..kills(1, 50) {
        is_killed(&mpi, (kill as u32 + 1) % 3, super::Duration::from_millis(moments.below(500)));
    }
}

#[test]
fn what_one_of_them_can_not_do_is_told_once_and_nothing_is_made() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let kept = Kept::new();
    fs::create_dir(kept.at().join("scan.1")).expect("space");
    let before = kept.names();
    let asked = ["simulate", "camera.toml", "--to", ".", "--duration", "1 s"];
    for (options, part) in [
        (&[][..], "process 1 on "),
        (&["--frames", "0"], "write at least 1"),
        (&["--storing", "scattered"], "--storing scattered: its files are numbered over all writers"),
        (&["--storing", "positions"], "--storing positions: its files are numbered over all writers"),
        (&["--format", "hdf5", "--writers", "2"], "one of --writers"),
    ] {
        let name = if part.starts_with("process") { "scan" } else { "other" };
        let ended = mpi.run(2, kept.at(), &[&asked[..], &["--name", name], options].concat());
        assert!(ended.code == Some(2) && ended.stderr.contains(part), "{part}: {ended:?}");
        assert_eq!(kept.names(), before, "{part}: nothing was made");
    }
    // The second of two names is taken by the first: that is found when directories are made, behind what is checked.
    let at = kept.at().to_str().expect("plain letters");
    let twice = ["simulate", "camera.toml", "--to", ".", "--to", at, "--name", "twice"];
    let ended = mpi.run(2, kept.at(), &[&twice[..], &ONE_SECOND].concat());
    assert!(ended.code == Some(2) && ended.stderr.contains("exists"), "{ended:?}");
    assert_eq!(kept.names(), before, "what was made is removed");
    let program = nilometer_tests::nilometer();
    let program = program.to_str().expect("plain letters");
    let other = [program, "simulate", "camera.toml", "--to", ".", "--name", "more", "--duration", "2 s"];
    let first = [program, "simulate", "camera.toml", "--to", ".", "--name", "more", "--duration", "1 s"];
    let both = [&first[..], &[":", "-n", "1"], &other].concat();
    let ended = Running::of(mpi.command(1, kept.at(), &both)).end(super::Duration::from_mins(2));
    assert!(ended.code == Some(2) && ended.stderr.contains("write the same for all"), "{ended:?}");
    assert_eq!(kept.names(), before, "nothing was made");
}

/// What came to those that went on is there, and what the other did not record is missing and told.
#[test]
fn one_of_them_that_is_told_to_end_leaves_the_rest_to_go_on() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let kept = Kept::new();
    let asked = ["simulate", "camera.toml", "--to", ".", "--name", "scan", "--duration", "6 s"];
    let mut running = mpi.start(2, kept.at(), &[&asked[..], &["--buffer", "32 MiB"]].concat());
    running.await_said("recording scan");
    let worker = await_some("the process", || mpi.worker_of(1, kept.at()));
    kill_process(worker, Signal::INT).expect("it runs");
    let ended = running.end(super::Duration::from_mins(2));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    // The last of 1200 was the other's.
    assert!(
        ended.stdout.contains("due         1199 frames")
            && ended.stdout.contains("were due after it had ended"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("of 1199 frames were not stored; process 1 on "), "{ended:?}");
    let verified = Kept::asked("verify", &kept.directories("scan", 2), &[]);
    assert!(verified.stdout.contains("expected    1199 frames"), "{verified:?}");
    assert!(verified.code == Some(1) && !verified.stdout.contains("wrong"), "{verified:?}");
}

/// Each node has a client of its own of one file system; what they made is read by a fourth.
#[test]
fn three_nodes_make_one_recording_on_the_file_system_that_all_have() {
    let Some(testbed) = Testbed::of(&["moosefs", "nodes"]) else { return };
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let kept = Kept::new();
    let by_one = kept.by_one();
    let mount = testbed.folder().join("nodes/mount/moosefs/goal-2");
    let to = mount.to_str().expect("plain letters");
    let asked = ["simulate", "camera.toml", "--to", to, "--name", "scan", "--format", "hdf5"];
    let command = mpi.command_on(&testbed, &[1, 2, 3], kept.at(), &[&asked[..], &ONE_SECOND].concat());
    let ended = Running::of(command).end(super::Duration::from_mins(3));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("3 processes on 3 machines, frames in turn"), "{ended:?}");
    assert!(ended.stdout.contains("scan.0/scan_master.h5"), "all files are seen by the first: {ended:?}");
    let here = testbed.folder().join("moosefs/mount/goal-2");
    let directories: Vec<String> = (0..3)
        .map(|part| here.join(format!("scan.{part}")).to_str().expect("plain letters").into())
        .collect();
    let verified = Kept::asked("verify", &directories, &[]);
    assert!(verified.stdout.contains("right       200 frames"), "{verified:?}");
    assert!(kept.exported(&directories) == by_one, "other bytes than one process writes");
    let frames = kept.at().join("by-one");
    fs::write(&frames, &by_one).expect("space");
    if python(&["h5py", "numpy"]).is_some() {
        let master = here.join("scan.0/scan_master.h5");
        assert_eq!(read_whole(&master, &frames), "200 3 True", "through another mount");
    }
}
