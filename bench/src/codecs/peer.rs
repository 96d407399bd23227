//! A filter of hdf5plugin as a contestant: a process that stays, so that its start is not held against it.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdout, Stdio},
};

use anyhow::Context;
use nilometer_tests::{python, root};
use serde::Deserialize;

use crate::contest::Cost;

/// Which plug-in, and what a dataset's pipeline stores of it.
#[derive(Debug)]
pub(super) struct Plugin {
    pub(super) name: &'static str,
    pub(super) cd_values: Vec<u32>,
}

/// The process. It ends when its input does.
#[derive(Debug)]
pub(super) struct Peer {
    process: Child,
    answers: BufReader<ChildStdout>,
}

/// What it says of one turn.
#[derive(Debug, Deserialize)]
struct Answer {
    /// Processor and wall time in seconds, of encoding and of decoding.
    phases: [(f64, f64); 2],
    /// Of all chunks.
    bytes: usize,
}

impl Peer {
    /// For the frames in this file, of so many bytes each.
    pub(super) fn start(plugin: &Plugin, frames: &Path, frame_size: usize) -> anyhow::Result<Self> {
        let values: Vec<String> = plugin.cd_values.iter().map(ToString::to_string).collect();
        let mut command =
            python(&["hdf5plugin"]).context("no Python with hdf5plugin: scripts/bootstrap test")?;
        command.arg(root().join("bench/src/codecs/peer.py")).args([plugin.name, &values.join(",")]);
        command.arg(frame_size.to_string()).arg(frames);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let answers = BufReader::new(process.stdout.take().context("its output is a pipe")?);
        Ok(Peer { process, answers })
    }

    /// Encodes and decodes all frames once: what both cost for this amount, and the bytes of the chunks.
    pub(super) fn turn(&mut self, amount: f64) -> anyhow::Result<(Vec<Cost>, usize)> {
        self.process.stdin.as_mut().context("its input is a pipe")?.write_all(b"\n")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let answer: Answer = serde_json::from_str(&line).context("the filter's process ended early")?;
        Ok((answer.phases.map(|(cpu, wall)| Cost { amount, cpu, wall }).to_vec(), answer.bytes))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        if let Err(error) = self.process.wait() {
            eprintln!("nilometer-bench: the filter's process: {error}");
        }
    }
}
