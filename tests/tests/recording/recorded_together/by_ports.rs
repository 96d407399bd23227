//! Instruments whose packets come to the ports of several processes: each records its stream, or its modules of each frame.

use std::{
    fs,
    net::UdpSocket,
    path::{Path, PathBuf},
    time::Duration,
};

use nilometer_tests::{Ended, Mpi, MpiKind, Running, Testbed, free_ports, python, run};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_mins(2);

/// 4 MiB a frame from four modules, each with a port of its own and 128 packets.
fn detector(port: u16) -> String {
    format!(
        "name = \"detector\"\ntitle = \"t\"\nsource = \"none\"\nshape = [4, 512, 1024]\npixel = \"uint16\"\n\
         frame_rate = \"10 Hz\"\ndata = \"diffraction\"\n[packets]\nport = {port}\n[packets.format.described]\n\
         header = \"16 B\"\nframe = {{ offset = 0, bytes = 8 }}\npacket = {{ offset = 8, bytes = 4 }}\nmodules = 4\n\
         packets = 128\npayload = \"8192 B\"\n"
    )
}

/// A directory for recordings and their instrument.
pub(crate) struct Lab {
    home: TempDir,
    port: u16,
}

impl Lab {
    /// Of an instrument with packets to a port and those behind it.
    pub(crate) fn new(instrument: impl Fn(u16) -> String) -> Self {
        let home = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
        let port = free_ports(4);
        fs::write(home.path().join("it.toml"), instrument(port)).expect("space");
        Lab { home, port }
    }

    pub(crate) fn at(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn to(&self) -> String {
        format!("udp://127.0.0.1:{}", self.port)
    }

    /// Two processes record what is sent once all listen.
    fn recorded(&self, mpi: &Mpi, options: &[&str], sent: impl FnOnce(&Self)) -> Ended {
        let mut recording = mpi.start(2, self.at(), &[&RECORD[..], options].concat());
        recording.await_said("recording run by 2 processes: all of them listen");
        sent(self);
        recording.end(LIMIT)
    }

    /// The simulated instrument sends these frames of each stream.
    fn simulated(&self, frames: &str) {
        let instrument = self.at().join("it.toml");
        let instrument = instrument.to_str().expect("plain letters");
        let sent = run(&["simulate", instrument, "--to", &self.to(), "--frames", frames, "--seed", "5"]);
        assert!(sent.has_sent_all(), "{sent:?}");
    }

    /// A recording of this name is whole.
    pub(crate) fn assert_right(&self, name: &str, right: &str) {
        let path = self.at().join(name);
        let verified = run(&["verify", path.to_str().expect("plain letters")]);
        assert!(verified.code == Some(0) && verified.stdout.contains(right), "{name}: {verified:?}");
    }

    /// Both recordings are read by one command, and one of which a file is cut is named.
    fn assert_parts_are_verified_at_once(&self) {
        let verify = || {
            let parts = ["run_0", "run_1"].map(|name| self.at().join(name));
            run(&["verify".as_ref(), parts[0].as_os_str(), parts[1].as_os_str()])
        };
        let verified = verify();
        assert_eq!(verified.code, Some(0), "{verified:?}");
        let names: Vec<_> =
            verified.stdout.lines().filter_map(|line| line.strip_prefix("name        ")).collect();
        assert_eq!(names, ["run_0", "run_1"], "{verified:?}");
        let file = self.at().join("run_1/run_1.vdif");
        let bytes = fs::read(&file).expect("it is there");
        fs::write(&file, &bytes[..bytes.len() / 2]).expect("space");
        let verified = verify();
        assert_eq!(verified.code, Some(1), "{verified:?}");
        let said = verified.stderr.lines().last().unwrap_or_default();
        assert!(
            said.contains("run_1 is not whole: 2 blocks are damaged") && !said.contains("run_0"),
            "{verified:?}"
        );
    }

    fn names(&self) -> Vec<String> {
        super::names_in(self.at())
    }
}

pub(crate) const RECORD: [&str; 8] =
    ["record", "it.toml", "--to", ".", "--name", "run", "--buffer", "32 MiB"];

/// `super::TELESCOPE` at this port.
pub(crate) fn telescope(port: u16) -> String {
    super::TELESCOPE
        .replace("[packets.format.vdif]", &format!("[packets]\nport = {port}\n[packets.format.vdif]"))
}

#[test]
fn each_process_records_a_stream_of_packets() {
    for mpi in Mpi::all() {
        let lab = Lab::new(telescope);
        // A second of each stream.
        let ended = lab.recorded(&mpi, &["--packets", "512"], |lab| lab.simulated("1024"));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains("in stream   1024 packets of all parts"), "{ended:?}");
        for (number, name) in ["run_0", "run_1"].into_iter().enumerate() {
            assert!(ended.stdout.contains(&format!("stream {number} at udp://127.0.0.1:")), "{ended:?}");
            lab.assert_right(name, "headers     512 frames, none marked as invalid");
            let file = lab.at().join(name).join(format!("{name}.vdif"));
            assert_eq!(file.metadata().expect("it is there").len(), 512 * 8032, "{ended:?}");
        }
        lab.assert_parts_are_verified_at_once();
    }
}

