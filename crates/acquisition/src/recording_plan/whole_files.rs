//! Rules for storage that takes files only as a whole, or only appends to them.

use nilometer_model::{Capabilities, Capability, Format, Nanos, TargetDescription};

use super::RecordingPlan;

/// Limit on the time that a frame waits for its file. A frame is acknowledged when its file exists, which
/// should not take long even if frames arrive slowly.
const HELD: Nanos = Nanos::from_millis(1000);

/// The rules of storage for files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileRules {
    /// True if the storage takes files only as a whole or by appending. It reports their content on sync or
    /// close.
    pub(super) whole: bool,
    /// True if synced data survive the loss of power.
    pub(super) syncs: bool,
}

impl FileRules {
    pub(super) fn of(onto: &[TargetDescription]) -> Self {
        let all = |capability| onto.iter().all(|onto| onto.capabilities.has(capability));
        FileRules { whole: !all(Capability::WriteAnywhere), syncs: all(Capability::Sync) }
    }
}

impl RecordingPlan {
    /// Checks that all this storage supports the plan's kind of files. Also checks that files which the storage
    /// takes as a whole fit in memory until then.
    ///
    /// # Errors
    /// If not. The message names the possible kinds of recording.
    pub fn check_storage(&self, onto: &[TargetDescription]) -> Result<(), String> {
        let mut needs = self.frames.storing.needs(Some(self.frames_per_file)).to_vec();
        needs.extend((self.frames.format == Format::Hdf5).then_some(Capability::WriteAnywhere));
        let needs = Capabilities::of(&needs);
        for onto in onto {
            let lacking = onto.capabilities.lacking(&needs);
            if lacking.is_empty() {
                continue;
            }
            let names: Vec<_> = lacking.into_iter().map(Capability::name).collect();
            let what = match self.frames.format {
                Format::Hdf5 => "an HDF5 file",
                _ => self.frames.storing.kind().words,
            };
            return Err(format!(
                "{}: can't record {what} there, since that needs {}: record raw frames or CBF with the storing \
                 `files` or `scattered`, or into a mounted directory",
                onto.address,
                names.join(", ")
            ));
        }
        self.check_whole_files()
    }

    /// Limit on the time that a frame waits in a file that is not full. There is none if the user set the file
    /// size, or if the plan keeps a number of full files.
    pub(super) fn held_at_most(&self) -> Nanos {
        if self.size_was_said || self.keep.is_some() { Nanos::MAX } else { HELD }
    }

    /// Checks that memory has room for a whole file of each lane until the storage has it, and for the next
    /// file.
    fn check_whole_files(&self) -> Result<(), String> {
        let files = if self.size_was_said { 2 } else { 1 };
        let held = u64::from(self.lanes()).saturating_mul(files * self.frames_per_file);
        if !self.storage.whole || self.frames_per_file == 1 || held <= self.slots() as u64 {
            return Ok(());
        }
        let needed = self.buffer_for(held);
        Err(format!(
            "--buffer {}: with whole files {} writers keep {files} of {} frames each in memory: give {needed}, or \
             put fewer frames into a file",
            self.buffer,
            self.lanes(),
            self.frames_per_file
        ))
    }
}
