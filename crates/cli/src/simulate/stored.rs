//! The results of a recording, as text: of this process, or of all that made it together.

use std::sync::Arc;

use anyhow::ensure;
use nilometer_acquisition::Outcome as Recorded;
use nilometer_cluster::StoredPart;
use nilometer_model::{ByteRate, Bytes, Format, Instrument, Nanos, RecordingLayout};
use nilometer_ring::FrameTurn;
use nilometer_service::recording::ended::early_ends;
use nilometer_storage::target::KeptDirectory;

use super::turns::told_of_all;
use crate::{recorded::ring_and_lanes, together::Together};

/// The results of this process.
pub(super) fn own_part(
    together: &Together<'_>,
    recording: &RecordingLayout,
    outcome: &Recorded,
    targets: &[Arc<dyn KeptDirectory>],
    what: &str,
    interrupted: bool,
) -> StoredPart {
    let longest = outcome.lanes.iter().flatten().map(|lane| lane.totals.longest).max().unwrap_or_default();
    let mut faults: Vec<String> =
        outcome.stopped.then(|| "it was stopped by a full buffer".into()).into_iter().collect();
    faults.extend(early_ends(outcome, what, interrupted && !together.is_shared()));
    if interrupted && together.is_shared() {
        faults.push("interrupted: its part is whole up to there".into());
    }
    StoredPart {
        node: together.node(),
        due: outcome.due,
        delivered: together.turn(recording).delivered(outcome.due),
        stored: outcome.stored(),
        written: outcome.written(),
        wall: outcome.wall,
        longest,
        recording: together.shared.id,
        first_frame: None,
        lost: losses(outcome),
        lines: ring_and_lanes(outcome, targets, "frames"),
        faults,
        hung: outcome.hung,
        directories: targets.iter().map(|target| target.path().to_owned()).collect(),
    }
}

/// The fate of the frames, one line each.
pub(super) fn summary(parts: &[StoredPart], instrument: &Instrument) -> String {
    let frame = instrument.frame_size();
    let sum = |of: fn(&StoredPart) -> u64| parts.iter().map(of).sum::<u64>();
    let due = delivered(parts);
    let stored = sum(|part| part.stored);
    let wall = parts.iter().map(|part| part.wall).max().unwrap_or_default();
    let longest = parts.iter().map(|part| part.longest).max().unwrap_or_default();
    let bytes = stored * frame.0;
    let mut lines = vec![
        format!("due         {due} frames of {frame}"),
        format!("stored      {stored} frames, {}, {}", Bytes(bytes), ByteRate::of(bytes, wall)),
        format!(
            "written     {}",
            written(sum(|part| part.written), bytes, wall, instrument.recording.format)
        ),
    ];
    lines.extend(compressed_here(instrument));
    lines.push(format!("lost        {}", lost(parts, &instrument.recording)));
    lines.push(format!("latest      {longest} from due until acknowledged"));
    match parts {
        [part] => lines.extend(part.lines.iter().cloned()),
        parts => lines.extend(told_of_all(parts, &instrument.recording)),
    }
    lines.join("\n") + "\n"
}

/// The line about frames that the detector would send compressed; `None` for others.
fn compressed_here(instrument: &Instrument) -> Option<String> {
    let is_detectors = instrument.compressed && instrument.recording.format == Format::Hdf5;
    is_detectors.then(|| {
        "compressed  by this machine, in place of the detector: evaluate records frames that come compressed, and so does \
         --format raw"
            .to_owned()
    })
}

/// The bytes written for these frames, and the rate.
fn written(written: u64, frames: u64, wall: Nanos, format: Format) -> String {
    let rate = ByteRate::of(written, wall);
    let smaller = frames as f64 / written.max(1) as f64;
    match format {
        Format::Raw | Format::Vdif | Format::Mark5b => format!("{} of raw frames, {rate}", Bytes(written)),
        Format::Cbf => {
            format!("{} of CBF files, {rate}, {smaller:.2} times smaller than the frames", Bytes(written))
        }
        Format::Hdf5 => {
            format!(
                "{} of chunks in HDF5, {rate}, {smaller:.2} times smaller than the frames",
                Bytes(written)
            )
        }
    }
}

/// The number of lost frames, with the reasons; by process if there are several.
fn lost(parts: &[StoredPart], recording: &RecordingLayout) -> String {
    let mut each = Vec::new();
    for ((rank, part), unmade) in parts.iter().enumerate().zip(unmade(parts, recording)) {
        let after = (unmade > 0).then(|| format!("{unmade} were due after it had ended"));
        let lost: Vec<_> = part.lost.iter().cloned().chain(after).collect();
        let who = if parts.len() > 1 { format!("process {rank}: ") } else { String::new() };
        each.extend((!lost.is_empty()).then(|| format!("{who}{}", lost.join(", "))));
    }
    if each.is_empty() { "nothing".into() } else { format!("frames: {}", each.join("; ")) }
}

/// The number of frames that the instrument delivered: up to the last that any process had.
fn delivered(parts: &[StoredPart]) -> u64 {
    parts.iter().map(|part| part.delivered).max().unwrap_or(0)
}