/// What is the same in the first file and in the second; and of a file over modules the first pixel of each.
const COMPARED: &str = "import sys, h5py\n\
    with h5py.File(sys.argv[1]) as file, h5py.File(sys.argv[2]) as other:\n\
    \x20   one, two = file['/entry/data/data'], other['/entry/data/data']\n\
    \x20   print(one.shape, one.shape == two.shape and bool((one[:] == two[:]).all()))\n";

const FIRST_PIXELS: &str = "import sys, h5py\n\
    with h5py.File(sys.argv[1]) as file:\n\
    \x20   data = file['/entry/data/data']\n\
    \x20   print(data.shape, data[:, 0, 3, 5].tolist(), data[:, 3, 511, 1023].tolist())\n";

fn said_by_python(program: &str, files: &[PathBuf]) -> String {
    let mut python = python(&["h5py"]).expect("it was there before");
    let read = python.args(["-c", program]).args(files).output().expect("it starts");
    let said = String::from_utf8_lossy(&read.stdout).trim().to_owned();
    format!("{said}{}", String::from_utf8_lossy(&read.stderr))
}

#[test]
fn modules_of_a_detector_are_recorded_apart_and_are_whole_frames_in_the_file_over_them() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    if python(&["h5py"]).is_none() {
        return;
    }
    let lab = Lab::new(detector);
    let hdf5 = ["--format", "hdf5", "--packets", "5120"];
    let ended = lab.recorded(&mpi, &hdf5, |lab| lab.simulated("20"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("modules 0 to 1 at") && ended.stdout.contains("modules 2 to 3 at"));
    let master = lab.at().join("run_0/run_master.h5");
    assert!(ended.stdout.contains(&format!("all frames  {}", master.display())), "{ended:?}");
    for name in ["run_0", "run_1"] {
        lab.assert_right(name, "readable    20 ");
    }
    // One process records the same frames, all of which its buffer holds.
    let alone = ["record", "it.toml", "--to", ".", "--name", "alone", "--buffer", "64 MiB"];
    let alone = [&alone[..], &["--format", "hdf5", "--packets", "10240"]].concat();
    let mut recording = nilometer_tests::start(lab.at(), &alone);
    recording.await_said("recording alone");
    lab.simulated("20");
    let ended = recording.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let files = [master, lab.at().join("alone/alone.h5")];
    assert_eq!(said_by_python(COMPARED, &files), "(20, 4, 512, 1024) True");
}

/// Sends frames of two modules of [`detector`], each of a byte that tells frame and module.
fn send_frames(modules: [u16; 2], port: u16, frames: std::ops::Range<u64>) {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("a port");
    for frame in frames {
        for (module, packet) in
            modules.into_iter().flat_map(|module| (0..128_u32).map(move |packet| (module, packet)))
        {
            let header = [&frame.to_le_bytes()[..], &packet.to_le_bytes(), &[0; 4]].concat();
            let sent = [&header[..], &[byte_of(frame, module); 8192]].concat();
            socket.send_to(&sent, ("127.0.0.1", port + module)).expect("it is taken");
        }
        // A frame may wait in the room that every user has.
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn byte_of(frame: u64, module: u16) -> u8 {
    (frame * 4 + u64::from(module)) as u8
}

/// Frames are put together by their numbers, whenever a recorder began; and are not where nothing says which belong together.
#[test]
fn frames_of_modules_that_began_at_different_numbers_are_put_together_by_these() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    if python(&["h5py"]).is_none() {
        return;
    }
    let lab = Lab::new(detector);
    let hdf5 = ["--format", "hdf5", "--silence", "10 s"];
    let ended = lab.recorded(&mpi, &hdf5, |lab| {
        send_frames([0, 1], lab.port, 40..50);
        send_frames([2, 3], lab.port, 42..50);
    });
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let pixels = |first: u64, module: u16| -> Vec<u64> {
        let pixel = |frame| if frame < first { 0 } else { u64::from(byte_of(frame, module)) * 0x101 };
        (40..50).map(pixel).collect()
    };
    let expected = format!("(10, 4, 512, 1024) {:?} {:?}", pixels(40, 0), pixels(42, 3));
    assert_eq!(said_by_python(FIRST_PIXELS, &[lab.at().join("run_0/run_master.h5")]), expected);
    fs::remove_dir_all(lab.at().join("run_0")).expect("it is there");
    fs::remove_dir_all(lab.at().join("run_1")).expect("it is there");
    let ended = lab.recorded(&mpi, &hdf5, |lab| {
        send_frames([0, 1], lab.port, 40..50);
        send_frames([2, 3], lab.port, 40..50);
        // The detector was told to count anew, which one of the two recorders hears of.
        send_frames([2, 3], lab.port, 10..20);
    });
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stdout.contains("no file over all: frames of different modules can't be matched"),
        "{ended:?}"
    );
    assert!(!lab.at().join("run_0/run_master.h5").exists(), "{ended:?}");
}

