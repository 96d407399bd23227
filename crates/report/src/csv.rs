//! Every sample as a row, for a spreadsheet, R or pandas: RFC 4180, a header with units, empty where there is nothing.

use std::collections::{BTreeMap, BTreeSet};

use nilometer_model::{Activity, BackgroundDone, Coldness, DeviceUse, FramesBeside, Ingest, Nanos, Sample};
use nilometer_plan::{Measured, RecordingRun, Results};

use super::{
    network_samples::{self, seconds},
    packets,
    render::printable,
};
use nilometer_analysis::{CommonParameters, Study, Value, parameters};

type Column = (&'static str, fn(&Sample) -> String);

const COLUMNS: [Column; 47] = [
    ("bytes", |s| s.bytes.to_string()),
    ("operations", |s| s.operations.to_string()),
    ("wall_s", |s| seconds(s.wall)),
    ("rate_bytes_per_s", |s| s.rate().0.to_string()),
    ("operations_per_s", |s| s.operation_rate().to_string()),
    ("user_s", |s| seconds(s.user)),
    ("system_s", |s| seconds(s.system)),
    ("wait_s", |s| seconds(s.wait())),
    ("client_cpu_s", |s| seconds(s.client)),
    ("machine_cpu_s", |s| seconds(s.machine)),
    ("voluntary_switches", |s| s.switches.voluntary.to_string()),
    ("involuntary_switches", |s| s.switches.involuntary.to_string()),
    ("run_delay_s", |s| seconds(s.run_delay)),
    ("filling_s", |s| seconds(s.filling)),
    ("settling_s", |s| seconds(s.settling)),
    ("started_unix_s", |s| seconds(s.started)),
    ("load_1min", |s| s.load.to_string()),
    ("device_read_bytes", |s| s.device.map_or_else(String::new, |device| device.read.to_string())),
    ("device_written_bytes", |s| s.device.map_or_else(String::new, |device| device.written.to_string())),
    ("device_flushes", |s| {
        s.device.and_then(|device| device.flushes).map_or_else(String::new, |flushes| flushes.to_string())
    }),
    ("device_busy_s", |s| device_use(s, |used| used.busy)),
    ("device_queue_s", |s| device_use(s, |used| used.queue)),
    ("workers_measured", |s| s.workers.len().to_string()),
    ("first_worker_done_s", |s| done(s, Iterator::min)),
    ("last_worker_done_s", |s| done(s, Iterator::max)),
    ("failed_operations", |s| s.errors.values().sum::<u64>().to_string()),
    ("coldness", |s| s.coldness.map_or("", Coldness::name).to_owned()),
    ("invalid_code", |s| s.invalid.as_ref().map_or_else(String::new, |why| why.code().to_owned())),
    ("invalid", |s| s.invalid.as_ref().map_or_else(String::new, ToString::to_string)),
    ("before_busy_cores", |s| cores(&s.before)),
    ("before_disk_bytes", |s| (s.before.disk_read + s.before.disk_written).to_string()),
    ("before_network_bytes", |s| (s.before.received + s.before.sent).to_string()),
    ("during_busy_cores", |s| cores(&s.during)),
    ("during_stolen_s", |s| seconds(s.during.stolen)),
    ("during_switches", |s| s.during.switches.to_string()),
    ("during_disk_bytes", |s| (s.during.disk_read + s.during.disk_written).to_string()),
    ("during_network_bytes", |s| (s.during.received + s.during.sent).to_string()),
    ("during_cpu_pressure_s", |s| s.during.pressure.map_or_else(String::new, |p| seconds(p.cpu))),
    ("during_io_pressure_s", |s| s.during.pressure.map_or_else(String::new, |p| seconds(p.io))),
    ("beside_s", |s| beside(s, |done| seconds(done.wall))),
    ("beside_bytes", |s| beside(s, |done| done.bytes.to_string())),
    ("beside_operations", |s| beside(s, |done| done.operations.to_string())),
    ("beside_latency_sum_s", |s| beside(s, |done| seconds(done.latency_sum))),
    ("beside_errors", |s| beside(s, |done| done.errors.to_string())),
    ("beside_frames_due", |s| frames_beside(s, |frames| frames.due.to_string())),
    ("beside_frames_lost", |s| frames_beside(s, |frames| frames.lost.to_string())),
    ("during_memory_pressure_s", |s| s.during.pressure.map_or_else(String::new, |p| seconds(p.memory))),
];

type IngestColumn = (&'static str, fn(&Ingest) -> String);

/// Empty for all but recordings.
const INGEST_COLUMNS: [IngestColumn; 22] = [
    ("goal", |i| i.goal.name().into()),
    ("count", |i| i.count.to_string()),
    ("frame_bytes", |i| i.frame_size.0.to_string()),
    ("frame_period_s", |i| seconds(i.period)),
    ("frames_came_s", |i| seconds(i.duration)),
    ("frames_due", |i| i.due.to_string()),
    ("frames_stored", |i| i.stored.to_string()),
    ("frames_lost", |i| i.lost.to_string()),
    ("slots", |i| i.slots.to_string()),
    ("slots_most_used", |i| i.slots_high.to_string()),
    ("latest_frame_s", |i| seconds(i.latest())),
    ("longest_stall_s", |i| seconds(i.longest_stall)),
    ("frames_late", |i| i.late.to_string()),
    ("stalls", |i| i.stall_count.to_string()),
    ("stalled_s", |i| seconds(i.stalled)),
    ("slowest_second_bytes", |i| i.slowest_second.map_or_else(String::new, |bytes| bytes.0.to_string())),
    ("company", |i| i.company.clone()),
    ("condition", |i| i.condition.clone()),
    ("load", |i| i.load.clone()),
    ("written_bytes", |i| i.written.0.to_string()),
    ("readers", |i| i.readers.iter().filter(|reader| !reader.after).count().to_string()),
    ("frames_read", |i| i.readers.iter().map(|reader| reader.frames).sum::<u64>().to_string()),
];

/// One row for each sample: its place, the parameters of its cell, its figures. After those of targets come
/// the samples of the network between machines, in which no target takes part.
pub fn csv(study: &Study<'_>) -> String {
    let results = study.results;
    let cells: Vec<CommonParameters> = results.cells.iter().map(parameters).collect();
    let names = parameter_names(&cells);
    let mut header: Vec<String> = ["stage", "cell", "phase", "target", "file_system", "repeat"]
        .map(str::to_owned)
        .into_iter()
        .chain(names.iter().map(|(name, unit)| format!("{name}{unit}")))
        .collect();
    header.extend(COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
    header.push("instrument".into());
    header.extend(INGEST_COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
    header.extend(packets::FIGURES.iter().map(|(name, _)| (*name).to_owned()));
    let of_network = header.len();
    header.extend(network_samples::COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
    header.extend(network_samples::INTERVAL_COLUMNS.map(str::to_owned));
    let mut text = row(&header);
    for measured in &results.samples {
        let mut fields = fields(results, measured, &cells, &names);
        fields.resize(header.len(), String::new());
        text.push_str(&row(&fields));
    }
    for stage in &results.network {
        for sample in &stage.results.samples {
            text.push_str(&row(&network_samples::fields(stage, sample, &header[..of_network])));
            for fields in network_samples::interval_rows(stage, sample, &header) {
                text.push_str(&row(&fields));
            }
        }
    }
    text
}

/// Every parameter of all cells except those of instruments, with its unit. A parameter that is sometimes a
/// word keeps its words.
fn parameter_names(cells: &[CommonParameters]) -> BTreeMap<String, &'static str> {
    let recordings = |cell: &&CommonParameters| cell.contains_key("instrument");
    let known: Vec<&CommonParameters> = cells.iter().filter(|cell| !recordings(cell)).collect();
    let names: BTreeSet<&String> = known.iter().flat_map(|cell| cell.keys()).collect();
    names.into_iter().map(|name| (name.clone(), unit(&known, name))).collect()
}

/// The unit of a parameter, as the end of its column's name.
fn unit(cells: &[&CommonParameters], name: &str) -> &'static str {
    let mut values = cells.iter().filter_map(|cell| cell.get(name)).filter(|v| **v != default());
    match values.next() {
        Some(Value::Size(_)) => "_bytes",
        Some(Value::Time(_)) => "_s",
        Some(Value::Rate(_)) => "_bytes_per_s",
        _ => "",
    }
}

fn default() -> Value {
    Value::Word("default".into())
}

fn fields(
    results: &Results,
    measured: &Measured,
    cells: &[CommonParameters],
    names: &BTreeMap<String, &'static str>,
) -> Vec<String> {
    let (key, sample) = (measured.key, &measured.sample);
    let cell = results.cells.get(key.cell);
    let target = results.targets.get(key.target);
    let mut fields = vec![
        cell.map_or_else(String::new, |cell| cell.stage.clone()),
        cell.map_or_else(String::new, ToString::to_string),
        key.phase.name().to_owned(),
        target.map_or_else(String::new, |target| target.path.clone()),
        target.map_or_else(String::new, |target| target.file_system.clone()),
        key.repeat.to_string(),
    ];
    fields.extend(names.keys().map(|name| {
        let value = cells.get(key.cell).and_then(|cell| cell.get(name));
        value.map_or_else(String::new, plain)
    }));
    fields.extend(COLUMNS.iter().map(|(_, value)| value(sample)));
    let run = results.recording(key).filter(|_| sample.ingest.is_some());
    fields.push(run.map_or_else(String::new, RecordingRun::label));
    let ingest = |value: fn(&Ingest) -> String| sample.ingest.as_ref().map_or_else(String::new, value);
    fields.extend(INGEST_COLUMNS.iter().map(|(_, value)| ingest(*value)));
    let packets = sample.ingest.as_ref().and_then(|ingest| ingest.packets.as_ref());
    let figure =
        |(_, value): &packets::Figure| packets.map_or_else(String::new, |packets| value(packets).to_string());
    fields.extend(packets::FIGURES.iter().map(figure));
    fields
}

/// Without its unit, which stands in the header.
fn plain(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::Size(bytes) => bytes.0.to_string(),
        Value::Time(time) => seconds(*time),
        Value::Rate(rate) => rate.0.to_string(),
        Value::Word(word) => word.clone(),
    }
}

/// A value about the load beside a sample; empty without a load.
fn beside(sample: &Sample, value: impl Fn(&BackgroundDone) -> String) -> String {
    sample.background.as_ref().map_or_else(String::new, value)
}

/// How long the device had something to do; empty where nobody knows.
fn device_use(sample: &Sample, time: fn(DeviceUse) -> Nanos) -> String {
    let used = sample.device.and_then(|device| device.use_of);
    used.map_or_else(String::new, |used| seconds(time(used)))
}

/// A value about the frames of a load; empty without frames.
fn frames_beside(sample: &Sample, value: impl Fn(&FramesBeside) -> String) -> String {
    let frames = sample.background.as_ref().and_then(|done| done.frames);
    frames.as_ref().map_or_else(String::new, value)
}

fn cores(activity: &Activity) -> String {
    let cores = activity.busy.seconds() / activity.over.seconds();
    if cores.is_finite() { cores.to_string() } else { String::new() }
}

/// When one of several workers had done its part.
fn done(sample: &Sample, which: fn(std::vec::IntoIter<Nanos>) -> Option<Nanos>) -> String {
    let times: Vec<Nanos> = sample.workers.iter().map(|worker| worker.last_done).collect();
    which(times.into_iter()).map_or_else(String::new, seconds)
}

/// A line. Quotes a field with a comma or a quote. Removes characters from names that would command a
/// terminal.
pub(super) fn row(fields: &[String]) -> String {
    fields.iter().map(|field| quoted(&printable(field))).collect::<Vec<_>>().join(",") + "\r\n"
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_analysis::made_up::writes;
    use nilometer_model::Phase;
    use nilometer_plan::{Key, TargetEntry};

    #[test]
    fn a_row_a_sample_with_the_parameters_of_its_cell() {
        let cell = writes("a, \"b\"", "64 KiB", 2);
        let target =
            TargetEntry { path: "/data".into(), file_system: "xfs".into(), ..TargetEntry::default() };
        let key = Key { target: 0, cell: 0, repeat: 4, phase: Phase::Write };
        let sample = Sample { bytes: 5000, wall: Nanos(500_000_000), ..Sample::new(Nanos(0)) };
        let samples = vec![Measured { key, sample }];
        let results = Results { cells: vec![cell], targets: vec![target], samples, ..Results::default() };
        let text = csv(&Study::of(&results));
        let lines: Vec<&str> = text.split("\r\n").collect();
        let head = "stage,cell,phase,target,file_system,repeat,access,block_size_bytes,";
        assert!(lines[0].starts_with(head), "{text}");
        assert!(lines[0].contains(",volumes,workers,workload,bytes,operations,wall_s,"), "{text}");
        let start =
            "\"a, \"\"b\"\"\",\"64 MiB by 64 KiB, direct, 2 workers\",write,/data,xfs,4,direct,65536,";
        assert!(lines[1].starts_with(start), "{text}");
        assert!(lines[1].contains(",alone,2,stream,5000,0,0.5,10000,"), "{text}");
        // The only quoted commas are those of the stage, one, and the cell, two.
        assert_eq!(lines[0].split(',').count() + 3, lines[1].split(',').count());
    }

    #[test]
    fn processors_were_busy_on_average_over_the_observation() {
        let activity =
            Activity { over: Nanos(2_000_000_000), busy: Nanos(3_000_000_000), ..Activity::default() };
        assert_eq!(cores(&activity), "1.5");
        assert_eq!(cores(&Activity::default()), "", "nothing was observed");
    }
}
