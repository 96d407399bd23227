//! A detector whose frames are recorded by a layout, what says values of its frames, and what h5py finds then.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Stdio},
    time::Duration,
};

use nilometer_recording::reader::{Recording, Trust};
use nilometer_tests::{Ended, Running, free_port, python, root, run, start};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const LIMIT: Duration = Duration::from_mins(2);
/// Frames of most recordings here.
pub(crate) const FRAMES: u64 = 20;

/// Where a recording goes.
const INTO: [&str; 8] = ["--to", "to", "--name", "scan", "--reserve", "0 B", "--buffer", "64 MiB"];

/// A directory with a detector in it, layouts, and what is recorded.
pub(crate) struct LayoutLab {
    pub(crate) home: TempDir,
}

impl LayoutLab {
    /// `more` are further lines of the detector's file.
    pub(crate) fn new(more: &str) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(home.path().join("to")).expect("space");
        let text = format!(
            "name = \"detector\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [64, 96]\npixel = \"uint16\"\n\
             frame_rate = \"400 Hz\"\ndata = \"diffraction\"\n{more}"
        );
        fs::write(home.path().join("detector.toml"), text).expect("space");
        LayoutLab { home }
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.home.path().join(name), text).expect("space");
    }

    /// Begins to record what the detector would deliver, into `to` under the name `scan`.
    pub(crate) fn simulate(&self, more: &[&str]) -> Running {
        let what = ["simulate", "detector.toml", "--seed", "7"];
        start(self.home.path(), &[&what, &INTO[..], more].concat())
    }

    /// The detector sends its frames over TCP, and they are recorded with these options.
    pub(crate) fn record(&self, frames: u64, more: &[&str]) -> Running {
        let at = free_address();
        // It ends with the recording of what it sends.
        let detector = self.send(&at, frames);
        let recorder = self.record_from(&at, more);
        std::thread::spawn(move || drop(detector.end(LIMIT)));
        recorder
    }

    /// The detector sends so many frames to whoever takes them there.
    pub(crate) fn send(&self, at: &str, frames: u64) -> Running {
        let frames = frames.to_string();
        let sent = ["simulate", "detector.toml", "--seed", "7", "--frames", &frames, "--wait", "--to", at];
        start(self.home.path(), &sent)
    }

    /// The same from whoever sends there.
    pub(crate) fn record_from(&self, at: &str, more: &[&str]) -> Running {
        start(self.home.path(), &[&["record", "--from", at], &INTO[..], more].concat())
    }

    pub(crate) fn recording(&self) -> PathBuf {
        self.home.path().join("to/scan")
    }

    /// The only file of the recording.
    pub(crate) fn file(&self) -> PathBuf {
        self.recording().join("scan.h5")
    }

    pub(crate) fn about(&self, command: &str) -> Ended {
        run(&[command.as_ref(), self.recording().as_os_str()])
    }

    /// Nothing was made of a recording.
    pub(crate) fn assert_nothing_made(&self, what: &str) {
        let made = fs::read_dir(self.home.path().join("to")).expect("it is there").count();
        assert_eq!(made, 0, "{what}");
    }

    /// A frame's flag is another: the file can be read, and does not agree with its journal.
    pub(crate) fn change_flag(&self) {
        let bytes = fs::read(self.file()).expect("it is there");
        let mut page = vec![0; FRAMES as usize];
        page.resize(512, 1);
        let at = bytes.windows(512).position(|window| window == page).expect("the flags");
        let file = fs::OpenOptions::new().write(true).open(self.file()).expect("it is there");
        file.write_all_at(&[1], at as u64).expect("space");
    }

    /// Frames that are acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        let recording = Recording::open(&[self.recording()], Trust::Acknowledged);
        recording.map_or(0, |recording| recording.index.frames.numbers(0..u64::MAX).count() as u64)
    }

    /// Every one of so many frames is there.
    pub(crate) fn assert_verified(&self, frames: u64) {
        let verified = self.about("verify");
        assert!(verified.code == Some(0), "{verified:?}");
        let scan = self.about("scan");
        assert!(
            scan.code == Some(0) && scan.stdout.contains(&format!("frames      {frames} of ")),
            "{scan:?}"
        );
    }
}

/// An address at which nobody listens.
pub(crate) fn free_address() -> String {
    format!("tcp://127.0.0.1:{}", free_port())
}

