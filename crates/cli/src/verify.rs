//! `nilometer verify`: whether a recording is whole, and exactly what is not.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use nilometer_acquisition::{
    Damaged, Verified,
    reader::{Index, Recording, Trust},
    verify,
};
use nilometer_model::Bytes;

use crate::{Blame, Failure, Outcome};

/// Reads a recording back, frame by frame, and names every frame that is missing or damaged
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The directories of the recording, those of all lanes
    #[arg(required = true)]
    directories: Vec<PathBuf>,
    /// Count only frames that survive the loss of power, not all that were acknowledged
    #[arg(long)]
    durable: bool,
}

impl Verify {
    pub(crate) fn execute(&self) -> Outcome {
        let trust = if self.durable { Trust::Durable } else { Trust::Acknowledged };
        let recording = Recording::open(&self.directories, trust).input()?;
        let verified = verify(&recording);
        print!("{}", told(&recording, &verified));
        let faults = faults(&recording, &verified);
        if faults.is_empty() {
            return Ok(());
        }
        Err(Failure::Run(anyhow!("the recording is not whole: {}", faults.join("; "))))
    }
}

/// What there is, a line each.
fn told(recording: &Recording, verified: &Verified) -> String {
    let (index, head) = (&recording.index, recording.head());
    let bytes = Bytes(verified.right * head.frame_size);
    let against = match (verified.made_again, verified.unchecked) {
        (true, _) => "compared with what the simulated instrument delivered".into(),
        (false, 0) => "compared with the checksums of the journal".into(),
        (false, count) => format!("read; {count} of them have no checksum to be compared with"),
    };
    let mut lines = vec![
        format!("recording   {:016x}, frames of {}", head.recording, Bytes(head.frame_size)),
        format!("lanes       {} of {}, {} ended in order", index.heads.len(), head.lanes, index.ended),
        format!("expected    {} frames", index.expected()),
        format!("right       {} frames, {bytes}, {against}", verified.right),
    ];
    if !index.chunks.is_empty() {
        lines.push(format!("chunks      {}", chunks(index)));
    }
    if !index.removed.is_empty() {
        lines.push(format!("removed     {} frames, to make room", index.removed.len()));
    }
    if let Some(why) = &verified.not_made_again {
        lines.push(format!("simulated   frames can't be made again: {why}"));
    }
    let missing = match verified.missing_frames() {
        0 => "none".into(),
        count => format!("{count} frames: {}", ranges(&verified.missing)),
    };
    lines.push(format!("missing     {missing}"));
    for Damaged { number, place, why } in &verified.damaged {
        let path = recording.path(*place);
        lines.push(format!(
            "damaged     frame {number} {why}: frame {} of {}",
            place.position,
            path.display()
        ));
    }
    for (path, error) in &recording.unreadable {
        lines.push(format!("unreadable  {}: {error}", path.display()));
    }
    lines.join("\n") + "\n"
}

/// How many chunks there are, and whether others find all of them.
fn chunks(index: &Index) -> String {
    let (count, unnumbered) =
        (index.chunks.len(), index.chunks.values().filter(|names| names.last.is_none()).count());
    if unnumbered == 0 {
        return count.to_string();
    }
    format!(
        "{count}; {unnumbered} found no number between those of directories that had dropped out: readers that go by the \
         numbers miss them"
    )
}

/// `3, 5-7`.
fn ranges(ranges: &[(u64, u64)]) -> String {
    let text = ranges.iter().map(|&(first, count)| match count {
        1 => first.to_string(),
        _ => format!("{first}-{}", first + count - 1),
    });
    text.collect::<Vec<_>>().join(", ")
}

/// Why it is not whole, if it is not.
fn faults(recording: &Recording, verified: &Verified) -> Vec<String> {
    let (index, lanes) = (&recording.index, recording.head().lanes as usize);
    let mut faults = Vec::new();
    let mut fault = |count: usize, text: String| {
        if count > 0 {
            faults.push(text);
        }
    };
    let missing = verified.missing_frames();
    fault(missing as usize, format!("{missing} frames are missing"));
    fault(verified.damaged.len(), format!("{} frames are damaged", verified.damaged.len()));
    let absent = lanes.saturating_sub(index.heads.len());
    let named = "name the directories of all lanes";
    fault(absent, format!("{absent} of {lanes} lanes have no journal here ({named})"));
    let unended = usize::from(index.due.is_none());
    fault(unended, "it was not ended in order, and what was due behind the last frame is not known".into());
    faults
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn ranges_are_named_by_their_ends() {
        assert_eq!(ranges(&[(3, 1), (5, 3), (10, 2)]), "3, 5-7, 10-11");
    }
}
