//! Turns the result of a recording into a sample.

use nilometer_acquisition::Outcome;
use nilometer_model::{
    ByteRate, Bytes, Histogram, Ingest, Invalid, Nanos, ReaderTotals, Sample, Seed, SentPackets,
};
use nilometer_plan::RecordingRun;
use nilometer_ring::Chronicle;
use nilometer_storage::process::Usage;

use super::{
    Job, Member, Recorded,
    follow::Report,
    judge::{Recording, judge, waited},
    over_network::Went,
    packets::Packets,
    setup::PacketsIn,
};

/// A recording and, if it was of packets, the packets sent to it.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) outcome: Outcome,
    pub(super) went: Option<Went>,
}

/// Makes one sample from all recordings of a cell and their readers.
pub(super) fn sample(cell: &RecordingRun, company: String, made: Vec<Made>, readers: Vec<Report>) -> Sample {
    let mut sample = Sample::new(Nanos(0));
    let recorded = cell.recorded();
    let mut ingest = Ingest {
        count: cell.count,
        goal: cell.goal,
        frame_size: recorded.frame_size(),
        period: Nanos(recorded.period().0 / u64::from(cell.count)),
        duration: cell.duration,
        condition: cell.condition_name(),
        load: cell.load_words(),
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
    let limit = cell.readers.rate.map(ByteRate::in_a_second);
    let unread = readers.iter().filter(|report| report.after).filter_map(|report| report.fault.as_ref());
    faults.extend(unread.map(|why| format!("can't be read back: {why}")));
    for report in readers {
        add_reader(&mut ingest, report, limit);
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

/// Adds a reader or a copy, of which a failure is not the recording's fault. `limit` is the most bytes a second that
/// it should read.
fn add_reader(ingest: &mut Ingest, report: Report, limit: Option<Bytes>) {
    let hung = report.hung;
    let failed = u64::from(report.fault.is_some());
    match report.reader {
        Some((totals, late)) => {
            let failed = totals.failed + failed;
            let limit_per_second = limit.filter(|_| !totals.after);
            ingest.readers.push(ReaderTotals { failed, hung, limit_per_second, ..totals });
            ingest.read.merge(&late);
        }
        None if failed > 0 || hung => {
            let after = report.after;
            let limit_per_second = limit.filter(|_| !after);
            let none = ReaderTotals::default();
            ingest.readers.push(ReaderTotals {
                copies: !after,
                after,
                failed,
                hung,
                limit_per_second,
                ..none
            });
        }
        None => {}
    }
}

fn add(sample: &mut Sample, ingest: &mut Ingest, outcome: Outcome) {
    ingest.due += outcome.due;
    ingest.stored += outcome.stored();
    ingest.lost += outcome.books.lost();
    ingest.slots = ingest.slots.max(outcome.books.slots as u64);
    ingest.slots_high = ingest.slots_high.max(outcome.books.high as u64);
    sample.run_delay += waited(&outcome);
    for lane in outcome.lanes.into_iter().flatten() {
        ingest.written.0 += lane.written;
        ingest.durable.merge(&lane.totals.durable);
        sample.latency.merge(&lane.totals.lateness);
        if let Some(errno) = lane.totals.fault {
            *sample.errors.entry(errno.0).or_default() += 1;
        }
    }
    sample.wall = sample.wall.max(outcome.wall);
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

/// Makes a sample for each cell. Returns `None` if the campaign ended first and nothing hangs.
pub(super) fn samples(job: &Job<'_>, recorded: Recorded, ours: Usage) -> Option<Vec<Sample>> {
    let Recorded { members, readers, read_back, hung, cut, sending } = recorded;
    let hangs = |member: &Member| member.outcome.as_ref().is_none_or(|outcome| outcome.hung);
    if cut && !hung && !members.iter().any(hangs) {
        return None;
    }
    let is_alone = job.cells.iter().all(|(cell, _)| cell.load_words().is_empty()) && job.cells.len() == 1;
    let alone = is_alone.then(|| by_recorders(&members, &readers, ours.since(sending)));
    let stored = |member: &Member| member.outcome.as_ref().map_or(0, Outcome::stored);
    let followed: Vec<(usize, u64)> = members.iter().map(|member| (member.cell, stored(member))).collect();
    let mut made: Vec<Vec<Made>> = job.cells.iter().map(|_| Vec::new()).collect();
    for Member { cell, outcome, went, .. } in members {
        made[cell].extend(outcome.map(|outcome| Made { outcome, went }));
    }
    let mut reports: Vec<Vec<Report>> = job.cells.iter().map(|_| Vec::new()).collect();
    for mut report in readers.into_iter().chain(read_back) {
        let (cell, stored) = followed[report.member];
        count_unread(&mut report, stored);
        // The lateness of reads matters only for readers that read during the recording.
        if let Some((_, late)) = report.reader.as_mut().filter(|(totals, _)| totals.after) {
            *late = Histogram::default();
        }
        reports[cell].push(report);
    }
    let company = company(job.cells);
    let samples = job.cells.iter().zip(made).zip(reports).map(|(((cell, _), made), reports)| {
        let usage = alone.unwrap_or_else(|| by_threads(&made));
        let mut sample = sample(cell, company.clone(), made, reports);
        (sample.user, sample.system, sample.switches) = (usage.user, usage.system, usage.switches);
        if hung {
            sample.invalid = Some(Invalid::Hung);
        }
        sample
    });
    Some(samples.collect())
}

/// Counts the stored frames that a live reader had not read when it was stopped, some time after the recording.
fn count_unread(report: &mut Report, stored: u64) {
    let live = |totals: &ReaderTotals| !totals.after && !totals.copies;
    if let Some((totals, _)) = report.reader.as_mut().filter(|(totals, _)| live(totals)) {
        let reached = totals.frames + totals.missed + totals.wrong + totals.failed;
        totals.missed += stored.saturating_sub(reached);
    }
}

/// Makes a sample of a recording that no campaign made: one in virtual time.
pub fn sample_of(cell: &RecordingRun, outcome: Outcome, readers: Vec<ReaderTotals>) -> Sample {
    let mut sample = sample(cell, String::new(), vec![Made { outcome, went: None }], Vec::new());
    if let Some(ingest) = &mut sample.ingest {
        ingest.readers = readers;
    }
    sample
}

/// Makes a sample of recordings that are no cell of a campaign but a load.
pub(crate) fn sample_of_all(cell: &RecordingRun, outcomes: Vec<Outcome>) -> Sample {
    let made = outcomes.into_iter().map(|outcome| Made { outcome, went: None }).collect();
    sample(cell, String::new(), made, Vec::new())
}

/// The names of all recordings that run at the same time, if there is more than one.
pub(super) fn company(cells: &[(RecordingRun, Seed)]) -> String {
    let all: Vec<String> = cells.iter().map(|(cell, _)| cell.who()).collect();
    if all.len() > 1 { all.join(" + ") } else { String::new() }
}

/// The resources that this process used, with the kernel's workers for `io_uring`, but without the simulated
/// instruments and the readers.
fn by_recorders(members: &[Member], readers: &[Report], ours: Usage) -> Usage {
    let sources = members.iter().filter_map(instrument);
    sources.chain(readers.iter().map(|report| report.usage)).fold(ours, Usage::since)
}

/// The resources that the instrument used in this process; none if another machine sends.
fn instrument(member: &Member) -> Option<Usage> {
    match (&member.packets, &member.went) {
        (Some(PacketsIn { sends: None, .. }), _) => None,
        (_, Some(went)) => Some(usage_of(&went.sent)),
        (_, None) => Some(member.outcome.as_ref()?.source),
    }
}

/// The resources of the threads of the lanes, and of those that receive packets.
fn by_threads(made: &[Made]) -> Usage {
    let lanes = made.iter().flat_map(|made| made.outcome.lanes.iter().flatten()).map(|lane| lane.usage);
    let receive = made.iter().filter(|made| made.went.is_some()).map(|made| made.outcome.source);
    lanes.chain(receive).fold(Usage::default(), Usage::and)
}

/// The resources that sending used.
pub(super) fn usage_of(sent: &SentPackets) -> Usage {
    Usage { user: sent.user, system: sent.system, switches: sent.switches, ..Usage::default() }
}
