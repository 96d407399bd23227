//! Whether the figures of a recording may be used: the tool itself must not have caused what they say. Thresholds are
//! explained for people in `docs/invalid.md`.

use nilometer_acquisition::Outcome;
use nilometer_model::{Ingest, Invalid, Nanos, ReaderTotals, Sample, SourceLag};
use nilometer_plan::search::GRID;

use super::packets::Packets;
use crate::starvation::starved_beyond;

/// A recording, and what is to be known of it beside its figures.
#[derive(Debug)]
pub(super) struct Recording<'a> {
    pub(super) sample: &'a Sample,
    pub(super) ingest: &'a Ingest,
    /// Why lanes or sources have no result.
    pub(super) faults: &'a [String],
    pub(super) packets: Option<Packets>,
    /// How long a recorder waited for a processor; of several the one that waited longest.
    pub(super) waited: Nanos,
}

/// A loss that the recorder's own waiting for a processor may explain says nothing about the storage; nor does it that
/// nothing was lost where frames came more slowly than they were due. Where nothing was lost, waiting has changed nothing.
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

/// How long a recorder waited for a processor: what feeds it, and its lanes in the mean, for while one of them waits the
/// others write.
pub(super) fn waited(outcome: &Outcome) -> Nanos {
    let lanes = || outcome.lanes.iter().flatten();
    let all = lanes().fold(Nanos(0), |all, lane| all + lane.run_delay);
    outcome.run_delay.since(all) + Nanos(all.0 / (lanes().count() as u64).max(1))
}

/// What a recording without packets lost.
#[derive(Debug, Clone, Copy)]
struct Loss {
    /// The time in which as many frames come as were lost.
    missing: Nanos,
    /// The longest time for which a frame waited.
    stall: Nanos,
    wall: Nanos,
}

/// Waiting costs at most so many times the frames that come meanwhile: lanes that are behind catch up at so many times the
/// instrument's pace, where storage is worth asking about.
const CATCH_UP: u64 = 2;
/// Waiting that is less than this part of the longest stall changes neither stall nor buffer beyond what they are good for.
const STALL_PART: u64 = 10;
/// On an idle machine too, threads wait for a few microseconds whenever they wake: less than this part of the time.
const NOISE_PART: u64 = 1000;

impl Loss {
    /// How long the recorder may have waited, and the loss is still the storage's. Of
    ///
    /// ```text
    /// missing / 2    more was lost than the waiting can have cost
    /// stall / 10     the storage stalled about as long without it
    /// wall / 1000    what is usual
    /// ```
    ///
    /// each is reason enough. Example: 60 frames of 14 ms are lost in a stall of 2.5 s. Of these 0.84 s the recorder can
    /// have cost at most 0.2 s where it waited for 0.1 s: the storage lost the rest.
    fn allowed(&self) -> Nanos {
        let missing = Nanos(self.missing.0 / CATCH_UP);
        let stall = Nanos(self.stall.0 / STALL_PART);
        missing.max(stall).max(Nanos(self.wall.0 / NOISE_PART))
    }
}

/// Frames come late by more than this share of the recording's time, and by more than this time, in the middle of it, if
/// their source is slower than its pace; a moment without a processor is made up for.
const SLOW_SHARE: f64 = GRID / 4.0;
const SLOW_LEAST: Nanos = Nanos::from_millis(10);

/// Half of the frames were made so late that the pace was not kept.
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

    /// A recording of 10 s whose source takes so much of the period for a frame.
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

    /// A recording of frames every 10 ms that waited for so long, lost so many frames, and stalled for so long.
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

    /// The case that was INVALID whatever the storage did: it stands still for 2.5 s of each 12 s, behind a buffer that
    /// covers 1.5 s of them, on a busy machine.
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
