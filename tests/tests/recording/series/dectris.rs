//! Recordings in the layout of DECTRIS' file writer: the master file is there from the start, its links lead to frames while they
//! come, and the files obey the rules of the plug-ins for XDS. Series, packets and the service make them alike.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use nilometer_tests::{await_some, free_port, python, root, run, start};

use crate::{
    hdf5::xds::header,
    series::lab::{LIMIT, SeriesLab},
};

const MODULES: [&str; 5] = ["zmq", "cbor2", "numpy", "h5py", "hdf5plugin"];
const PER_FILE: u64 = 10;

/// The other side, if Python is here.
pub(crate) fn script(command: &str) -> Option<Command> {
    let mut python = python(&MODULES)?;
    python.arg(root().join("tests/tests/recording/series/dectris.py")).arg(command);
    Some(python)
}

/// A detector that announces images, and sends as many as a test wants.
pub(crate) struct AnnouncingDetector {
    child: Child,
    pub(crate) at: String,
}

impl AnnouncingDetector {
    pub(crate) fn new(images: u64) -> Option<Self> {
        let mut command = script("send")?;
        command.arg(images.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it can be run");
        let mut at = String::new();
        BufReader::new(child.stdout.take().expect("it is piped"))
            .read_line(&mut at)
            .expect("it says its address");
        Some(AnnouncingDetector { child, at: at.trim().to_owned() })
    }

    /// Sends until it has sent so many in all.
    pub(crate) fn send(&mut self, images: u64) {
        writeln!(self.child.stdin.as_mut().expect("it is piped"), "{images}").expect("it listens");
    }

    /// Sends one image more twice a second while somebody looks at those before. A recorder that has all announced
    /// images takes a silence of seconds for the end. Returns the number of images sent in all.
    fn send_while(&mut self, first: u64, look: impl FnOnce() + Send) -> u64 {
        thread::scope(|scope| {
            let looking = scope.spawn(look);
            let mut sent = first;
            while !looking.is_finished() {
                thread::sleep(Duration::from_millis(500));
                sent += 1;
                self.send(sent);
            }
            looking.join().expect("it sees what came");
            sent
        })
    }

    pub(crate) fn end(&mut self) {
        drop(self.child.stdin.take());
    }
}

impl Drop for AnnouncingDetector {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}

/// Images that the links of a master file show now, and the number of links; nothing before there is a file.
fn shown(master: &Path, right: u64) -> Option<[u64; 2]> {
    if !master.exists() {
        return None;
    }
    let output = script("growing")?.arg(master).arg(right.to_string()).output().expect("it can be run");
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    // Readers that meet a file in its first moment try again.
    numbers.try_into().ok()
}

fn obeys_readers(master: &Path, images: u64) {
    let Some(mut command) = script("closed") else { return };
    command.arg(master).args([images, PER_FILE].map(|number| number.to_string()));
    let output = command.output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for plug_in in ["durin", "neggia"] {
        let header = header(plug_in, master).expect("Python is there");
        let found = header["sums"].as_array().map(Vec::len);
        assert_eq!(found, usize::try_from(images).ok(), "{plug_in}: {header}");
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Records a series that announces `announced` images and has `sent`. Looks at it after `first` of them.
fn recorded(announced: u64, first: u64, sent: u64, code: i32) {
    let lab = SeriesLab::new();
    let Some(mut detector) = AnnouncingDetector::new(announced) else { return };
    let layout = ["--layout", "dectris", "--frames-per-file", "10", "--buffer", "64 MiB"];
    let arguments = ["record", "--from", &detector.at, "--to", "to", "--name", "scan", "--silence", "60 s"];
    let recorder = start(lab.home.path(), &[&arguments[..], &layout].concat());
    let master = lab.recording().join("scan_master.h5");
    let links = announced.div_ceil(PER_FILE).max(1);
    let before = await_some("the master file", || shown(&master, 0));
    assert_eq!(before, [0, links], "before the first frame");
    detector.send(first);
    let links = links.max(first.div_ceil(PER_FILE));
    let look = |is_all: fn([u64; 2], [u64; 2]) -> bool| {
        let all = |found: &[u64; 2]| is_all(*found, [first, links]);
        await_some("frames in the files", || shown(&master, first).filter(all));
    };
    let mut sent = sent;
    if first > announced {
        let grows = |found: [u64; 2], least: [u64; 2]| found[0] >= least[0] && found[1] >= least[1];
        sent = sent.max(detector.send_while(first, || look(grows)));
    } else {
        look(|found, all| found == all);
    }
    detector.send(sent);
    detector.end();
    let ended = recorder.end(LIMIT);
    assert_eq!(ended.code, Some(code), "{ended:?}");
    obeys_readers(&master, sent);
    let mut expected: Vec<_> =
        (1..=sent.div_ceil(PER_FILE)).map(|file| format!("scan_data_{file:06}.h5")).collect();
    expected.insert(0, "scan.summary.json".into());
    expected.insert(0, "scan.0.journal".into());
    expected.push("scan_master.h5".into());
    assert_eq!(names(&lab.recording()), expected);
    let verified = run(&["verify".as_ref(), lab.recording().as_os_str()]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    // The journals suffice to make it again.
    fs::remove_file(&master).expect("it is there");
    let repaired = run(&["repair".as_ref(), lab.recording().as_os_str()]);
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    obeys_readers(&master, sent);
}

#[test]
fn the_master_file_links_all_announced_files_before_the_first_frame() {
    recorded(25, 15, 25, 0);
}

#[test]
fn a_series_that_ends_early_leaves_no_link_to_a_file_that_never_came() {
    recorded(45, 15, 25, 1);
}

#[test]
fn images_beyond_the_announced_ones_get_files_and_links_too() {
    recorded(15, 25, 33, 0);
}

#[test]
fn packets_go_into_the_same_files() {
    let lab = SeriesLab::new();
    let port = free_port();
    let instrument = format!(
        "name = \"pixels\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [512, 512]\npixel = \"uint32\"\n\
         frame_rate = \"50 Hz\"\ndata = \"diffraction\"\n[recording]\nformat = \"hdf5\"\nlayout = \"dectris\"\n\
         frames_per_file = 4\n[packets]\nport = {port}\n[packets.format.described]\nheader = \"16 B\"\n\
         frame = {{ offset = 0, bytes = 8 }}\npacket = {{ offset = 8, bytes = 4 }}\npackets = 128\npayload = \"8192 B\"\n"
    );
    fs::write(lab.home.path().join("pixels.toml"), instrument).expect("space");
    let arguments = ["record", "pixels.toml", "--to", "to", "--name", "scan", "--packets", "1280"];
    let recorder =
        start(lab.home.path(), &[&arguments[..], &["--silence", "60 s", "--buffer", "64 MiB"]].concat());
    let master = lab.recording().join("scan_master.h5");
    await_some("the master file", || master.exists().then_some(()));
    let to = format!("udp://127.0.0.1:{port}");
    let sent = start(lab.home.path(), &["simulate", "pixels.toml", "--to", &to, "--frames", "10"]).end(LIMIT);
    assert!(sent.has_sent_all(), "{sent:?}");
    let ended = recorder.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let files = names(&lab.recording());
    let data = files.iter().filter(|name| name.starts_with("scan_data_"));
    assert_eq!(
        data.collect::<Vec<_>>(),
        ["scan_data_000001.h5", "scan_data_000002.h5", "scan_data_000003.h5"]
    );
    let verified = run(&["verify".as_ref(), lab.recording().as_os_str()]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[test]
fn a_layout_of_dectris_that_can_not_be_is_refused() {
    let lab = SeriesLab::new();
    fs::create_dir(lab.home.path().join("other")).expect("space");
    for (options, said) in [
        (&["--to", "other"][..], "needs one writer"),
        (&["--keep", "1 GiB"], "leave --keep out"),
        (&["--scan", "2x5"], "leave --scan"),
        (&["--chunk", "50x60"], "leave --chunk"),
    ] {
        let arguments = ["record", "--from", "tcp://127.0.0.1:9", "--to", "to", "--layout", "dectris"];
        let ended = start(lab.home.path(), &[&arguments[..], options].concat()).end(LIMIT);
        assert!(ended.code == Some(2) && ended.stderr.contains(said), "{options:?}: {ended:?}");
        assert_eq!(names(&lab.home.path().join("to")), Vec::<String>::new());
    }
}
