//! Evaluations of a real file system on a disk with a known rate and known stalls, and the true margins to
//! compare with.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use nilometer_model::Nanos;
use nilometer_storage::Clock;
use serde_json::Value;

use crate::{Ended, FaultyDisk, RECORDINGS_ONLY, camera, program::start};

/// A disk with a known rate and known stalls, and an instrument.
#[derive(Debug, Clone, Copy)]
pub struct KnownDevice {
    /// Name of the combination.
    pub name: &'static str,
    /// XFS; otherwise ext4.
    pub xfs: bool,
    /// Bytes a second that the disk moves. It catches up after standing still.
    pub rate: u64,
    /// Length and period of its stalls.
    pub stalls: Option<(Duration, Duration)>,
    /// Frames of 1 MB a second.
    pub frame_rate: u64,
    /// Memory of the recorder, in MiB.
    pub buffer: u64,
}

/// The devices with which tests compare verdicts.
pub const KNOWN_DEVICES: [KnownDevice; 4] = [
    KnownDevice {
        name: "XFS, 1.6 times the rate",
        xfs: true,
        rate: 40_000_000,
        stalls: None,
        frame_rate: 25,
        buffer: 64,
    },
    KnownDevice {
        name: "ext4, 1.6 times the rate",
        xfs: false,
        rate: 40_000_000,
        stalls: None,
        frame_rate: 25,
        buffer: 64,
    },
    KnownDevice {
        name: "ext4, 0.6 times the rate",
        xfs: false,
        rate: 36_000_000,
        stalls: None,
        frame_rate: 60,
        buffer: 64,
    },
    KnownDevice {
        name: "ext4, stalls of 1 s every 4 s",
        xfs: false,
        rate: 32_000_000,
        stalls: Some((Duration::from_secs(1), Duration::from_secs(4))),
        frame_rate: 20,
        buffer: 128,
    },
];

/// The verdict on such a device.
#[derive(Debug)]
pub struct Stated {
    /// End of the program.
    pub ended: Ended,
    /// The verdict in JSON.
    pub verdict: Value,
    /// The longest time that the disk stood still.
    pub longest_stall: Duration,
}

/// Files that are large enough for each to be synced.
const FILES: &str = "recording.frames_per_file = 68\n";

/// Length of each recording; the shortest pass at full speed.
const DURATION: &str = "20 s";

impl KnownDevice {
    /// The disk's rate in the long run, as a multiple of the instrument's. Stalls of less than two seconds
    /// don't count: the disk catches up.
    pub fn margin(&self) -> f64 {
        self.rate as f64 / (self.frame_rate as f64 * 1e6)
    }

    /// Evaluates it with the program.
    pub fn evaluate(&self) -> Stated {
        let make = if self.xfs { FaultyDisk::xfs_at_rate } else { FaultyDisk::ext4_at_rate };
        let disk = Arc::new(make(1500, self.rate));
        let home = tempfile::tempdir().expect("a temporary directory");
        fs::write(home.path().join("plan.toml"), RECORDINGS_ONLY).expect("space");
        fs::write(home.path().join("camera.toml"), camera(self.frame_rate) + FILES).expect("space");
        let stalling = self.stalls.map(|(stall, period)| Stalling::begin(disk.clone(), stall, period));
        let (path, buffer) = (disk.path(), format!("{} MiB", self.buffer));
        let path = path.to_str().expect("a plain name");
        let evaluate =
            ["evaluate", path, "--plan", "./plan.toml", "--for", "./camera.toml", "--keep", "256 MiB"];
        let options = ["--duration", DURATION, "--buffer", &buffer, "--record", "known.sqlite"];
        let ended = start(home.path(), &[&evaluate[..], &options].concat()).end(Duration::from_mins(15));
        let longest_stall = stalling.map_or(Duration::ZERO, Stalling::end);
        let verdict =
            verdict(home.path()).unwrap_or_else(|| panic!("no verdict: {}{}", ended.stdout, ended.stderr));
        Stated { ended, verdict, longest_stall }
    }
}

fn verdict(home: &Path) -> Option<Value> {
    let report = start(home, &["report", "known.sqlite", "--format", "json"]).end(Duration::from_mins(1));
    let report: Value = serde_json::from_str(&report.stdout).ok()?;
    report.get("verdicts")?.get(0).cloned()
}

impl Stated {
    /// `carries`, `does not carry` or `not decided`.
    pub fn decision(&self) -> &str {
        self.verdict["decision"].as_str().unwrap_or_default()
    }

    /// The stated margin with its interval. `None` if the verdict has none.
    pub fn margin(&self) -> Option<(f64, [f64; 2])> {
        let interval = &self.verdict["margin_interval"];
        Some((self.verdict["margin"].as_f64()?, [interval[0].as_f64()?, interval[1].as_f64()?]))
    }
}

/// Pauses a disk again and again until `end`.
struct Stalling {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Stalling {
    fn begin(disk: Arc<FaultyDisk>, stall: Duration, period: Duration) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let until = over.clone();
        let stand_still = move || {
            let clock = Clock::start();
            let mut longest = Nanos(0);
            for number in 1_u32.. {
                thread::sleep((number * period).saturating_sub(clock.now().duration()));
                if until.load(Ordering::Relaxed) {
                    break;
                }
                disk.pause();
                let paused = clock.now();
                thread::sleep(stall);
                disk.resume();
                longest = longest.max(clock.now().since(paused));
            }
            longest.duration()
        };
        Stalling { over, thread: thread::spawn(stand_still) }
    }

    /// Ends the stalls and returns the longest.
    fn end(self) -> Duration {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("the disk can be told to stand still")
    }
}
