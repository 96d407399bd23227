//! The tests' detector and its recordings in HDF5, and h5py to read them.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use nilometer_model::{Instrument, Seed};
use nilometer_recording::{
    instrument::Content,
    reader::{Index, Recording, Trust},
};
use nilometer_tests::{Ended, Running, await_some, python, root, run, start};
pub(crate) use nilometer_tests::{number, undamaged};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const LIMIT: Duration = Duration::from_mins(2);

/// What every recording here is simulated from.
const SEED: u64 = 4711;

/// Where a detector's recordings go, and what it is.
pub(crate) struct Lab {
    pub(crate) home: TempDir,
    pub(crate) to: Vec<PathBuf>,
    instrument: Instrument,
}

impl Lab {
    /// Frames of this shape and type, so many a second, into one directory; `more` are further lines of its file.
    pub(crate) fn new(shape: &str, pixel: &str, rate: &str, more: &str) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let to = home.path().join("to");
        fs::create_dir(&to).expect("space");
        let text = format!(
            "name = \"detector\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [{shape}]\npixel = \"{pixel}\"\n\
             frame_rate = \"{rate}\"\n{more}"
        );
        fs::write(home.path().join("detector.toml"), &text).expect("space");
        let instrument = Instrument::parse(&text, "detector.toml").expect("valid");
        Lab { home, to: vec![to], instrument }
    }

    /// The detector of most tests: 500 frames of 12 KiB a second.
    pub(crate) fn small(more: &str) -> Self {
        Self::new("64, 96", "uint16", "500 Hz", more)
    }

    /// The same detector, with other directories.
    pub(crate) fn into(self, to: &[&Path]) -> Self {
        Lab { to: to.iter().map(|path| path.to_path_buf()).collect(), ..self }
    }

    /// A directory of the lab's own.
    pub(crate) fn made(&self, name: &str) -> PathBuf {
        let path = self.home.path().join(name);
        fs::create_dir(&path).expect("space");
        path
    }

    /// Begins to record into HDF5, under the name `scan` unless another is given.
    pub(crate) fn start(&self, compression: &str, more: &[&str]) -> Running {
        self.simulate(&["--format", "hdf5", "--compression", compression], more)
    }

    /// Begins to record.
    pub(crate) fn simulate(&self, format: &[&str], more: &[&str]) -> Running {
        let seed = SEED.to_string();
        let mut arguments = vec!["simulate", "detector.toml", "--seed", &seed];
        for (option, value) in [("--name", "scan"), ("--reserve", "0 B"), ("--buffer", "64 MiB")] {
            if !more.contains(&option) {
                arguments.extend([option, value]);
            }
        }
        arguments.extend(format);
        arguments.extend(more);
        for to in &self.to {
            arguments.extend(["--to", to.to_str().expect("plain names")]);
        }
        start(self.home.path(), &arguments)
    }

    /// Records into HDF5 to the end, which must be in order.
    pub(crate) fn record(&self, compression: &str, more: &[&str]) -> Ended {
        let ended = self.start(compression, more).end(LIMIT);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended
    }

    /// The directories of its lanes.
    pub(crate) fn lanes(&self) -> Vec<PathBuf> {
        self.to.iter().map(|path| path.join("scan")).collect()
    }

    /// The only file of the recording, where there is one.
    pub(crate) fn file(&self) -> PathBuf {
        self.lanes()[0].join("scan.h5")
    }

    /// Waits until there is a file of the recording that something was written into.
    pub(crate) fn await_file(&self, name: &str) {
        let path = self.lanes()[0].join(name);
        let begun = || fs::metadata(&path).is_ok_and(|file| file.len() > 0).then_some(());
        await_some("the file", begun);
    }

    pub(crate) fn about(&self, command: &str) -> Ended {
        let mut arguments = vec![PathBuf::from(command)];
        arguments.extend(self.lanes());
        run(&arguments)
    }

    /// What the journals say.
    pub(crate) fn index(&self, trust: Trust) -> Option<Index> {
        Some(Recording::open(&self.lanes(), trust).ok()?.index)
    }

    /// Numbers of the frames that are acknowledged.
    pub(crate) fn acknowledged(&self) -> Vec<u64> {
        let index = self.index(Trust::Acknowledged);
        index.map(|index| index.frames.numbers(0..u64::MAX).collect()).unwrap_or_default()
    }

    /// The first frames of the detector in a file, as they are delivered.
    pub(crate) fn truth(&self, frames: u64) -> PathBuf {
        let Instrument { data, shape, pixel, .. } = &self.instrument;
        let content =
            Content::prepare(data, shape, *pixel, Seed(SEED).named("content")).expect("it can be made");
        let path = self.home.path().join("truth.raw");
        let mut file = File::create(&path).expect("space");
        let mut frame = vec![0; content.frame_size()];
        content.prepare_slot(&mut frame);
        for number in 0..frames {
            content.fill(number, &mut frame);
            file.write_all(&frame).expect("space");
        }
        path
    }
}

