//! A recording from a network by several processes. Each records the packets of its ports, a stream or
//! modules of each frame, as a recording of its own.

use std::hash::{BuildHasher, Hasher, RandomState};

use anyhow::anyhow;
use nilometer_acquisition::Outcome as Recorded;
use nilometer_cluster::{Cluster, SharedRecording, StoredPart};
use nilometer_hdf5_recording::{MasterError, ModulesPart};
use nilometer_intake::assembly::PacketTally;
use nilometer_model::{
    ByteRate, Bytes, Format, Seed,
    packets::{PacketPartKind, PacketShare},
};
use nilometer_service::{PreparedRecording, RecordingSettings};
use nilometer_storage::target::run_id;

use super::series_parts::{frames_of_all, over_series, verify_all};
use crate::{
    Failure, Outcome, tell,
    together::{Together, machines_of, unseen},
    version,
};

/// The most frames by which a part may begin later than the first one.
const APART_MAX: u64 = 1 << 24;

/// The part of the recording that belongs to this process.
pub(super) fn share_of(cluster: &dyn Cluster) -> Result<PacketShare, Failure> {
    let number = u16::try_from(cluster.rank());
    let of = u16::try_from(cluster.size());
    match (number, of) {
        (Ok(number), Ok(of)) => Ok(PacketShare { number, of }),
        _ => Err(Failure::Input(anyhow!(
            "{} processes: start fewer, no instrument has that number of streams or modules",
            cluster.size()
        ))),
    }
}

/// The recording in the words of this process's command line; empty if it can't be recorded.
pub(super) fn shared(settings: Option<&RecordingSettings>) -> SharedRecording {
    let id = run_id().0;
    let wishes = settings.map(RecordingSettings::wishes);
    let named = wishes.and_then(|wishes| wishes.name.clone());
    let what = settings.and_then(RecordingSettings::instrument_name).unwrap_or("recording");
    SharedRecording {
        version: version::SHORT.into(),
        id,
        name: named.unwrap_or_else(|| format!("{what}-{id:016x}")),
        is_series: settings.is_some_and(RecordingSettings::is_series),
        // The number of the recording is in its journals, which others may read.
        key: RandomState::new().build_hasher().finish(),
        // The process reports a recording that it can't make before it compares.
        instrument: settings.map_or_else(String::new, RecordingSettings::asked_of_all),
        // `None` records without an end.
        duration: wishes.and_then(|wishes| wishes.duration).unwrap_or_default(),
        frames: wishes.and_then(|wishes| wishes.packets),
        seed: Seed(0),
    }
}

/// The settings of one of several processes. Its directories are its own, with the name of its part: readers
/// of chunks know no dots.
pub(super) fn own_settings(
    settings: RecordingSettings,
    together: &Together<'_>,
) -> Result<RecordingSettings, Failure> {
    if !together.is_shared() {
        return Ok(settings);
    }
    if settings.is_series_share() {
        return Ok(settings);
    }
    let named = settings.named(format!("{}_{}", together.shared.name, together.rank()));
    Ok(named?)
}

/// The results of this process.
pub(super) struct OwnStored<'a> {
    pub(super) settings: &'a RecordingSettings,
    pub(super) prepared: &'a PreparedRecording,
    pub(super) outcome: &'a Recorded,
    /// The results, one line each.
    pub(super) text: String,
    /// The faults.
    pub(super) faults: Vec<String>,
}

impl OwnStored<'_> {
    /// Prints the results, or sends them to process 0, which prints those of all processes.
    pub(super) fn told(self, together: &Together<'_>) -> Outcome {
        if !together.is_shared() {
            tell::result(self.text);
            return went_well(&self.faults);
        }
        let OwnStored { settings, prepared, .. } = self;
        let parts = together.stored(self.part(together));
        if parts.is_empty() {
            return Ok(());
        }
        let mut faults = Vec::new();
        let is_series = together.shared.is_series;
        let received = if is_series {
            let (line, fault) = frames_of_all(&parts);
            faults.extend(fault);
            line
        } else {
            let packets: u64 = parts.iter().map(|part| part.delivered).sum();
            format!("in stream   {packets} packets of all parts")
        };
        tell::result(told_of_all(&together.shared.name, received, &parts));
        let is_hdf5 = prepared.instrument.recording.format == Format::Hdf5;
        if is_hdf5 && matches!(settings.part(), PacketPartKind::Modules { .. }) {
            match over_modules(settings, prepared, &together.shared.name, &parts) {
                Ok(text) => tell::result_line(format_args!("\nall frames  {text}")),
                Err(error) => faults.push(format!("can't write the file over all modules: {error}")),
            }
        }
        if is_series {
            match over_series(prepared, &parts, settings.patience()) {
                Ok(text) => tell::result_line(format_args!("\nall frames  {text}")),
                Err(error) => {
                    faults.push(format!("can't write the file over those of the recording: {error}"));
                }
            }
            tell::result_to_copy(verify_all(&parts));
        }
        for (rank, part) in parts.iter().enumerate().filter(|(_, part)| !part.faults.is_empty()) {
            faults.push(format!("process {rank} on {}: {}", part.node, part.faults.join("; ")));
        }
        went_well(&faults)
    }

    fn part(self, together: &Together<'_>) -> StoredPart {
        let OwnStored { settings, prepared, outcome, text, faults } = self;
        let longest = outcome.lanes.iter().flatten().map(|lane| lane.totals.longest).max();
        let tally = outcome.traffic.as_ref().map(|traffic| &traffic.tally);
        let is_counted =
            |tally: &&PacketTally| tally.restarts == 0 && tally.jumps == 0 && tally.left_out == 0;
        let series = outcome.series.as_ref();
        let heading = match series {
            Some(_) => format!("images from {}", prepared.from),
            None => format!("{} at {}", settings.part(), prepared.from),
        };
        let came = series.map(|series| series.tally.frames).or(tally.map(|tally| tally.placed));
        let lines = std::iter::once(heading).chain(text.lines().map(Into::into));
        StoredPart {
            node: together.node(),
            due: series.map_or(outcome.due, |series| series.of_whole(outcome.due)),
            delivered: came.unwrap_or(0),
            recording: prepared.id(),
            first_frame: tally.filter(is_counted).and_then(|tally| tally.first_frame),
            stored: outcome.stored(),
            written: outcome.written(),
            wall: outcome.wall,
            longest: longest.unwrap_or_default(),
            lost: None,
            lines: lines.collect(),
            faults,
            hung: outcome.hung,
            directories: prepared.targets.iter().map(|target| target.path().to_owned()).collect(),
        }
    }
}

