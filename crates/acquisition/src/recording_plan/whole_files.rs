//! Storage whose files are put whole, or grow at their ends: what can be recorded there.

use nilometer_model::{Capabilities, Capability, Format, Nanos, TargetDescription};

use super::RecordingPlan;

/// A frame is acknowledged when its file is there: that should not take long where frames come slowly.
const HELD: Nanos = Nanos::from_millis(1000);

/// What storage asks of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileRules {
    /// They are put whole, or grow at their ends: what they have is told when they are synced or closed.
    pub(super) whole: bool,
    /// What is synced survives the loss of power.
    pub(super) syncs: bool,
}

impl FileRules {
    pub(super) fn of(onto: &[TargetDescription]) -> Self {
        let all = |capability| onto.iter().all(|onto| onto.capabilities.has(capability));
        FileRules { whole: !all(Capability::WriteAnywhere), syncs: all(Capability::Sync) }
    }
}

impl RecordingPlan {
    /// Looks whether all storage, which is described so, can do what this way of storing needs, and whether files that are put
    /// whole have room in memory until they are.
    ///
    /// # Errors
    /// What can be recorded there instead.
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
                "{}: {what} can't be recorded there, since that needs {}: record raw frames or CBF with the storing `files` \
                 or `scattered`, whose files are put whole, or into a directory that is mounted",
                onto.address,
                names.join(", ")
            ));
        }
        self.check_whole_files()
    }

    /// So long a frame is held in a file that is not full: for ever, if it was said how full that is to be, and where so many
    /// full files are kept.
    pub(super) fn held_at_most(&self) -> Nanos {
        if self.size_was_said || self.keep.is_some() { Nanos::MAX } else { HELD }
    }

    /// Each lane has a whole file in memory until the storage has it, and meanwhile the next one comes.
    fn check_whole_files(&self) -> Result<(), String> {
        let files = if self.size_was_said { 2 } else { 1 };
        let held = u64::from(self.lanes()).saturating_mul(files * self.frames_per_file);
        if !self.storage.whole || self.frames_per_file == 1 || held <= self.slots() as u64 {
            return Ok(());
        }
        let needed = self.buffer_for(held);
        Err(format!(
            "--buffer {}: files are put whole there, and each of {} writers keeps {files} of {} frames in memory until they \
             are: it needs {needed}, or fewer frames a file",
            self.buffer,
            self.lanes(),
            self.frames_per_file
        ))
    }
}