/// An example for users.
pub(crate) fn example(name: &str) -> PathBuf {
    root().join("contrib/hdf5-layout").join(name)
}

/// What h5py finds in a file.
#[derive(Debug)]
pub(crate) struct FoundTree(Value);

/// Nothing without h5py.
pub(crate) fn tree_of(file: &Path) -> Option<FoundTree> {
    let mut python = python(&["h5py", "hdf5plugin"])?;
    let script = root().join("tests/tests/recording/layout/tree.py");
    let output = python.arg(script).arg(file).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(FoundTree(serde_json::from_slice(&output.stdout).expect("JSON")))
}

impl FoundTree {
    /// The paths of all objects, in order.
    pub(crate) fn paths(&self) -> Vec<&str> {
        let objects = self.0["objects"].as_object().expect("objects");
        let mut paths: Vec<_> = objects.keys().map(String::as_str).collect();
        paths.sort_unstable();
        paths
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        !self.0["objects"][path].is_null()
    }

    fn object(&self, path: &str) -> &Value {
        let object = &self.0["objects"][path];
        assert!(!object.is_null(), "no {path} among {:?}", self.paths());
        object
    }

    /// A value, or all of a dataset.
    pub(crate) fn value(&self, path: &str) -> &Value {
        &self.object(path)["values"]
    }

    /// The numbers of a dataset; none for those that are none.
    pub(crate) fn numbers(&self, path: &str) -> Vec<Option<f64>> {
        let values = self.value(path).as_array().unwrap_or_else(|| panic!("{path} is no row"));
        values.iter().map(Value::as_f64).collect()
    }

    /// The texts of a dataset.
    pub(crate) fn texts(&self, path: &str) -> Vec<String> {
        let values = self.value(path).as_array().unwrap_or_else(|| panic!("{path} is no row"));
        values.iter().map(|text| text.as_str().expect("a text").to_owned()).collect()
    }

    /// How its texts are encoded, and in how many bytes.
    pub(crate) fn text_type(&self, path: &str) -> &str {
        self.object(path)["text"].as_str().unwrap_or_default()
    }

    pub(crate) fn attribute(&self, path: &str, name: &str) -> &Value {
        &self.object(path)["attributes"][name]
    }

    /// Shape and type of a dataset, as `NumPy` has them.
    pub(crate) fn kind(&self, path: &str) -> String {
        let object = self.object(path);
        format!("{} {}", object["shape"], object["type"].as_str().unwrap_or_default())
    }

    /// Two names are of one object.
    pub(crate) fn is_same(&self, one: &str, other: &str) -> bool {
        let same = self.0["same"].as_array().expect("a list");
        let has = |paths: &Value, path: &str| {
            paths.as_array().is_some_and(|paths| paths.iter().any(|at| at == path))
        };
        same.iter().any(|paths| has(paths, one) && has(paths, other))
    }
}

/// A program that says values of frames; it ends when this is dropped.
pub(crate) struct ValueSender {
    child: Child,
    _input: Option<ChildStdin>,
    /// Where it waits.
    pub(crate) at: String,
}

impl ValueSender {
    /// Nothing if Python is not here.
    pub(crate) fn start(kind: &str, frames: u64) -> Option<Self> {
        Self::started("send.py", kind, frames)
    }

    /// Values and images in one, by a version of the DECTRIS stream.
    pub(crate) fn start_images(version: &str, frames: u64) -> Option<Self> {
        Self::started("images.py", version, frames)
    }

    /// Images in one that say where they belong, in one of these ways.
    pub(crate) fn start_typed(kind: &str, frames: u64) -> Option<Self> {
        Self::started("typed.py", kind, frames)
    }

    fn started(script: &str, kind: &str, frames: u64) -> Option<Self> {
        let mut python = python(&["zmq", "cbor2", "numpy", "h5py", "hdf5plugin"])?;
        python
            .arg(root().join("tests/tests/recording/layout").join(script))
            .args([kind, &frames.to_string()]);
        let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it can be run");
        let mut said = String::new();
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut said).expect("it says where it is");
        let input = child.stdin.take();
        Some(ValueSender { child, _input: input, at: said.trim().to_owned() })
    }
}

impl Drop for ValueSender {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}
