//! Three storage systems that a demonstration judges, a verdict of each kind.

use nilometer_model::{Seed, TargetDescription};
use nilometer_plan::{Key, Measured, Results, TargetEntry};
use nilometer_storage::{
    Target,
    clock::VirtualClock,
    testing::{Device, Simulated},
};

use crate::{StorageCase, StorageKind, results};

/// A simulated storage system of the demonstration.
#[derive(Debug, Clone, Copy)]
pub struct DemoStorage {
    /// Its path in the report.
    pub path: &'static str,
    /// Its properties in a sentence.
    pub truth: &'static str,
    kind: StorageKind,
    /// The rate that it takes in the long run, as a multiple of the instrument's.
    margin: f64,
}

/// The storage systems of the demonstration.
pub const DEMO_STORAGE: [DemoStorage; 3] = [
    DemoStorage {
        path: "simulated:fast",
        truth: "sustains 1.8 times the camera's rate",
        kind: StorageKind::Noise,
        margin: 1.8,
    },
    DemoStorage {
        path: "simulated:slow",
        truth: "sustains 0.7 times the camera's rate",
        kind: StorageKind::Noise,
        margin: 0.7,
    },
    DemoStorage {
        path: "simulated:narrow",
        truth: "sustains 1.01 times the camera's rate, and drifts",
        kind: StorageKind::Drift,
        margin: 1.01,
    },
];

/// Frames a second of the demonstration's camera, with frames of 64 KiB.
const FRAME_RATE: f64 = 100.0;

impl DemoStorage {
    fn case(self) -> StorageCase {
        StorageCase::of(self.kind, Seed(1), FRAME_RATE, self.margin)
    }

    fn entry(self) -> TargetEntry {
        let simulated = Simulated::new(Device::default(), VirtualClock::default());
        let description = TargetDescription {
            address: std::path::Path::new(self.path).into(),
            ..simulated.description().clone()
        };
        TargetEntry {
            path: self.path.into(),
            file_system: description.file_system.clone(),
            description: Some(description),
            left_out: None,
        }
    }
}

/// The results of recording a camera on each storage system, in virtual time.
pub fn demo_results(version: &str) -> Results {
    let mut all = Results::default();
    for (target, storage) in DEMO_STORAGE.into_iter().enumerate() {
        let Results { samples, cells, .. } = results(&storage.case());
        let moved = |measured: Measured| Measured { key: Key { target, ..measured.key }, ..measured };
        all.samples.extend(samples.into_iter().map(moved));
        all.targets.push(storage.entry());
        all.cells = cells;
    }
    Results {
        title: "Demonstration: a camera on three simulated storage systems".into(),
        version: version.into(),
        repeats: 1,
        ..all
    }
}
