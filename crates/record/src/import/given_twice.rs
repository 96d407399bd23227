//! Results of a run that are given twice: a file named again, a copy of it, or the text and the JSON of one run.
//! They are no repeats.
//!
//! Two figures are the same if they are of one target, cell and phase, of runs that began at the same moment,
//! and agree to the digits that programs print. Figures of one file are never the same: iterations may agree.

use std::collections::HashMap;

use nilometer_model::Nanos;
use nilometer_plan::Group;

use super::gathered::GivenWork;

/// Results by the moment of their run.
#[derive(Debug, Default)]
pub(super) struct KnownRuns {
    /// The number of the current file.
    file: u32,
    known: HashMap<(Group, MomentOfRun), Vec<KnownWork>>,
    /// True if the current file was read before.
    is_same_file: bool,
    /// The number of results found to be there already.
    pub(super) again: u64,
}

/// The beginning of a run, and its target as the file names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct MomentOfRun {
    pub(super) given: String,
    pub(super) started: Nanos,
}

/// Figures of a result.
#[derive(Debug)]
struct KnownWork {
    bytes: u64,
    operations: u64,
    wall: Nanos,
    /// The last file that had them.
    file: u32,
}

/// A date without a time of day is a whole number of these, in nanoseconds.
const DAY: u64 = 86_400 * 1_000_000_000;
/// Figures that differ by a smaller share are printed with different numbers of digits.
const PRINTED_SHARE: f64 = 2e-3;

impl KnownRuns {
    /// Begins another file, which is an earlier one if `is_again`.
    pub(super) fn begin(&mut self, is_again: bool) {
        self.file += 1;
        self.is_same_file = is_again;
    }

    /// Returns true if the figures are there already; adds them otherwise. A date alone tells no run.
    pub(super) fn is_again(&mut self, group: Group, moment: MomentOfRun, did: &GivenWork) -> bool {
        let has_time = !moment.started.0.is_multiple_of(DAY);
        let is_again = self.is_same_file || has_time && self.is_known(group, moment, did);
        self.again += u64::from(is_again);
        is_again
    }

    fn is_known(&mut self, group: Group, moment: MomentOfRun, did: &GivenWork) -> bool {
        let file = self.file;
        let known = self.known.entry((group, moment)).or_default();
        if let Some(same) = known.iter_mut().find(|known| known.file != file && known.is_as(did)) {
            same.file = file;
            return true;
        }
        let GivenWork { bytes, operations, wall, .. } = *did;
        known.push(KnownWork { bytes, operations, wall, file });
        false
    }
}

impl KnownWork {
    fn is_as(&self, did: &GivenWork) -> bool {
        let is_near =
            |one: u64, other: u64| one.abs_diff(other) as f64 <= PRINTED_SHARE * one.max(other) as f64;
        is_near(self.bytes, did.bytes)
            && is_near(self.operations, did.operations)
            && is_near(self.wall.0, did.wall.0)
    }
}
