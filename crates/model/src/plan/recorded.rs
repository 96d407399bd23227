//! How a record keeps a cell: as one flat object, with its stage. A workload has a key `workload`, a recording an `instrument`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Cell, Measurement, RecordingRun, WorkloadRun};

#[derive(Serialize)]
struct Flat<'a, R> {
    stage: &'a str,
    #[serde(flatten)]
    run: &'a R,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Read {
    Workload {
        stage: String,
        #[serde(flatten)]
        run: WorkloadRun,
    },
    Recording {
        stage: String,
        #[serde(flatten)]
        run: Box<RecordingRun>,
    },
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stage = &self.stage;
        match &self.measurement {
            Measurement::Workload(run) => Flat { stage, run }.serialize(serializer),
            Measurement::Recording(run) => Flat { stage, run: run.as_ref() }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Read::deserialize(deserializer)? {
            Read::Workload { stage, run } => Cell::workload(stage, run),
            Read::Recording { stage, run } => Cell::recording(stage, *run),
        })
    }
}
