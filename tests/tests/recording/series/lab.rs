//! Where frames over TCP are recorded, who sends them, and what h5py finds then.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::Duration,
};

use nilometer_model::{Instrument, Seed};
use nilometer_recording::instrument::Content;
use nilometer_recording::reader::{Recording, Trust};
use nilometer_tests::{python, root, tool};
use serde_json::Value;
use tempfile::TempDir;

/// Rows and columns of the simulated detector.
pub(crate) const SIDES: [u64; 2] = [128, 150];
pub(crate) const LIMIT: Duration = Duration::from_mins(2);
const MODULES: [&str; 5] = ["zmq", "cbor2", "numpy", "h5py", "hdf5plugin"];

/// A directory with what is sent, and one for what is recorded.
pub(crate) struct SeriesLab {
    pub(crate) home: TempDir,
}

impl SeriesLab {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(home.path().join("to")).expect("space");
        SeriesLab { home }
    }

    /// A detector that counts photons in `detector.toml`, and its first frames by the seed 4711.
    pub(crate) fn simulated_detector(&self, frames: u64) -> Vec<u8> {
        let [rows, columns] = SIDES;
        let text = format!(
            "name = \"detector\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [{rows}, {columns}]\npixel = \"uint16\"\n\
             frame_rate = \"200 Hz\"\ndata = \"diffraction\"\n[recording]\nformat = \"hdf5\"\n"
        );
        fs::write(self.home.path().join("detector.toml"), &text).expect("space");
        let Instrument { data, shape, pixel, .. } = Instrument::parse(&text, "detector.toml").expect("valid");
        let content =
            Content::prepare(&data, &shape, pixel, Seed(4711).named("content")).expect("it can be made");
        let mut frame = vec![0; content.frame_size()];
        content.prepare_slot(&mut frame);
        let mut all = Vec::new();
        for number in 0..frames {
            content.fill(number, &mut frame);
            all.extend_from_slice(&frame);
        }
        all
    }

    /// What is sent, as a file of NumPy.
    pub(crate) fn arrays(&self) -> PathBuf {
        self.home.path().join("arrays.npy")
    }

    /// The directory of the recording.
    pub(crate) fn recording(&self) -> PathBuf {
        self.home.path().join("to/scan")
    }

    /// Compares with these images, of 16 bit.
    pub(crate) fn found_beside(&self, images: &[u8], shape: [u64; 3]) -> Option<Found> {
        write_npy(&self.arrays(), shape, images);
        self.found()
    }

    /// The example in C, built without a warning. Nothing if this compiler is not here.
    pub(crate) fn compiled(&self, compiler: &str, options: &[&str]) -> Option<PathBuf> {
        let built = self.home.path().join("send_frames");
        let mut command = tool(compiler)?;
        command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&built);
        command.arg(root().join("contrib/send_frames.c")).args(options);
        let output = command.output().expect("it can be run");
        assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
        Some(built)
    }

    /// Numbers of the frames that are acknowledged.
    pub(crate) fn acknowledged(&self) -> Vec<u64> {
        let recording = Recording::open(&[self.recording()], Trust::Acknowledged);
        recording.map(|recording| recording.index.frames.numbers(0..u64::MAX).collect()).unwrap_or_default()
    }

    /// What h5py finds in the file over all of the recording, or in its only one. Nothing if it is not here.
    pub(crate) fn found(&self) -> Option<Found> {
        let files = ["scan_master.h5", "scan.h5"].map(|name| self.recording().join(name));
        self.found_in(files.iter().find(|file| file.exists()).expect("there is a file"))
    }

    /// What h5py finds in this file. Nothing if it is not here.
    pub(crate) fn found_in(&self, file: &Path) -> Option<Found> {
        let mut python = python(&["h5py", "hdf5plugin"])?;
        let script = root().join("tests/tests/recording/series/reader.py");
        let output = python.arg(script).arg(self.arrays()).arg(file).output().expect("it can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(Found(serde_json::from_slice(&output.stdout).expect("JSON")))
    }
}

/// See the reader.
#[derive(Debug)]
pub(crate) struct Found(Value);

impl Found {
    pub(crate) fn numbers(&self, what: &str) -> Vec<i64> {
        let numbers = self.0[what].as_array().expect("numbers");
        numbers.iter().map(|number| number.as_i64().expect("a number")).collect()
    }

    pub(crate) fn shape(&self) -> String {
        self.0["shape"].to_string()
    }

    pub(crate) fn definition(&self) -> String {
        self.0["definition"].to_string()
    }

    /// The distance from sample to detector, in metres.
    pub(crate) fn distance(&self) -> Option<f64> {
        self.0["distance"].as_f64()
    }

    /// The angle of omega in each image, in degrees.
    pub(crate) fn omega(&self) -> Vec<f64> {
        let angles = self.0["omega"].as_array().cloned().unwrap_or_default();
        angles.iter().filter_map(Value::as_f64).collect()
    }

    pub(crate) fn metadata(&self, name: &str) -> String {
        self.0["metadata"][name].to_string()
    }
}

/// The example for users, sending arrays.
pub(crate) struct Sender {
    child: Child,
    /// Where it waits, or connects to.
    pub(crate) at: String,
}

impl Sender {
    /// It waits for a receiver. Nothing if Python is not here.
    pub(crate) fn start(lab: &SeriesLab, kind: &str, shape: &str, compressed: bool) -> Option<Self> {
        Self::start_at(lab, "tcp://127.0.0.1:*", kind, shape, compressed)
    }

    /// It sends arrays of this shape, of a type as `NumPy` calls it.
    pub(crate) fn start_at(
        lab: &SeriesLab,
        endpoint: &str,
        kind: &str,
        shape: &str,
        compressed: bool,
    ) -> Option<Self> {
        let script = format!(
            "import numpy as np, sys\nr = np.random.default_rng(5)\n\
             np.save(sys.argv[1], r.poisson(3, {shape}).astype('<{kind}') + np.array(1).astype('<{kind}'))"
        );
        let made = python(&MODULES)?.args(["-c", &script]).arg(lab.arrays()).status().expect("it can be run");
        assert!(made.success(), "{shape} of {kind}");
        let mut python = python(&MODULES)?;
        python
            .arg(root().join("contrib/send_frames.py"))
            .arg(endpoint)
            .arg(lab.arrays())
            .arg("sample=lysozyme");
        if compressed {
            python.env("BSLZ4", "1");
        }
        let mut child = python.stdout(Stdio::piped()).spawn().expect("it can be run");
        let mut said = String::new();
        BufReader::new(child.stdout.take().expect("it is piped"))
            .read_line(&mut said)
            .expect("it says where it is");
        Some(Sender { child, at: said.trim().to_owned() })
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}

/// Images of 16 bit as a file of `NumPy`, format version 1.0.
pub(crate) fn write_npy(path: &Path, shape: [u64; 3], images: &[u8]) {
    let [count, rows, columns] = shape;
    let head = format!("{{'descr': '<u2', 'fortran_order': False, 'shape': ({count}, {rows}, {columns})}}");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((head.len() as u16 + 1).to_le_bytes());
    file.extend(head.bytes().chain([b'\n']));
    file.extend(images);
    fs::write(path, file).expect("space");
}
