//! What a recording came to, as a sample.

use nilometer_acquisition::{Chronicle, Outcome};
use nilometer_model::{Bytes, Ingest, Invalid, Nanos, Sample, plan::IngestCell};

use super::follow::Report;

/// Of more stalls than this the longest are kept.
const STALLS_MOST: usize = 200;

/// One sample of all recordings of a cell and those who read them.
pub(super) fn sample(
    cell: &IngestCell,
    company: String,
    outcomes: Vec<Outcome>,
    readers: Vec<Report>,
) -> Sample {
    let mut sample = Sample::new(Nanos(0));
    let mut ingest = Ingest {
        instrument: cell.instrument.name.clone(),
        count: cell.count,
        goal: cell.goal,
        frame_size: cell.instrument.frame_size(),
        period: Nanos(cell.instrument.period().0 / u64::from(cell.count)),
        duration: cell.duration,
        condition: cell.condition.as_ref().map(|condition| condition.name.clone()).unwrap_or_default(),
        company,
        ..Ingest::default()
    };
    let mut faults = Vec::new();
    for outcome in outcomes {
        if outcome.hung {
            sample.invalid = Some(Invalid::Hung);
        }
        faults.extend(outcome.faults.iter().cloned());
        add(&mut sample, &mut ingest, outcome);
    }
    for report in readers {
        faults.extend(report.fault);
        if let Some((totals, late)) = report.reader {
            ingest.readers.push(totals);
            ingest.read.merge(&late);
        }
    }
    ingest.stalls.sort_by_key(|stall| std::cmp::Reverse(stall.length));
    ingest.stalls.truncate(STALLS_MOST);
    ingest.stalls.sort_by_key(|stall| stall.at);
    sample.bytes = ingest.stored * ingest.frame_size.0;
    sample.operations = ingest.stored;
    sample.invalid = sample.invalid.take().or_else(|| judge(&sample, &ingest, &faults));
    sample.ingest = Some(ingest);
    sample
}

fn add(sample: &mut Sample, ingest: &mut Ingest, outcome: Outcome) {
    ingest.due += outcome.due;
    ingest.lost += outcome.books.lost();
    ingest.slots = ingest.slots.max(outcome.books.slots as u64);
    ingest.slots_high = ingest.slots_high.max(outcome.books.high as u64);
    for lane in outcome.lanes.into_iter().flatten() {
        ingest.stored += lane.totals.stored;
        ingest.written.0 += lane.written;
        ingest.longest_stall = ingest.longest_stall.max(lane.totals.longest);
        ingest.durable.merge(&lane.totals.durable);
        sample.latency.merge(&lane.totals.lateness);
        if let Some(errno) = lane.totals.fault {
            *sample.errors.entry(errno.0).or_default() += 1;
        }
    }
    sample.wall = sample.wall.max(outcome.wall);
    sample.filling += outcome.source.total();
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
    ingest.readable.merge(&chronicle.readable);
    ingest.levels.merge(chronicle.levels);
    if let Some(slowest) = chronicle.slowest {
        let sum = ingest.slowest_second.map_or(0, |bytes| bytes.0) + slowest;
        ingest.slowest_second = Some(Bytes(sum));
    }
}

/// A loss while the recorder itself waited for a processor says nothing about the storage.
fn judge(sample: &Sample, ingest: &Ingest, faults: &[String]) -> Option<Invalid> {
    if !faults.is_empty() {
        return Some(Invalid::Refused(faults.join("; ")));
    }
    let wrong: u64 = ingest.readers.iter().map(|reader| reader.wrong).sum();
    if wrong > 0 {
        return Some(Invalid::Wrong);
    }
    (ingest.lost > 0 && sample.run_delay.0 > ingest.longest_stall.0 / 2).then_some(Invalid::Starved)
}
