//! What a recording came to, as a sample.

use nilometer_acquisition::{Chronicle, Outcome};
use nilometer_model::{Bytes, Ingest, Invalid, Nanos, ReaderTotals, Sample, plan::RecordingRun};

use super::{
    follow::Report,
    judge::{Recording, judge, waited},
    loopback::Went,
    packets::Packets,
};

/// A recording and, if it was of packets, what was sent to it.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) outcome: Outcome,
    pub(super) went: Option<Went>,
}

/// One sample of all recordings of a cell and those who read them.
pub(super) fn sample(cell: &RecordingRun, company: String, made: Vec<Made>, readers: Vec<Report>) -> Sample {
    let mut sample = Sample::new(Nanos(0));
    let recorded = cell.recorded();
    let mut ingest = Ingest {
        count: cell.count,
        goal: cell.goal,
        frame_size: recorded.frame_size(),
        period: Nanos(recorded.period().0 / u64::from(cell.count)),
        duration: cell.duration,
        condition: cell.state(),
        company,
        ..Ingest::default()
    };
    let mut faults = Vec::new();
    let mut packets = None;
    let mut longest = Nanos(0);
    for Made { outcome, went } in made {
        if outcome.hung {
            sample.invalid = Some(Invalid::Hung);
        }
        faults.extend(outcome.faults.iter().cloned());
        longest = longest.max(waited(&outcome));
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
                let failed = totals.failed + failed;
                let hung = report.hung;
                ingest.readers.push(ReaderTotals { failed, hung, ..totals });
                ingest.read.merge(&late);
            }
            None if failed > 0 || report.hung => {
                let hung = report.hung;
                ingest.readers.push(ReaderTotals { copies: true, failed, hung, ..ReaderTotals::default() });
            }
            None => {}
        }
    }
    ingest.limit_stalls();
    sample.bytes = ingest.stored * ingest.frame_size.0;
    sample.operations = ingest.stored;
    if sample.invalid.is_none() {
        let recording =
            Recording { sample: &sample, ingest: &ingest, faults: &faults, packets, waited: longest };
        sample.invalid = judge(&recording);
    }
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
