//! The share of frames that `verify` compared with a truth: without one, a frame that can be read may be wrong.

use anyhow::anyhow;

use crate::{Failure, Outcome};

/// The frames of a recording that were read back, and those among them that were compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ComparedFrames {
    /// Frames that agree with a checksum or with the simulated instrument.
    pub(crate) compared: u64,
    /// All frames that can be read.
    pub(crate) readable: u64,
    /// The unit of the recording: frames, or blocks of packets.
    pub(crate) what: &'static str,
    /// The reason why the others have nothing to be compared with.
    pub(crate) lacking: &'static str,
}

/// The reason for a recording with a journal.
pub(crate) const NO_CHECKSUMS: &str =
    "the journal has no checksums of the others (`record --checksums` keeps them)";

impl ComparedFrames {
    /// Frames of a file or a recording without a journal.
    pub(crate) fn without_journal(readable: u64) -> Self {
        ComparedFrames { compared: 0, readable, what: "frames", lacking: "there is no journal" }
    }

    /// The reason why these frames are not proved, if fewer than the share `least` were compared.
    pub(crate) fn doubt(&self, least: f64) -> Option<String> {
        let ComparedFrames { compared, readable, what, lacking } = *self;
        let is_enough = compared as f64 >= least * readable as f64 && (readable > 0 || least <= 0.0);
        (!is_enough).then(|| format!("{compared} of {readable} {what} could be compared: {lacking}"))
    }
}

/// The outcome without any fault. `doubts` are the reasons why frames are not proved.
pub(crate) fn undecided(doubts: &[String]) -> Outcome {
    if doubts.is_empty() {
        return Ok(());
    }
    let doubts = doubts.join("; ");
    Err(Failure::NotDecided(anyhow!("not decided: {doubts}; a lower --compared-least accepts that")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_nothing_was_compared_with_are_in_doubt() {
        let doubt = |compared, readable, least| {
            let frames = ComparedFrames { compared, readable, what: "blocks", lacking: "no checksums" };
            frames.doubt(least)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(doubt(0, 50, 1.0), some("0 of 50 blocks could be compared: no checksums"));
        assert_eq!(doubt(49, 50, 1.0), some("49 of 50 blocks could be compared: no checksums"));
        assert_eq!(
            doubt(0, 0, 1.0),
            some("0 of 0 blocks could be compared: no checksums"),
            "nothing is left"
        );
        for (compared, readable, least) in [(50, 50, 1.0), (40, 50, 0.8), (0, 50, 0.0), (0, 0, 0.0)] {
            assert_eq!(doubt(compared, readable, least), None, "{compared} of {readable}");
        }
    }
}