/// For each process, the frames of its turn that came after its end, while others went on.
fn unmade(parts: &[StoredPart], recording: &RecordingLayout) -> impl Iterator<Item = u64> {
    let all = delivered(parts);
    let of = u32::try_from(parts.len()).unwrap_or(u32::MAX);
    let line = recording.scan.map_or(1, |scan| scan.line());
    let due = move |first| FrameTurn { first, of, line }.own_of(all);
    (0..of).zip(parts).map(move |(first, part)| due(first).saturating_sub(part.due))
}

fn losses(outcome: &Recorded) -> Option<String> {
    let books = outcome.books;
    let reasons: Vec<_> = [
        (books.refused, "found the buffer full"),
        (books.displaced, "gave way to newer ones"),
        (books.stranded, "had no directory left to go to"),
        (outcome.unknown(), "were with hung storage: fate unknown"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, why)| format!("{count} {why}"))
    .collect();
    (!reasons.is_empty()).then(|| reasons.join(", "))
}

/// Turns losses and failed lanes into a failure.
pub(super) fn went_well(parts: &[StoredPart]) -> anyhow::Result<()> {
    let mut faults = Vec::new();
    let due = delivered(parts);
    let stored: u64 = parts.iter().map(|part| part.stored).sum();
    if due > stored {
        faults.push(format!("{} of {due} frames were not stored", due - stored));
    }
    for (rank, part) in parts.iter().enumerate() {
        let who = if parts.len() > 1 { format!("process {rank} on {}: ", part.node) } else { String::new() };
        faults.extend(part.faults.iter().map(|fault| format!("{who}{fault}")));
    }
    ensure!(faults.is_empty(), "{}", faults.join("; "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(node: &str, [delivered, due, stored]: [u64; 3]) -> StoredPart {
        StoredPart {
            node: node.into(),
            due,
            delivered,
            stored,
            written: stored * 200,
            wall: Nanos(1_000_000_000),
            longest: Nanos(due),
            recording: 0,
            first_frame: None,
            lost: (due > stored).then(|| format!("{} found the buffer full", due - stored)),
            lines: vec![format!("/data: {stored} frames, ended in order")],
            faults: Vec::new(),
            hung: false,
            directories: vec!["/data".into()],
        }
    }

    #[test]
    fn a_simulation_that_compresses_in_place_of_the_detector_says_so() {
        let line = |name: &str, format| {
            let mut instrument = nilometer_storage::user_file::instrument(name).expect("of the catalogue");
            instrument.recording.write_as(format);
            summary(&[part("n", [10, 10, 10])], &instrument.simulated())
        };
        let said = line("eiger2-16m", Format::Hdf5);
        assert!(
            said.contains("\ncompressed  by this machine") && said.contains("--format raw\nlost "),
            "{said}"
        );
        for (name, format) in [("eiger2-16m", Format::Raw), ("pilatus-6m", Format::Hdf5)] {
            assert!(!line(name, format).contains("compressed  "), "{name}");
        }
    }

    #[test]
    fn what_several_stored_is_told_as_one_and_by_each() {
        let text = "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [10, 10]\npixel = \"uint16\"\n\
                    frame_rate = \"10 Hz\"\n";
        let instrument = Instrument::parse(text, "camera").expect("valid");
        let parts = [part("a", [9, 5, 5]), part("b", [10, 5, 3])];
        let told = summary(&parts, &instrument);
        for line in [
            "due         10 frames of 200 B",
            "stored      8 frames, 1.6 kB, 1.6 kB/s",
            "lost        frames: process 1: 2 found the buffer full",
            "recorders   2 processes on 2 machines, frames in turn",
            "process 1 on b: 3 frames",
            "  /data: 3 frames, ended in order",
        ] {
            assert!(told.lines().any(|told| told == line), "{line}: {told}");
        }
        let wrong = went_well(&parts).expect_err("two are lost").to_string();
        assert_eq!(wrong, "2 of 10 frames were not stored");
        let whole = [part("a", [5, 5, 5])];
        let alone = summary(&whole, &instrument);
        assert!(alone.contains("lost        nothing") && !alone.contains("process"), "{alone}");
        went_well(&whole).expect("all is stored");
        // Frames 0, 2, 4, 6 and 1, 3: the second ended when 5 and 7 were to come.
        let early = [part("a", [7, 4, 4]), part("b", [4, 2, 2])];
        let told = summary(&early, &instrument);
        assert!(
            told.contains("due         7 frames")
                && told.contains("process 1: 1 were due after it had ended"),
            "{told}"
        );
        assert_eq!(
            went_well(&early).expect_err("it ended early").to_string(),
            "1 of 7 frames were not stored"
        );
        let broken =
            StoredPart { faults: vec!["1 of 1 directories dropped out".into()], ..part("b", [2, 1, 1]) };
        let wrong = went_well(&[part("a", [1, 1, 1]), broken]).expect_err("a lane failed").to_string();
        assert_eq!(wrong, "process 1 on b: 1 of 1 directories dropped out");
    }
}
