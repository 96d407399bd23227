//! Texts about recordings without a journal: the facts that their files show, and those that nobody knows.

use std::fmt::Display;

use nilometer_model::Bytes;
use nilometer_recording::{
    ForeignFacts,
    foreign::{FrameFindings, StrangeBytes},
    reader::Recording,
    view::Jump,
};
use nilometer_report::{NamedFact, Tone};
use nilometer_wire::Stamp;
use serde_json::{Value, json};

use crate::recording_json::jumps_value;

/// The most places of one kind in a text.
const SHOWN: usize = 10;

/// The last fact about any recording without a journal.
pub(crate) fn not_known() -> NamedFact {
    let text = "without a journal: losses before the first frame and after the last, their causes, changed bytes, and \
                survival of a loss of power";
    NamedFact::toned(Tone::Doubtful, "not known", text)
}

/// The origin of a recording without a journal: its kind, its files, and the findings of opening it.
#[derive(Debug, Clone)]
pub(crate) struct ForeignOrigin {
    pub(crate) facts: ForeignFacts,
    /// Number of its directories.
    pub(crate) directories: usize,
    pub(crate) first_file: String,
}

impl ForeignOrigin {
    /// Returns `None` if the recording has a journal.
    pub(crate) fn of(recording: &Recording) -> Option<Self> {
        let facts = recording.foreign()?.clone();
        let first = recording.foreign_files(0).first();
        let first_file = first.map_or_else(String::new, |path| path.display().to_string());
        Some(ForeignOrigin { facts, directories: recording.index.heads.len(), first_file })
    }

    /// The facts for a reader.
    pub(crate) fn named_facts(&self) -> Vec<NamedFact> {
        let ForeignFacts { faults, notes, .. } = &self.facts;
        let mut facts = vec![NamedFact::new("stored", self.stored())];
        let fault = |text: &dyn Display| NamedFact::toned(Tone::Bad, "fault", text);
        facts.extend(faults.iter().take(SHOWN).map(|text| fault(text)));
        let unnamed = faults.len().saturating_sub(SHOWN);
        facts.extend((unnamed > 0).then(|| fault(&format_args!("{unnamed} more"))));
        facts.extend(notes.iter().map(|note| NamedFact::new("note", note)));
        facts
    }

    fn stored(&self) -> String {
        let ForeignOrigin { facts: ForeignFacts { kind, files, .. }, directories, first_file } = self;
        match files {
            1 => format!("{kind} without a journal: {first_file}"),
            _ => format!(
                "{kind} without a journal: {files} files in {directories} directories, first {first_file}"
            ),
        }
    }

    /// The facts for a program.
    pub(crate) fn value(&self) -> Value {
        let ForeignFacts { kind, files, faults, notes, .. } = &self.facts;
        json!({
            "kind": kind.name(), "files": files, "directories": self.directories, "first_file": self.first_file,
            "faults": faults, "notes": notes,
        })
    }
}

/// The blocks that are not here, and the gaps that the numbering shows. `walked` is `None` if not all headers
/// were read.
pub(crate) fn foreign_missing(missing_frames: u64, walked: Option<&FrameFindings>) -> String {
    let mut words = Vec::new();
    if missing_frames > 0 {
        words.push(format!("{missing_frames} frames are in files or blocks that are not here"));
    }
    words.push(match walked {
        None => "not known without a journal: --all looks for gaps in the numbering".into(),
        Some(walked) => match walked.continuity.jumps {
            0 => "gaps by numbering: none".into(),
            jumps => format!("gaps by numbering: {jumps} times time does not go on"),
        },
    });
    words.join("; ")
}

/// The findings of a walk over all headers. `rate` is the number of frames a second, if known.
pub(crate) fn walked_facts(walked: &FrameFindings, frame_size: u64, rate: Option<u64>) -> Vec<NamedFact> {
    let continuity = &walked.continuity;
    let bad = |name, text: String| NamedFact::toned(Tone::Bad, name, text);
    let invalid = continuity.invalid;
    let headers = format!("{} frames; {invalid} are marked as invalid", walked.frames);
    let mut facts = vec![NamedFact::new("headers", headers)];
    let jumps = continuity.first_jumps.iter().take(SHOWN);
    facts.extend(jumps.map(|jump| bad("jump", jump_text(jump, rate))));
    if rate.is_none() {
        let text = "not known: a gap at the end of a second can't be seen";
        facts.push(NamedFact::toned(Tone::Doubtful, "rate", text));
    }
    facts.extend(walked.first_fill.map(|first| {
        let fill = walked.fill;
        let text = format!("{fill} frames replace missing ones, without a time: the first at byte {first}");
        bad("fill", text)
    }));
    let odd = walked.first_other_sizes.iter().take(SHOWN);
    let odd = odd.map(|(at, size)| format!("a frame of {} at byte {at}", Bytes(*size)));
    facts.extend(odd.map(|text| bad(OTHER_SIZE, text)));
    facts.extend(more(walked.other_sizes, walked.first_other_sizes.len(), OTHER_SIZE));
    let strange = walked.first_strange.iter().take(SHOWN);
    facts.extend(strange.map(|bytes| bad(NO_FRAME, strange_text(bytes))));
    facts.extend(more(walked.strange, walked.first_strange.len(), NO_FRAME));
    facts.extend(walked.cut.as_ref().map(|cut| {
        let there = Bytes(cut.end - cut.start);
        let whole = Bytes(frame_size);
        bad("cut", format!("the last frame has {there} of {whole}: it begins at byte {}", cut.start))
    }));
    facts
}

