//! h5py as a contestant: a process that stays, so that its start is not held against it.

use std::{
    cell::RefCell,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdout, Stdio},
};

use anyhow::Context;
use nilometer_tests::{python, root};
use serde::{Deserialize, Serialize};

use super::frames::{EigerFrames, SHAPE};

/// What it is to do: see `peer.py`.
#[derive(Debug, Serialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub(super) enum H5pyOrder<'a> {
    /// Write frames by assigning them.
    Frames { path: &'a Path, count: u64, filter: Option<&'static str> },
    /// Write frames by `H5Dwrite_chunk`.
    Chunks { path: &'a Path, count: u64 },
    /// Read all frames.
    Read { path: &'a Path, dataset: &'a str, cold: bool },
}

/// What that took, in seconds: until the file was synced, of the process, and by frame.
#[derive(Debug, Deserialize)]
pub(super) struct H5pyAnswer {
    pub(super) wall: f64,
    pub(super) cpu: f64,
    pub(super) median: f64,
    /// The 99th percentile.
    pub(super) high: f64,
}

/// The process. It ends when its input does.
#[derive(Debug)]
pub(super) struct H5py {
    process: RefCell<Child>,
    answers: RefCell<BufReader<ChildStdout>>,
}

impl H5py {
    /// With these frames in memory.
    pub(super) fn start(frames: &EigerFrames) -> anyhow::Result<Self> {
        let mut command =
            python(&["h5py", "hdf5plugin"]).context("no Python with hdf5plugin: scripts/bootstrap test")?;
        command.arg(root().join("bench/src/hdf5/peer.py")).arg(frames.numpy_type());
        command.args(SHAPE.map(|pixels| pixels.to_string())).arg(frames.file());
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let answers = BufReader::new(process.stdout.take().context("its output is a pipe")?);
        Ok(H5py { process: process.into(), answers: answers.into() })
    }

    /// Does this.
    pub(super) fn ask(&self, order: &H5pyOrder) -> anyhow::Result<H5pyAnswer> {
        let asked = serde_json::to_string(order)? + "\n";
        let mut process = self.process.borrow_mut();
        process.stdin.as_mut().context("its input is a pipe")?.write_all(asked.as_bytes())?;
        let mut line = String::new();
        self.answers.borrow_mut().read_line(&mut line)?;
        serde_json::from_str(&line).context("the process with h5py ended early")
    }
}

impl Drop for H5py {
    fn drop(&mut self) {
        let process = self.process.get_mut();
        drop(process.stdin.take());
        if let Err(error) = process.wait() {
            eprintln!("nilometer-bench: the process with h5py: {error}");
        }
    }
}
