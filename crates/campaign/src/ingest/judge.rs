//! Judges if the figures of a recording may be used: the tool itself must not have caused them.
//! `docs/invalid.md` explains the thresholds to users.

use nilometer_acquisition::Outcome;
use nilometer_model::{Ingest, Invalid, Nanos, ReaderTotals, Sample, SourceLag};
use nilometer_plan::search::GRID;

use super::packets::Packets;
use crate::starvation::starved_beyond;

/// A recording, with the facts beside its figures that decide if it is valid.
#[derive(Debug)]
pub(super) struct Recording<'a> {
    pub(super) sample: &'a Sample,
    pub(super) ingest: &'a Ingest,
    /// The reasons why lanes or sources have no result.
    pub(super) faults: &'a [String],
    pub(super) packets: Option<Packets>,
    /// The time for which a recorder waited for a processor; of several the longest.
    pub(super) waited: Nanos,
}

/// Returns why the figures must not be used, or `None`.
///
/// If the recorder's own wait for a processor can explain a loss, the loss says nothing about the storage. Nor
/// does a recording without loss whose frames came more slowly than they were due. If nothing was lost, the
/// wait has changed nothing.
pub(super) fn judge(recording: &Recording<'_>) -> Option<Invalid> {
    let Recording { sample, ingest, faults, packets, waited } = recording;
    if !faults.is_empty() {
        return Some(Invalid::Refused(faults.join("; ")));
    }
    let comparable = |after| packets.is_none_or(|packets| packets.are_in_place(after));
    let compared = ingest.readers.iter().filter(|reader| comparable(reader.after));
    let bad = |reader: &ReaderTotals| reader.wrong + if reader.after { reader.failed } else { 0 };
    if compared.map(bad).sum::<u64>() > 0 {
        return Some(Invalid::Wrong);
    }
    let slow = || lag(sample, ingest).map(|lag| Invalid::Slow(Some(lag)));
    if let Some(packets) = packets {
        let lost = packets.totals.lost() > 0;
        return packets.judge(*waited, sample.wall).or_else(|| if lost { None } else { slow() });
    }
    if ingest.lost == 0 {
        return slow();
    }
    let missing = Nanos(ingest.lost.saturating_mul(ingest.period.0));
    let loss = Loss { missing, stall: ingest.longest_stall, wall: sample.wall };
    starved_beyond(*waited, sample.wall, loss.allowed())
}

/// The time for which a recorder waited for a processor: that of its source, plus the mean of its lanes. While
/// one lane waits, the others write.
pub(super) fn waited(outcome: &Outcome) -> Nanos {
    let lanes = || outcome.lanes.iter().flatten();
    let all = lanes().fold(Nanos(0), |all, lane| all + lane.run_delay);
    outcome.run_delay.since(all) + Nanos(all.0 / (lanes().count() as u64).max(1))
}

/// The loss of a recording without packets.
#[derive(Debug, Clone, Copy)]
struct Loss {
    /// The time in which as many frames arrive as were lost.
    missing: Nanos,
    /// The longest time that a frame waited.
    stall: Nanos,
    wall: Nanos,
}

/// A wait costs at most `CATCH_UP` times the frames that arrive meanwhile. Lanes that are behind catch up at
/// this multiple of the instrument's pace, on any storage worth testing.
const CATCH_UP: u64 = 2;
/// A wait shorter than 1 / `STALL_PART` of the longest stall does not noticeably change stall or buffer.
const STALL_PART: u64 = 10;
/// Even on an idle machine threads wait for a few microseconds whenever they wake: less than 1 / `NOISE_PART`
/// of the time.
const NOISE_PART: u64 = 1000;

impl Loss {
    /// The longest time that the recorder may have waited if the loss is still the storage's. Each of these is reason
    /// enough:
    ///
    /// ```text
    /// missing / 2    more was lost than the waiting can have cost
    /// stall / 10     the storage stalled about as long without it
    /// wall / 1000    what is usual
    /// ```
    ///
    /// Example: 60 frames of 14 ms are lost in a stall of 2.5 s, which is 0.84 s of frames. A recorder that waited for
    /// 0.1 s can have cost at most 0.2 s of them: the storage lost the rest.
    fn allowed(&self) -> Nanos {
        let missing = Nanos(self.missing.0 / CATCH_UP);
        let stall = Nanos(self.stall.0 / STALL_PART);
        missing.max(stall).max(Nanos(self.wall.0 / NOISE_PART))
    }
}

/// A source is slower than its pace if, in the median, frames come late by more than this share of the
/// recording's time. They must also be late by more than [`SLOW_LEAST`]: a source makes up for a moment without
/// a processor.
const SLOW_SHARE: f64 = GRID / 4.0;
const SLOW_LEAST: Nanos = Nanos::from_millis(10);