fn went_well(faults: &[String]) -> Outcome {
    if faults.is_empty() { Ok(()) } else { Err(Failure::Run(anyhow!(faults.join("; ")))) }
}

/// The file over the recordings of all modules, or the reason why there is none.
fn over_modules(
    settings: &RecordingSettings,
    prepared: &PreparedRecording,
    name: &str,
    parts: &[StoredPart],
) -> Result<String, MasterError> {
    let directories: Vec<_> = parts.iter().flat_map(|part| part.directories.iter().cloned()).collect();
    if let Some(unseen) = unseen(&directories) {
        return Ok(format!("no file over all: {} is not seen here", unseen.display()));
    }
    let Some(begins) = first_frames(parts, prepared.number_bits) else {
        return Ok("no file over all: frames of different modules can't be matched, since a part has none, left some \
                   out, or restarted its numbers"
            .into());
    };
    let extent = prepared.instrument.shape.first().copied().unwrap_or(0);
    let modules = (0..).zip(parts.iter().zip(begins)).map(|(number, (part, begins))| ModulesPart {
        directories: part.directories.clone(),
        recording: part.recording,
        begins,
        at: number * extent,
        extent,
    });
    match prepared.put_master_of_modules(name, modules.collect(), settings.patience()) {
        Ok(Some(path)) => Ok(path.display().to_string()),
        Ok(None) => Ok("no file over all: frames in several datasets, or with --keep, have none".into()),
        Err(foreign @ MasterError::Foreign(_)) => Ok(format!("no file over all: {foreign}")),
        Err(error) => Err(error),
    }
}

/// The distance from the earliest first frame of all parts to the first frame of each. Frame numbers have
/// `bits` bits and wrap. `None` if a part has no first frame, or parts begin too far apart.
fn first_frames(parts: &[StoredPart], bits: u32) -> Option<Vec<u64>> {
    let firsts: Vec<u64> = parts.iter().map(|part| part.first_frame).collect::<Option<_>>()?;
    let shift = u64::BITS - bits.clamp(1, u64::BITS);
    let from = *firsts.first()?;
    // The shorter way round.
    let ahead = |first: &u64| (first.wrapping_sub(from) << shift).cast_signed() >> shift;
    let least = firsts.iter().map(ahead).min()?;
    let begins: Vec<u64> = firsts.iter().map(|first| ahead(first).abs_diff(least)).collect();
    let is_near = |begins: &u64| *begins < APART_MAX.min(1 << (bits.clamp(3, u64::BITS) - 2));
    begins.iter().all(is_near).then_some(begins)
}

/// The results of all, and of each part.
fn told_of_all(name: &str, received: String, parts: &[StoredPart]) -> String {
    let written: u64 = parts.iter().map(|part| part.written).sum();
    let wall = parts.iter().map(|part| part.wall).max().unwrap_or_default();
    let mut lines = vec![
        format!("recording   {name}, by {} processes on {}", parts.len(), machines_of(parts)),
        received,
        format!("written     {}, {}", Bytes(written), ByteRate::of(written, wall)),
    ];
    for (rank, part) in parts.iter().enumerate() {
        let mut told = part.lines.iter();
        let heading = told.next().map_or("", String::as_str);
        lines.push(format!("\nprocess {rank} on {}: {heading}", part.node));
        lines.extend(told.map(|line| if line.is_empty() { String::new() } else { format!("  {line}") }));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins(firsts: &[Option<u64>], bits: u32) -> Option<Vec<u64>> {
        let part =
            |first_frame: &Option<u64>| StoredPart { first_frame: *first_frame, ..StoredPart::default() };
        first_frames(&firsts.iter().map(part).collect::<Vec<_>>(), bits)
    }

    #[test]
    fn parts_are_put_together_by_their_first_frames_also_where_numbers_begin_anew() {
        assert_eq!(begins(&[Some(40), Some(42), Some(39)], 64), Some(vec![1, 3, 0]));
        for bits in [16, 24, 32, 64] {
            let last = u64::MAX >> (64 - bits);
            assert_eq!(begins(&[Some(1), Some(last), Some(0)], bits), Some(vec![2, 0, 1]), "{bits} bits");
        }
        assert_eq!(begins(&[Some(1), None], 64), None, "nothing came to one");
        assert_eq!(begins(&[Some(0), Some(1 << 15)], 16), None, "either may be the earlier one");
        assert_eq!(begins(&[Some(0), Some(1 << 40)], 64), None, "these are of different runs");
    }
}
