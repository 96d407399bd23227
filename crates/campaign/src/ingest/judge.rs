//! Whether the figures of a recording may be used: the tool itself must not have caused what they say.

use nilometer_model::{Ingest, Invalid, Nanos, ReaderTotals, Sample, search::GRID};

use super::packets::Packets;

/// A loss while the recorder itself waited for a processor says nothing about the storage; nor does it that nothing was lost
/// where frames came more slowly than they were due.
pub(super) fn judge(
    sample: &Sample,
    ingest: &Ingest,
    faults: &[String],
    packets: Option<Packets>,
) -> Option<Invalid> {
    if !faults.is_empty() {
        return Some(Invalid::Refused(faults.join("; ")));
    }
    let comparable = |after| packets.is_none_or(|packets| packets.are_in_place(after));
    let compared = ingest.readers.iter().filter(|reader| comparable(reader.after));
    let bad = |reader: &ReaderTotals| reader.wrong + if reader.after { reader.failed } else { 0 };
    if compared.map(bad).sum::<u64>() > 0 {
        return Some(Invalid::Wrong);
    }
    if let Some(packets) = packets {
        let lost = packets.totals.lost() > 0;
        return packets.judge(sample).or_else(|| (!lost && is_slow(sample, ingest)).then_some(Invalid::Slow));
    }
    if ingest.lost > 0 {
        return (sample.run_delay.0 > ingest.longest_stall.0 / 2).then_some(Invalid::Starved);
    }
    is_slow(sample, ingest).then_some(Invalid::Slow)
}

/// Frames come late by more than this share of the recording's time, and by more than this time, in the middle of it, if
/// their source is slower than its pace; a moment without a processor is made up for.
const SLOW_SHARE: f64 = GRID / 4.0;
const SLOW_LEAST: Nanos = Nanos::from_millis(10);

/// Half of the frames were made so late that the pace was not kept.
fn is_slow(sample: &Sample, ingest: &Ingest) -> bool {
    let spent = Nanos(ingest.due.saturating_mul(ingest.period.0));
    let late = Nanos(sample.lateness.quantile(0.5));
    late > SLOW_LEAST && late.seconds() > SLOW_SHARE * spent.seconds()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recording of 10 s whose source takes so much of the period for a frame.
    fn made(share: f64) -> (Sample, Ingest) {
        let (mut sample, period) = (Sample::new(Nanos(0)), Nanos::from_millis(10));
        let ingest = Ingest { due: 1000, stored: 1000, period, ..Ingest::default() };
        for number in 0..1000 {
            sample.lateness.add(Nanos::from_seconds(f64::from(number) * period.seconds() * (share - 1.0)).0);
        }
        (sample, ingest)
    }

    #[test]
    fn a_pace_that_the_source_did_not_keep_was_not_tried() {
        for (share, expected) in
            [(0.5, None), (1.02, None), (1.05, Some(Invalid::Slow)), (3.0, Some(Invalid::Slow))]
        {
            let (sample, ingest) = made(share);
            assert_eq!(judge(&sample, &ingest, &[], None), expected, "{share}");
        }
        let (mut sample, ingest) = made(0.5);
        (0..400).for_each(|_| sample.lateness.add(3_000_000_000));
        assert_eq!(judge(&sample, &ingest, &[], None), None, "the source was late for a while");
        let (sample, ingest) = made(3.0);
        let lost = Ingest { lost: 1, longest_stall: Nanos(1), ..ingest };
        assert_eq!(judge(&sample, &lost, &[], None), None, "it lost even so");
    }

    #[test]
    fn frames_that_are_kept_must_be_readable_afterwards() {
        let (sample, ingest) = made(0.5);
        for (after, failed, expected) in [(true, 0, None), (true, 1, Some(Invalid::Wrong)), (false, 1, None)]
        {
            let readers = vec![ReaderTotals { after, failed, ..ReaderTotals::default() }];
            assert_eq!(
                judge(&sample, &Ingest { readers, ..ingest.clone() }, &[], None),
                expected,
                "{after} {failed}"
            );
        }
    }
}
