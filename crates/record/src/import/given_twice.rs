//! Results of a run that are given twice: a file named again, a copy of it, or the text and the JSON of one run.
//! They are no repeats.
//!
//! Two figures are the same if they are of one target, cell and phase, and of runs that began at one moment.
//! They agree to the digits that programs print. Figures of one file are never the same: iterations may agree.

use std::collections::HashMap;

use nilometer_model::Nanos;
use nilometer_plan::Group;

/// Results by the moment of their run.
#[derive(Debug, Default)]
pub(super) struct KnownRuns {
    /// The number of the current file.
    file: u32,
    known: HashMap<(Group, MomentOfRun), Vec<KnownFigures>>,
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
struct KnownFigures {
    /// Bytes, operations and nanoseconds.
    amounts: [u64; 3],
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
    pub(super) fn is_again(&mut self, group: Group, moment: MomentOfRun, amounts: [u64; 3]) -> bool {
        let has_time = !moment.started.0.is_multiple_of(DAY);
        let is_again = self.is_same_file || has_time && self.is_known(group, moment, amounts);
        self.again += u64::from(is_again);
        is_again
    }

    fn is_known(&mut self, group: Group, moment: MomentOfRun, amounts: [u64; 3]) -> bool {
        let file = self.file;
        let known = self.known.entry((group, moment)).or_default();
        if let Some(same) = known.iter_mut().find(|known| known.file != file && known.are(amounts)) {
            same.file = file;
            return true;
        }
        known.push(KnownFigures { amounts, file });
        false
    }
}

impl KnownFigures {
    fn are(&self, amounts: [u64; 3]) -> bool {
        let is_near =
            |(one, other): (u64, u64)| one.abs_diff(other) as f64 <= PRINTED_SHARE * one.max(other) as f64;
        self.amounts.into_iter().zip(amounts).all(is_near)
    }
}
