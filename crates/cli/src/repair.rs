//! `nilometer repair`: makes the HDF5 files of a recording whole again, from its journals.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use nilometer_hdf5_recording::{RepairError, RepairOptions, RepairOutcome, RepairedFile, repair_recording};
use nilometer_recording::reader::OpenError;
use nilometer_report::in_line;

use crate::{Blame, Failure, Outcome, lone_file::refuse_files, stored_at::refuse_urls, tell};

/// Repair HDF5 files of a recording in place, after a loss of power or damage
///
/// The journals beside the files locate each frame, and repair copies no frame. A file whose index agrees
/// with them stays as it is. In any other file, repair reads all frames and writes everything else anew
/// behind them. It refuses a recording that still grows.
#[derive(Debug, Args)]
pub(crate) struct Repair {
    /// The directories of the recording, those of all lanes
    #[arg(required = true)]
    directories: Vec<PathBuf>,
    /// Print the repairs, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Assert that the recording machine is down: on storage that several machines share, no lock can show it
    #[arg(long)]
    recorder_is_down: bool,
}

/// The frames that are lost, and the files that failed.
#[derive(Debug, Default)]
struct Faults {
    lost: u64,
    failed: usize,
}

/// The advice for somebody who passes a file.
const FOR_FILES: &str = "a file without a journal can't be repaired: `nilometer verify FILE` names the damage, and \
                         `nilometer export FILE --to FILE.raw` writes the readable frames";

impl Repair {
    pub(crate) fn execute(&self) -> Outcome {
        refuse_files(&self.directories, FOR_FILES).input()?;
        refuse_urls(&self.directories).input()?;
        let options = RepairOptions { dry_run: self.dry_run, recorder_is_down: self.recorder_is_down };
        let mut faults = Faults::default();
        let mut tell = |file: &RepairedFile| {
            tell::result(tell::visible(&told(file)));
            faults.lost += file.lost_frames;
            faults.failed += usize::from(matches!(file.outcome, RepairOutcome::Failed(_)));
        };
        match repair_recording(&self.directories, options, &mut tell) {
            // The arguments are right, and the recording still grows or is empty: a fault, not wrong input.
            Err(error @ (RepairError::Recorded { .. } | RepairError::Recording(OpenError::Empty { .. }))) => {
                return Err(Failure::Run(error.into()));
            }
            repaired => repaired.input()?,
        }
        let Faults { lost, failed } = faults;
        let mut words = Vec::new();
        words.extend((failed > 0).then(|| format!("{failed} files are not whole")));
        words.extend((lost > 0).then(|| format!("{lost} frames that were acknowledged are lost")));
        if words.is_empty() { Ok(()) } else { Err(Failure::Run(anyhow!("{}", words.join("; ")))) }
    }
}

/// The most datasets of a file that the output names as not kept.
const NAMED_MAX: usize = 20;

/// The outcome of a file: one line, then one for each lost frame and for each dataset that is not kept.
fn told(file: &RepairedFile) -> String {
    let RepairedFile { outcome, frames, unproved, lost, lost_frames, lost_values, .. } = file;
    let path = in_line(file.path.display());
    let (word, why) = match outcome {
        RepairOutcome::Whole => ("whole", None),
        RepairOutcome::Repaired(why) => ("repaired", Some(why)),
        RepairOutcome::ToBeRepaired(why) => ("to repair", Some(why)),
        RepairOutcome::Removed => ("removed", None),
        RepairOutcome::ToBeRemoved => ("to remove", None),
        RepairOutcome::Failed(why) => ("failed", Some(why)),
    };
    if matches!(outcome, RepairOutcome::Removed | RepairOutcome::ToBeRemoved) {
        return format!("{word:<11} {path}: the recorder made it ahead, and no frame is in it\n");
    }
    let gone = if *lost_frames > 0 { format!(", {lost_frames} lost") } else { String::new() };
    let why = why.map(|why| format!("; before, {}", in_line(why))).unwrap_or_default();
    let mut lines = vec![format!("{word:<11} {path}: {frames} frames{gone}{why}")];
    if *unproved > 0 {
        lines.push(format!(
            "unproved    {unproved} frames of it: the machine went down while they were not durable, and they have no \
             checksum; they are flagged as not whole"
        ));
    }
    let named = lost.iter().map(|(number, why)| format!("lost        frame {number} {}", in_line(why)));
    lines.extend(named);
    let unnamed = lost_frames - lost.len() as u64;
    lines.extend((unnamed > 0).then(|| format!("lost        {unnamed} frames more")));
    lines.extend(lost_values.iter().take(NAMED_MAX).map(|what| format!("not kept    {}", in_line(what))));
    let unnamed = lost_values.len().saturating_sub(NAMED_MAX);
    lines.extend((unnamed > 0).then(|| format!("not kept    {unnamed} datasets more")));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_a_file_is_told_with_the_frames_that_are_lost() {
        let whole = RepairedFile {
            path: "/data/scan.h5".into(),
            outcome: RepairOutcome::Whole,
            frames: 60,
            unproved: 0,
            lost: Vec::new(),
            lost_frames: 0,
            lost_values: Vec::new(),
        };
        assert_eq!(told(&whole), "whole       /data/scan.h5: 60 frames\n");
        let repaired = RepairedFile {
            outcome: RepairOutcome::Repaired("its index lacks frame 3".into()),
            frames: 58,
            lost: vec![(7, "its checksum is another".into())],
            lost_frames: 2,
            lost_values: (0..22).map(|number| format!("/g/{number}: too many")).collect(),
            ..whole
        };
        let lines = told(&repaired);
        let first = "repaired    /data/scan.h5: 58 frames, 2 lost; before, its index lacks frame 3\n\
                     lost        frame 7 its checksum is another\nlost        1 frames more\n\
                     not kept    /g/0: too many\n";
        assert!(
            lines.starts_with(first) && lines.ends_with("/g/19: too many\nnot kept    2 datasets more\n"),
            "{lines}"
        );
    }
}
