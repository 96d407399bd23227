//! What a recording came to, as a sample.

use nilometer_acquisition::{Chronicle, Outcome};
use nilometer_model::{Bytes, Ingest, Invalid, Nanos, ReaderTotals, Sample, plan::IngestCell, search::GRID};

use super::{follow::Report, loopback::Went, packets::Packets};

/// A recording and, if it was of packets, what was sent to it.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) outcome: Outcome,
    pub(super) went: Option<Went>,
}

/// Of more stalls than this the longest are kept.
const STALLS_MOST: usize = 200;

/// One sample of all recordings of a cell and those who read them.
pub(super) fn sample(cell: &IngestCell, company: String, made: Vec<Made>, readers: Vec<Report>) -> Sample {
    let (mut sample, recorded) = (Sample::new(Nanos(0)), cell.recorded());
    let mut ingest = Ingest {
        instrument: cell.instrument.name.clone(),
        count: cell.count,
        goal: cell.goal,
        frame_size: recorded.frame_size(),
        period: Nanos(recorded.period().0 / u64::from(cell.count)),
        duration: cell.duration,
        condition: cell.condition.as_ref().map(|condition| condition.name.clone()).unwrap_or_default(),
        company,
        ..Ingest::default()
    };
    let (mut faults, mut packets) = (Vec::new(), None);
    for Made { outcome, went } in made {
        if outcome.hung {
            sample.invalid = Some(Invalid::Hung);
        }
        faults.extend(outcome.faults.iter().cloned());
        match &went {
            Some(went) => {
                packets.get_or_insert_with(Packets::default).add(&mut sample, &ingest, &outcome, went);
            }
            None => sample.filling += outcome.source.total(),
        }
        add(&mut sample, &mut ingest, outcome);
    }
    ingest.packets = packets.map(|packets| packets.totals);
    // A ring for each stream.
    ingest.slots *= cell.rings();
    ingest.slots_high *= cell.rings();
    for report in readers {
        // What fails at a reader or a copy is not the recording's fault.
        let failed = u64::from(report.fault.is_some());
        match report.reader {
            Some((totals, late)) => {
                ingest.readers.push(ReaderTotals { failed: totals.failed + failed, ..totals });
                ingest.read.merge(&late);
            }
            None if failed > 0 || report.hung => {
                let hung = report.hung;
                ingest.readers.push(ReaderTotals { copies: true, failed, hung, ..ReaderTotals::default() });
            }
            None => {}
        }
    }
    ingest.stalls.sort_by_key(|stall| std::cmp::Reverse(stall.length));
    ingest.stalls.truncate(STALLS_MOST);
    ingest.stalls.sort_by_key(|stall| stall.at);
    sample.bytes = ingest.stored * ingest.frame_size.0;
    sample.operations = ingest.stored;
    sample.invalid = sample.invalid.take().or_else(|| judge(&sample, &ingest, &faults, packets));
    sample.ingest = Some(ingest);
    sample
}

fn add(sample: &mut Sample, ingest: &mut Ingest, outcome: Outcome) {
    ingest.due += outcome.due;
    ingest.stored += outcome.stored();
    ingest.lost += outcome.books.lost();
    ingest.slots = ingest.slots.max(outcome.books.slots as u64);
    ingest.slots_high = ingest.slots_high.max(outcome.books.high as u64);
    for lane in outcome.lanes.into_iter().flatten() {
        ingest.written.0 += lane.written;
        ingest.durable.merge(&lane.totals.durable);
        sample.latency.merge(&lane.totals.lateness);
        if let Some(errno) = lane.totals.fault {
            *sample.errors.entry(errno.0).or_default() += 1;
        }
    }
    sample.wall = sample.wall.max(outcome.wall);
    sample.run_delay += outcome.run_delay;
    sample.lateness.merge(&outcome.lateness);
    add_chronicle(sample, ingest, outcome.chronicle);
}

fn add_chronicle(sample: &mut Sample, ingest: &mut Ingest, chronicle: Chronicle) {
    sample.series.merge(chronicle.work);
    ingest.allowance = chronicle.allowance;
    ingest.late += chronicle.late;
    ingest.stalls.extend(chronicle.stalls);
    ingest.stall_count += chronicle.stalled.0;
    ingest.stalled += chronicle.stalled.1;
    ingest.longest_stall = ingest.longest_stall.max(chronicle.longest_stall);
    ingest.readable.merge(&chronicle.readable);
    ingest.levels.merge(chronicle.levels);
    if let Some(slowest) = chronicle.slowest {
        let sum = ingest.slowest_second.map_or(0, |bytes| bytes.0) + slowest;
        ingest.slowest_second = Some(Bytes(sum));
    }
}

/// A loss while the recorder itself waited for a processor says nothing about the storage; nor does it that nothing was lost
/// where frames came more slowly than they were due.
fn judge(sample: &Sample, ingest: &Ingest, faults: &[String], packets: Option<Packets>) -> Option<Invalid> {
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