#[test]
fn what_can_not_be_shared_out_or_can_not_be_made_is_told_once_and_nothing_is_made() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let lab = Lab::new(telescope);
    fs::write(lab.at().join("detector.toml"), detector(lab.port)).expect("space");
    fs::write(lab.at().join("camera.toml"), super::CAMERA).expect("space");
    fs::create_dir(lab.at().join("taken_1")).expect("space");
    let before = lab.names();
    let refused = |processes, options: &[&str], said: &str| {
        let ended =
            mpi.run(processes, lab.at(), &[&["record", "--to", ".", "--buffer", "32 MiB"], options].concat());
        assert!(ended.code == Some(2) && ended.stderr.contains(said), "{said}: {ended:?}");
        assert_eq!(ended.stderr.matches(said).count(), 1, "{said}: {ended:?}");
        assert_eq!(lab.names(), before, "{said}: nothing was made");
    };
    refused(
        3,
        &["it.toml"],
        "telescope can't be recorded by 3 processes: start 2, one for each of its streams",
    );
    refused(3, &["detector.toml"], "start as many as divide its 4 modules evenly");
    refused(2, &["camera.toml"], "it has no `packets`");
    refused(
        2,
        &["detector.toml", "--format", "hdf5", "--scan", "2x5"],
        "--scan: several processes record parts",
    );
    refused(2, &["it.toml", "--name", "taken"], "taken_1 exists: choose another --name");
    let _there = UdpSocket::bind(("127.0.0.1", lab.port + 1)).expect("it is free");
    refused(2, &["it.toml", "--name", "other"], "process 1 on ");
}

/// The sender is on the third node, and each of the others takes the stream that comes to it.
#[test]
fn two_nodes_record_the_streams_that_a_third_sends_to_them() {
    let Some(testbed) = Testbed::of(&["moosefs", "nodes"]) else { return };
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let lab = Lab::new(telescope);
    let mount = testbed.folder().join("nodes/mount/moosefs/goal-2");
    let to = mount.to_str().expect("plain letters");
    let listen = format!("udp://0.0.0.0:{}", lab.port);
    let record = ["record", "it.toml", "--to", to, "--name", "run", "--buffer", "32 MiB", "--packets", "512"];
    let record = [&record[..], &["--listen", &listen, "--allow", "any"]].concat();
    let mut recording = Running::of(mpi.command_on(&testbed, &[1, 2], lab.at(), &record));
    recording.await_said("recording run by 2 processes: all of them listen");
    let program = nilometer_tests::nilometer().to_str().expect("plain letters");
    for stream in 0..2_u16 {
        let to = format!("udp://node-{}:{}", stream + 1, lab.port + stream);
        let simulate =
            ["3", program, "simulate", "it.toml", "--streams", "1", "--to", &to, "--frames", "512"];
        let mut command = testbed.command("node", &simulate);
        command.current_dir(lab.at());
        let sent = Running::of(command).end(LIMIT);
        assert!(sent.has_sent_all(), "{sent:?}");
    }
    let ended = recording.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("by 2 processes on 2 machines"), "{ended:?}");
    let here = testbed.folder().join("moosefs/mount/goal-2");
    for name in ["run_0", "run_1"] {
        let path = here.join(name);
        let verified = run(&["verify", path.to_str().expect("plain letters")]);
        assert_eq!(verified.code, Some(0), "{verified:?}");
        fs::remove_dir_all(path).expect("it is the test's");
    }
}
