//! The result of `verify` on one file. Frames count from 0.

use std::path::PathBuf;

use nilometer_hdf5_recording::lone_file::{BrokenObject, LoneDamage, LoneFile, LoneVerified};
use nilometer_model::Bytes;
use nilometer_recording::Ranges;
use nilometer_report::{NamedFact, RecordingFindings, Tone};
use serde_json::{Value, json};

use super::{journal_beside, some_of};
use crate::{recording_json::ranges_value, recording_listing::RecordingResult, recording_text::ranges};

/// The findings about a file, from all its chunks.
pub(super) struct LoneReading {
    path: PathBuf,
    dataset: String,
    /// The type of its elements.
    kind: String,
    dimensions: Vec<u64>,
    /// `None` if it is stored in one piece.
    chunk: Option<Vec<u64>>,
    /// Numbers of the filters.
    filters: Vec<u32>,
    chunks_due: u64,
    frames: u64,
    frame_size: u64,
    other_datasets: Vec<String>,
    /// The directory of the file, if a journal is in it.
    journal: Option<PathBuf>,
    verified: LoneVerified,
}

/// The most unreadable objects in the text.
pub(super) const BROKEN_SHOWN: usize = 20;

impl LoneReading {
    pub(super) fn of(file: &LoneFile, verified: LoneVerified) -> Self {
        let shape = file.shape();
        LoneReading {
            path: file.path().to_owned(),
            dataset: file.dataset().to_owned(),
            kind: shape.kind.clone(),
            dimensions: shape.dimensions.clone(),
            chunk: shape.chunk.clone(),
            filters: shape.filters.iter().map(|filter| filter.number).collect(),
            chunks_due: file.chunks_due(),
            frames: file.frames(),
            frame_size: file.frame_size(),
            other_datasets: file.others().to_vec(),
            journal: journal_beside(file.path()),
            verified,
        }
    }

    /// The reason why the file is not whole; `None` if it is.
    pub(super) fn complaint(&self) -> Option<String> {
        let LoneVerified { missing, damaged, broken, .. } = &self.verified;
        if self.verified.is_whole() {
            return None;
        }
        let counts = [(missing, "missing"), (damaged, "damaged")];
        let words = counts.into_iter().filter(|(frames, _)| !frames.is_empty());
        let words = words.map(|(frames, what)| format!("{} frames are {what}", frames.count()));
        let broken = match broken.len() {
            0 => None,
            1 => Some("1 object can't be read".into()),
            count => Some(format!("{count} objects can't be read")),
        };
        Some(words.chain(broken).collect::<Vec<_>>().join("; "))
    }

    /// Returns true if every frame of the dataset can be read.
    pub(super) fn has_all_frames(&self) -> bool {
        self.verified.missing.is_empty() && self.verified.damaged.is_empty()
    }

    /// The number of readable frames.
    pub(super) fn readable(&self) -> u64 {
        let mut lost = Ranges::default();
        for range in [&self.verified.missing, &self.verified.damaged].into_iter().flat_map(Ranges::iter) {
            lost.add_all(range);
        }
        self.frames - lost.count()
    }

    fn stored(&self) -> Vec<NamedFact> {
        let LoneReading { dataset, kind, chunks_due, verified, .. } = self;
        let filters: Vec<_> = self.filters.iter().map(u32::to_string).collect();
        let filters =
            if filters.is_empty() { "no filter".into() } else { format!("filter {}", filters.join(", ")) };
        let dimensions = by_times(&self.dimensions);
        let chunks = match &self.chunk {
            Some(chunk) => {
                let each = by_times(chunk);
                format!("{} of {chunks_due}, each {each}, {filters}", verified.chunks)
            }
            None => "none: it is stored in one piece".into(),
        };
        let frame_size = Bytes(self.frame_size);
        let readable = format!(
            "{} of {} frames of {frame_size}, unpacked; without a journal there are no checksums to compare them with",
            self.readable(),
            self.frames
        );
        vec![
            NamedFact::new("file", self.path.display()),
            NamedFact::new("dataset", format_args!("{dataset}: {dimensions} of {kind}")),
            NamedFact::new("chunks", chunks),
            NamedFact::new("readable", readable),
        ]
    }

