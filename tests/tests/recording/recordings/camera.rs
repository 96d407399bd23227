//! The test's camera and its recordings, and how what the program says of them is read.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use nilometer_recording::journal::{Entry, prefix};
pub(crate) use nilometer_tests::number;
use nilometer_tests::{Ended, Running, await_some, run, start};
use tempfile::TempDir;

/// 2 MiB every 20 ms in files of 64 MiB, which are synced one by one.
pub(crate) const CAMERA: &str = r#"
name = "camera"
title = "for tests"
source = "none"
shape = [1024, 1024]
pixel = "uint16"
frame_rate = "50 Hz"
recording.frames_per_file = 32
"#;

pub(crate) const LIMIT: Duration = Duration::from_mins(2);

/// A recording of the test's camera, named `scan`.
pub(crate) struct Recording {
    pub(crate) directory: TempDir,
    pub(crate) to: Vec<PathBuf>,
}

impl Recording {
    pub(crate) fn new(to: &[&Path]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("camera.toml"), CAMERA).expect("a file");
        Recording { directory, to: to.iter().map(|path| path.to_path_buf()).collect() }
    }

    /// The same, of a camera whose frames come twenty at once, fifty a second in the mean. One writer by itself keeps up with one
    /// frame every 20 ms, and the other may then have few: of twenty each has some.
    pub(crate) fn of_rows(to: &[&Path]) -> Self {
        let recording = Recording::new(to);
        let rows = "frame_rate = \"10 kHz\"\nburst = { frames = 20, pause = \"398 ms\" }";
        let camera = CAMERA.replace("frame_rate = \"50 Hz\"", rows);
        fs::write(recording.directory.path().join("camera.toml"), camera).expect("a file");
        recording
    }

    pub(crate) fn start(&self, more: &[&str]) -> Running {
        let mut arguments = vec!["simulate", "camera.toml", "--name", "scan"];
        if !more.contains(&"--reserve") {
            arguments.extend(["--reserve", "0 B"]);
        }
        let buffer = room_for(more);
        if !more.contains(&"--buffer") {
            arguments.extend(["--buffer", &buffer]);
        }
        arguments.extend(more);
        for to in &self.to {
            arguments.extend(["--to", to.to_str().expect("plain names")]);
        }
        start(self.directory.path(), &arguments)
    }

    /// The directories of its lanes.
    pub(crate) fn lanes(&self) -> Vec<PathBuf> {
        self.to.iter().map(|path| path.join("scan")).collect()
    }

    pub(crate) fn verify(&self, more: &[&str]) -> Ended {
        let mut arguments = vec![PathBuf::from("verify")];
        arguments.extend(more.iter().map(PathBuf::from));
        arguments.extend(self.lanes());
        run(&arguments)
    }

    /// Waits until a lane's journal has a frame in this file. The file itself is made before its frames come.
    pub(crate) fn await_file(&self, lane: usize, file: u64) {
        self.await_entry(lane, |entry| matches!(entry, Entry::Frame { extent, .. } if extent.file >= file));
    }

    /// Waits until a lane's journal says that this file survives the loss of power.
    pub(crate) fn await_durable(&self, lane: usize, file: u64) {
        self.await_entry(lane, |entry| matches!(entry, Entry::Durable { file: last } if *last >= file));
    }

    fn await_entry(&self, lane: usize, is_awaited: impl Fn(&Entry) -> bool) {
        let path = self.lanes()[lane].join(format!("scan.{lane}.journal"));
        await_some("an entry of the journal", || {
            let journal = fs::read(&path).ok()?;
            prefix(&journal).iter().any(&is_awaited).then_some(())
        });
    }
}

/// A buffer with room for all frames of the test's camera, if their number is given: however slow a disk is, none
/// is lost. A larger buffer would only take processor time.
fn room_for(options: &[&str]) -> String {
    let given = options.iter().position(|option| *option == "--frames");
    let frames = given.map_or(250, |at| options[at + 1].parse::<u64>().expect("a number"));
    format!("{} MiB", (2 * frames + 16).min(1024))
}

/// Frames that verify names as missing; none if it says so.
pub(crate) fn missing(ended: &Ended) -> u64 {
    if ended.stdout.contains("missing     none") { 0 } else { number(ended, "missing") }
}

pub(crate) fn assert_whole(ended: &Ended, frames: u64) {
    assert_eq!((ended.code, number(ended, "right"), missing(ended)), (Some(0), frames, 0), "{ended:?}");
}