/// The lag of the source, if half of the frames were too late for it to have kept its pace.
fn lag(sample: &Sample, ingest: &Ingest) -> Option<SourceLag> {
    let of = Nanos(ingest.due.saturating_mul(ingest.period.0));
    let late = Nanos(sample.lateness.quantile(0.5));
    let allowed = SLOW_LEAST.max(Nanos::from_seconds(SLOW_SHARE * of.seconds()));
    (late > allowed).then_some(SourceLag::Late { late, of, allowed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::Waited;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    /// A recording of 10 s whose source takes `share` of the period for a frame.
    fn made(share: f64) -> (Sample, Ingest) {
        let (mut sample, period) = (Sample::new(Nanos(0)), Nanos::from_millis(10));
        let ingest = Ingest { due: 1000, stored: 1000, period, ..Ingest::default() };
        for number in 0..1000 {
            sample.lateness.add(Nanos::from_seconds(f64::from(number) * period.seconds() * (share - 1.0)).0);
        }
        (Sample { wall: Nanos(10 * SECOND), ..sample }, ingest)
    }

    fn judged(sample: &Sample, ingest: &Ingest, waited: Nanos) -> Option<Invalid> {
        judge(&Recording { sample, ingest, faults: &[], packets: None, waited })
    }

    /// A recording of frames every 10 ms, with this wait, number of lost frames and longest stall.
    fn lossy(wall: Nanos, waited: Nanos, lost: u64, stall: Nanos) -> Option<Invalid> {
        let (_, ingest) = made(0.5);
        let due = wall.0 / ingest.period.0;
        let ingest = Ingest { due, stored: due - lost, lost, longest_stall: stall, ..ingest };
        judged(&Sample { wall, ..Sample::new(Nanos(0)) }, &ingest, waited)
    }

    #[test]
    fn a_pace_that_the_source_did_not_keep_was_not_tried() {
        for (share, slow) in [(0.5, false), (1.02, false), (1.05, true), (3.0, true)] {
            let (sample, ingest) = made(share);
            let why = judged(&sample, &ingest, Nanos(0));
            assert_eq!(matches!(why, Some(Invalid::Slow(Some(_)))), slow, "{share}");
            assert_eq!(why.is_some(), slow, "{share}");
        }
        let (mut sample, ingest) = made(0.5);
        (0..400).for_each(|_| sample.lateness.add(3_000_000_000));
        assert_eq!(judged(&sample, &ingest, Nanos(0)), None, "the source was late for a while");
        let (sample, ingest) = made(3.0);
        let lost = Ingest { lost: 1, longest_stall: Nanos(1), ..ingest };
        assert_eq!(judged(&sample, &lost, Nanos(0)), None, "it lost even so");
    }

    #[test]
    fn frames_that_are_kept_must_be_readable_afterwards() {
        let (sample, ingest) = made(0.5);
        for (after, failed, expected) in [(true, 0, None), (true, 1, Some(Invalid::Wrong)), (false, 1, None)]
        {
            let readers = vec![ReaderTotals { after, failed, ..ReaderTotals::default() }];
            let ingest = Ingest { readers, ..ingest.clone() };
            assert_eq!(judged(&sample, &ingest, Nanos(0)), expected, "{after} {failed}");
        }
    }

    /// This case was once INVALID whatever the storage did. The storage stands still for 2.5 s of each 12 s,
    /// behind a buffer that covers 1.5 s of them, on a busy machine.
    #[test]
    fn a_loss_that_waiting_does_not_explain_is_the_storage_s() {
        let millis = Nanos::from_millis;
        let stalls = |waited| lossy(millis(40_000), millis(waited), 300, millis(2500));
        assert_eq!(stalls(1400), None, "3 s of frames are not lost by waiting for 1.4 s");
        let waited =
            Waited { waited: millis(2000), of: millis(40_000), allowed: millis(1500), throttled: Nanos(0) };
        assert_eq!(stalls(2000), Some(Invalid::Starved(Some(waited))), "and may be by 2 s");
        let one_frame = |waited| lossy(millis(5000), millis(waited), 1, millis(20));
        assert!(one_frame(20).is_some(), "two slots, and 20 ms without a processor");
        assert_eq!(one_frame(4), None, "of 5 s that is usual");
    }

    proptest! {
        #[test]
        fn without_a_loss_waiting_is_no_reason(seconds in 1..100_u64, waited in 0..200 * SECOND, stall in 0..100 * SECOND) {
            prop_assert_eq!(lossy(Nanos(seconds * SECOND), Nanos(waited), 0, Nanos(stall)), None);
        }

        #[test]
        fn what_is_usual_on_an_idle_machine_is_no_reason(seconds in 1..100_u64, lost in 1..100_u64, stall in 0..SECOND, part in 0.0..1.0) {
            let wall = Nanos(seconds * SECOND);
            let waited = Nanos::from_seconds(part * 1e-3 * wall.seconds());
            prop_assert_eq!(lossy(wall, waited, lost, Nanos(stall)), None);
        }

        #[test]
        fn who_never_had_a_processor_says_nothing_of_the_storage(seconds in 1..100_u64, lost in 0.0..1.0, stall in 0.0..1.0) {
            let wall = Nanos(seconds * SECOND);
            let frames = (seconds * 100) as f64;
            #[expect(clippy::cast_sign_loss, reason = "a share of a count")]
            let lost = (lost * frames) as u64 + 1;
            let stall = Nanos::from_seconds(stall * wall.seconds());
            prop_assert!(lossy(wall, wall, lost.min(seconds * 100), stall).is_some());
        }

        #[test]
        fn longer_waiting_never_makes_it_valid(waited in 0..50 * SECOND, more in 0..50 * SECOND, lost in 1..1000_u64, stall in 0..10 * SECOND) {
            let of = |waited| lossy(Nanos(50 * SECOND), Nanos(waited), lost, Nanos(stall)).is_some();
            prop_assert!(!of(waited) || of(waited + more));
        }
    }
}