    fn lost(&self) -> Vec<NamedFact> {
        let LoneVerified { missing, not_whole, damaged, damages, damaged_chunks, .. } = &self.verified;
        let tone = if missing.is_empty() { Tone::Plain } else { Tone::Bad };
        let mut facts = vec![NamedFact::toned(tone, "missing", counted(missing))];
        if !not_whole.is_empty() {
            let text = format!("{}, as the recorder noted", counted(not_whole));
            facts.push(NamedFact::toned(Tone::Doubtful, "not whole", text));
        }
        let bad = |text: String| NamedFact::toned(Tone::Bad, "damaged", text);
        facts.extend(damages.iter().map(|LoneDamage { begin, frame, why }| {
            let at = by_commas(begin);
            bad(format!("chunk at ({at}), frame {frame} on: {why}"))
        }));
        let unnamed = damaged_chunks - damages.len() as u64;
        facts.extend((unnamed > 0).then(|| bad(format!("{unnamed} chunks more"))));
        facts.extend((!damaged.is_empty()).then(|| bad(counted(damaged))));
        facts
    }

    fn broken(&self) -> Vec<NamedFact> {
        let broken = &self.verified.broken;
        let bad = |text: String| NamedFact::toned(Tone::Bad, "broken", text);
        let shown = broken.iter().take(BROKEN_SHOWN);
        let shown = shown.map(|BrokenObject { path, why }| bad(format!("{path}: {why}")));
        let unnamed = broken.len().saturating_sub(BROKEN_SHOWN);
        shown.chain((unnamed > 0).then(|| bad(format!("{unnamed} objects more")))).collect()
    }

    fn conclusion(&self) -> (Tone, String) {
        if let Some(faults) = self.complaint() {
            return (Tone::Bad, format!("Not whole: {faults}"));
        }
        let blind = "Without a journal, changed pixels may not show.";
        match self.verified.not_whole.count() {
            0 => (Tone::Doubtful, format!("No fault found. {blind}")),
            count => {
                let text = format!(
                    "{count} frames are not whole, as the recorder noted. No other fault found. {blind}"
                );
                (Tone::Bad, text)
            }
        }
    }
}

impl RecordingResult for LoneReading {
    fn findings(&self) -> RecordingFindings {
        let mut facts = self.stored();
        facts.extend(self.lost());
        facts.extend(self.broken());
        if !self.other_datasets.is_empty() {
            let others = some_of(&self.other_datasets);
            facts.push(NamedFact::new("not read", format_args!("{others}: --dataset names another")));
        }
        facts.extend(self.journal.as_ref().map(|directory| {
            let directory = directory.display();
            NamedFact::new("journal", format_args!("beside it is one: name {directory} to compare with it"))
        }));
        let name = self.path.display().to_string();
        RecordingFindings { name, conclusion: Some(self.conclusion()), facts }
    }

    fn value(&self) -> Value {
        let LoneVerified { missing, not_whole, damaged, damages, broken, .. } = &self.verified;
        let faults: Vec<String> = self.complaint().into_iter().collect();
        let damage = |of: &LoneDamage| json!({ "begin": of.begin, "frame": of.frame, "why": of.why });
        let object = |of: &BrokenObject| json!({ "path": of.path, "why": of.why });
        json!({
            "file": self.path.display().to_string(), "dataset": self.dataset, "element": self.kind,
            "whole": self.verified.is_whole(), "faults": faults, "dimensions": self.dimensions,
            "chunk": self.chunk, "filters": self.filters, "chunks": self.verified.chunks,
            "chunks_due": self.chunks_due, "frames": self.frames, "frame_bytes": self.frame_size,
            "readable": self.readable(), "missing": missing.count(), "missing_ranges": ranges_value(&named(missing)),
            "not_whole": not_whole.count(), "not_whole_ranges": ranges_value(&named(not_whole)),
            "damaged": damaged.count(), "damaged_ranges": ranges_value(&named(damaged)),
            "damaged_chunks": self.verified.damaged_chunks,
            "first_damaged_chunks": damages.iter().map(damage).collect::<Vec<_>>(),
            "broken": broken.iter().map(object).collect::<Vec<_>>(), "other_datasets": self.other_datasets,
            "journal_beside": self.journal.as_ref().map(|directory| directory.display().to_string()),
        })
    }
}

/// The ranges as first numbers and counts.
fn named(frames: &Ranges) -> Vec<(u64, u64)> {
    frames.iter().map(|range| (range.start, range.end - range.start)).collect()
}

fn counted(frames: &Ranges) -> String {
    if frames.is_empty() {
        return "none".into();
    }
    format!("{} frames: {}", frames.count(), ranges(&named(frames)))
}

pub(super) fn by_times(sides: &[u64]) -> String {
    sides.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ")
}

fn by_commas(place: &[u64]) -> String {
    place.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