const OTHER_SIZE: &str = "other size";
const NO_FRAME: &str = "no frame";

fn jump_text(Jump { frame, before, stamp }: &Jump, rate: Option<u64>) -> String {
    let at = |stamp: &Stamp| format!("{} frame {}", stamp.moment(rate), stamp.frame);
    format!("thread {} goes on at {} behind {}: frame {frame}", stamp.thread, at(stamp), at(before))
}

fn strange_text(StrangeBytes { range, is_zero }: &StrangeBytes) -> String {
    let length = Bytes(range.end - range.start);
    let of = if *is_zero { ", all of them zero" } else { "" };
    format!("{length} from byte {} on{of}", range.start)
}

fn more(count: u64, listed: usize, name: &'static str) -> Option<NamedFact> {
    let unnamed = count - listed.min(SHOWN) as u64;
    let text = format!("and {unnamed} more: --json names the first 100");
    (unnamed > 0).then(|| NamedFact::toned(Tone::Bad, name, text))
}

/// The first fault of files without a journal because of which their recording lacks packets or bytes.
pub(crate) fn lacking_fault(recording: &Recording) -> Option<String> {
    recording.foreign()?.lacking().map(str::to_owned)
}

/// The reasons why a recording without a journal is not whole. `missing_frames` are those in absent blocks.
pub(crate) fn foreign_faults(
    facts: &ForeignFacts,
    missing_frames: u64,
    walked: Option<&FrameFindings>,
) -> Vec<String> {
    let mut faults = facts.faults.clone();
    let mut fault = |count: u64, text: &str| faults.extend((count > 0).then(|| format!("{count} {text}")));
    fault(missing_frames, "frames are in files or blocks that are not here");
    let Some(walked) = walked else { return faults };
    fault(walked.continuity.jumps, "times time does not go on");
    fault(walked.fill, "frames replace missing ones");
    fault(walked.other_sizes, "frames have another size");
    fault(walked.strange_bytes, "bytes are no frames");
    fault(walked.cut.iter().len() as u64, "frame is cut at the end");
    faults
}

/// The findings of a walk over all headers, as JSON. `rate` is the number of frames a second, if known.
pub(crate) fn walked_value(walked: &FrameFindings, rate: Option<u64>) -> Value {
    let odd = |(at, size): &(u64, u64)| json!({ "offset": at, "bytes": size });
    let strange = |StrangeBytes { range, is_zero }: &StrangeBytes| {
        let length = range.end - range.start;
        json!({ "offset": range.start, "bytes": length, "zero": is_zero })
    };
    json!({
        "frames": walked.frames, "invalid": walked.continuity.invalid, "jumps": walked.continuity.jumps,
        "first_jumps": jumps_value(&walked.continuity.first_jumps, rate),
        "fill_frames": walked.fill, "first_fill": walked.first_fill, "other_sizes": walked.other_sizes, "strange_runs": walked.strange,
        "strange_bytes": walked.strange_bytes, "absent_bytes": walked.absent_bytes,
        "first_other_sizes": walked.first_other_sizes.iter().map(odd).collect::<Vec<_>>(),
        "first_strange": walked.first_strange.iter().map(strange).collect::<Vec<_>>(),
        "cut": walked.cut.as_ref().map(|cut| json!({ "offset": cut.start, "bytes": cut.end - cut.start })),
    })
}

#[cfg(test)]
pub(crate) mod testing {
    //! Findings about recordings of other programs, with every field set.

    use nilometer_recording::{ForeignKind, view::Continuity};

    use super::*;

    pub(crate) fn origin() -> ForeignOrigin {
        let facts = ForeignFacts {
            kind: ForeignKind::Chunks,
            files: 4,
            in_step: true,
            faults: vec!["a chunk is empty".into()],
            notes: vec!["a note".into()],
        };
        ForeignOrigin { facts, directories: 2, first_file: "/d/a.00000000".into() }
    }

    pub(crate) fn walked() -> FrameFindings {
        let stamp = |second| Stamp { second, frame: 8, station: 3, thread: 5, invalid: false };
        let mut continuity = Continuity::new(Some(100));
        continuity.frames = 52;
        continuity.invalid = 1;
        continuity.jumps = 1;
        continuity.first_jumps = vec![Jump { frame: 7, before: stamp(60), stamp: stamp(62) }];
        FrameFindings {
            continuity,
            frames: 50,
            fill: 2,
            first_fill: Some(8000),
            other_sizes: 12,
            first_other_sizes: vec![(16000, 500); 10],
            strange: 1,
            strange_bytes: 30,
            first_strange: vec![StrangeBytes { range: 90..120, is_zero: true }],
            cut: Some(400..600),
            absent_bytes: 4000,
        }
    }
}