/// h5py with the filters of hdf5plugin, which is to do this with these arguments.
pub(crate) fn h5py(part: &str) -> Option<Command> {
    let mut python = python(&["h5py", "hdf5plugin"])?;
    python.arg(root().join("tests/tests/recording/hdf5/reader.py")).arg(part);
    Some(python)
}

/// What h5py finds in a file of a recording.
#[derive(Debug)]
pub(crate) struct Found(Value);

/// What h5py finds in files, each with the number of its first frame.
pub(crate) fn found(truth: &Path, files: &[(PathBuf, u64)]) -> Option<Vec<Found>> {
    let mut python = h5py("read")?;
    python.arg(truth).args(files.iter().map(|(path, first)| format!("{}:{first}", path.display())));
    let output = python.output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("JSON");
    let found = lines.lines().map(|line| Found(serde_json::from_str(line).expect("JSON")));
    Some(found.collect())
}

/// What h5py finds in a file whose frames stand in a scan of so many dimensions.
pub(crate) fn found_in_scan(truth: &Path, dimensions: usize, file: &Path) -> Option<Found> {
    let mut python = h5py("scan")?;
    let output = python.arg(truth).arg(dimensions.to_string()).arg(file).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(Found(serde_json::from_slice(&output.stdout).expect("JSON")))
}

/// What h5py finds in the only file.
pub(crate) fn found_in(truth: &Path, file: &Path) -> Option<Found> {
    found(truth, &[(file.to_owned(), 0)])?.pop()
}

impl Found {
    /// Numbers of frames that are `right`, `blank` or `wrong`.
    pub(crate) fn frames(&self, kind: &str) -> Vec<u64> {
        numbers(&self.0[kind]).into_iter().map(i64::cast_unsigned).collect()
    }

    /// What the recorder says of each frame.
    pub(crate) fn column(&self, name: &str) -> Vec<i64> {
        numbers(&self.0["columns"][name])
    }

    /// A total; none while the file is not closed.
    pub(crate) fn total(&self, name: &str) -> Option<u64> {
        self.0["totals"][name].as_u64()
    }

    /// Where the bytes of a frame begin, and how many they are.
    pub(crate) fn chunk(&self, frame: u64) -> (u64, u64) {
        let chunk = numbers(&self.0["chunks"][frame.to_string()]);
        (chunk[0].cast_unsigned(), chunk[1].cast_unsigned())
    }

    /// Shape, type or filters, as Python has them.
    pub(crate) fn said(&self, what: &str) -> String {
        self.0[what].to_string()
    }

    /// Every one of so many frames is there and right, and the recorder says so.
    pub(crate) fn assert_whole(&self, frames: u64) {
        assert_eq!(self.frames("right"), (0..frames).collect::<Vec<_>>(), "{:?}", self.0["wrong"]);
        assert!(self.column("flag").iter().all(|flag| *flag == 0), "{:?}", self.0["columns"]["flag"]);
        let totals = ["frames_whole", "frames_incomplete", "frames_blank", "missing_total"]
            .map(|name| self.total(name));
        assert_eq!(totals, [Some(frames), Some(0), Some(0), Some(0)]);
    }
}

fn numbers(array: &Value) -> Vec<i64> {
    let array = array.as_array().expect("numbers");
    array.iter().map(|number| number.as_i64().expect("a number")).collect()
}

/// Verify finds all of so many frames.
pub(crate) fn assert_verified(lab: &Lab, frames: u64) {
    let verified = lab.about("verify");
    let whole = verified.stdout.contains("missing     none");
    assert!(verified.code == Some(0) && whole && undamaged(&verified) == frames, "{verified:?}");
}
