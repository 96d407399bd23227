//! Searches for the limits of a storage, by open-loop trials. [`RateSearch`] finds the highest rate with a
//! given buffer, [`BufferSearch`] the smallest buffer at a given rate.
//!
//! They are pure: given the trials so far, a search returns the next one, or the result. The same history
//! gives the same answer, so an interrupted search continues from the record.

mod buffer;
mod history;
mod pass;
mod rate;

pub use buffer::{BufferLimit, BufferSearch, BufferTrial};
pub use history::{Found, SearchBound, Trial, advise};
pub use pass::RateTrial;
pub use rate::{GRID, PASSES, RateLimit, RateSearch, TRIALS};

/// The end of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchEnd {
    /// No frame was lost.
    Carried,
    /// A frame was lost.
    Lost,
    /// The fault was the recorder's own, so the trial proves nothing.
    Invalid,
}

/// The next step after the trials so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Advice<Trial, Limit> {
    /// Try this.
    Next(Trial),
    /// The search has ended with this limit.
    Found(Limit),
}

/// Number of trials of one kind, all without loss, that confirm a limit.
pub const CLEAN: u32 = 3;

/// Most of [`CLEAN`].
const MOST: u32 = 2;

/// Most of five: so often must the upper end lose.
const FIRM: u32 = 3;

/// Invalid trials of one kind; with more, it can't be tried here.
const INVALID_MOST: u32 = 3;

/// Trials of one kind, by how they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Votes {
    carried: u32,
    lost: u32,
    invalid: u32,
}

/// The answer of the trials of one kind, once there are enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Carried,
    Lost,
    /// Most trials were invalid.
    Untestable,
}

impl Votes {
    fn add(&mut self, ended: SearchEnd) {
        match ended {
            SearchEnd::Carried => self.carried += 1,
            SearchEnd::Lost => self.lost += 1,
            SearchEnd::Invalid => self.invalid += 1,
        }
    }

    /// The answer by the majority of three, or of five if the search repeated the question.
    fn answer(self) -> Option<Answer> {
        match self {
            Votes { lost, carried, .. } if lost >= MOST && carried < CLEAN => Some(Answer::Lost),
            Votes { carried, .. } if carried >= MOST => Some(Answer::Carried),
            Votes { invalid, .. } if invalid > INVALID_MOST => Some(Answer::Untestable),
            _ => None,
        }
    }

    /// Enough trials, and none lost.
    fn is_clean(self) -> bool {
        self.lost == 0 && self.carried >= CLEAN
    }

    /// True if most of five trials lost.
    fn is_firm(self) -> bool {
        self.lost >= FIRM
    }

    /// May still become clean.
    fn is_open(self) -> bool {
        self.lost == 0 && self.carried < CLEAN && self.invalid <= INVALID_MOST
    }
}
