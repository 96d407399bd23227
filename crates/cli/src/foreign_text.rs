//! Texts about recordings without a journal: the facts that their files show, and those that nobody knows.

use nilometer_model::Bytes;
use nilometer_recording::{
    ForeignFacts,
    foreign::{FrameFindings, StrangeBytes},
    reader::Recording,
};
use nilometer_wire::Stamp;
use serde_json::{Value, json};

use crate::recording_text::in_line;

/// The most places of one kind in a text.
const SHOWN: usize = 10;

/// The last line about any recording without a journal.
pub(crate) const NOT_KNOWN: &str = "not known   without a journal: losses before the first frame and after the last, \
                                    their causes, changed bytes, and survival of a loss of power";

/// The kind of the recording, its files, and the findings of opening it.
pub(crate) fn foreign_lines(recording: &Recording) -> Vec<String> {
    let Some(facts) = recording.foreign() else { return Vec::new() };
    let mut lines = vec![stored(recording, facts)];
    lines.extend(facts.faults.iter().take(SHOWN).map(|fault| format!("fault       {}", in_line(fault))));
    let unnamed = facts.faults.len().saturating_sub(SHOWN);
    lines.extend((unnamed > 0).then(|| format!("fault       {unnamed} more")));
    lines.extend(facts.notes.iter().map(|note| format!("note        {}", in_line(note))));
    lines
}

fn stored(recording: &Recording, ForeignFacts { kind, files, .. }: &ForeignFacts) -> String {
    let lanes = recording.index.heads.len();
    let first = recording.foreign_files(0).first().map_or_else(String::new, |path| in_line(path.display()));
    match files {
        1 => format!("stored      {kind} without a journal: {first}"),
        _ => format!(
            "stored      {kind} without a journal: {files} files in {lanes} directories, first {first}"
        ),
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

/// The findings of a walk over all headers, one line each. `rate` is the number of frames a second, if known.
pub(crate) fn walked_lines(walked: &FrameFindings, frame_size: u64, rate: Option<u64>) -> Vec<String> {
    let continuity = &walked.continuity;
    let mut lines =
        vec![format!("headers     {} frames; {} are marked as invalid", walked.frames, continuity.invalid)];
    let at = |stamp: Stamp| format!("{} frame {}", stamp.moment(rate), stamp.frame);
    lines.extend(continuity.first_jumps.iter().take(SHOWN).map(|jump| {
        let thread = jump.stamp.thread;
        let before = at(jump.before);
        let behind = at(jump.stamp);
        format!("jump        thread {thread} goes on at {behind} behind {before}: frame {}", jump.frame)
    }));
    if rate.is_none() {
        lines.push("rate        not known: a gap at the end of a second can't be seen".into());
    }
    let fill = walked.first_fill.map(|first| {
        format!(
            "fill        {} frames replace missing ones, without a time: the first at byte {first}",
            walked.fill
        )
    });
    lines.extend(fill);
    let odd = walked.first_other_sizes.iter().take(SHOWN);
    lines.extend(odd.map(|(at, size)| format!("other size  a frame of {} at byte {at}", Bytes(*size))));
    lines.extend(more(walked.other_sizes, walked.first_other_sizes.len(), "other size"));
    lines.extend(walked.first_strange.iter().take(SHOWN).map(strange_line));
    lines.extend(more(walked.strange, walked.first_strange.len(), "no frame"));
    lines.extend(walked.cut.as_ref().map(|cut| {
        let there = Bytes(cut.end - cut.start);
        format!(
            "cut         the last frame has {there} of {}: it begins at byte {}",
            Bytes(frame_size),
            cut.start
        )
    }));
    lines
}

fn strange_line(StrangeBytes { range, is_zero }: &StrangeBytes) -> String {
    let length = Bytes(range.end - range.start);
    let of = if *is_zero { ", all of them zero" } else { "" };
    format!("no frame    {length} from byte {} on{of}", range.start)
}

fn more(count: u64, listed: usize, word: &str) -> Option<String> {
    let unnamed = count - listed.min(SHOWN) as u64;
    (unnamed > 0).then(|| format!("{word:<12}and {unnamed} more: --json names the first 100"))
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

/// The kind of a recording without a journal and the findings of opening it, as JSON. Null with a journal.
pub(crate) fn foreign_value(recording: &Recording) -> Value {
    let Some(ForeignFacts { kind, files, faults, notes, .. }) = recording.foreign() else {
        return Value::Null;
    };
    json!({ "kind": kind.name(), "files": files, "faults": faults, "notes": notes })
}

/// The findings of a walk over all headers, as JSON.
pub(crate) fn walked_value(walked: &FrameFindings) -> Value {
    let odd = |(at, size): &(u64, u64)| json!({ "offset": at, "bytes": size });
    let strange = |StrangeBytes { range, is_zero }: &StrangeBytes| {
        let length = range.end - range.start;
        json!({ "offset": range.start, "bytes": length, "zero": is_zero })
    };
    json!({
        "frames": walked.frames, "invalid": walked.continuity.invalid, "jumps": walked.continuity.jumps,
        "fill_frames": walked.fill, "other_sizes": walked.other_sizes, "strange_runs": walked.strange,
        "strange_bytes": walked.strange_bytes, "absent_bytes": walked.absent_bytes,
        "first_other_sizes": walked.first_other_sizes.iter().map(odd).collect::<Vec<_>>(),
        "first_strange": walked.first_strange.iter().map(strange).collect::<Vec<_>>(),
        "cut": walked.cut.as_ref().map(|cut| json!({ "offset": cut.start, "bytes": cut.end - cut.start })),
    })
}
