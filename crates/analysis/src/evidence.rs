//! Evidence from the recordings of a campaign: how far a format packs, its processor cost, and whether a recorder
//! was limited by the processor. Predictions and sizing begin with these.

use nilometer_model::{Goal, Ingest, Instrument, Sample, sustained::step};
use nilometer_plan::{Measured, Onto, RecordedInstrument, Results};

/// A recording onto a target.
#[derive(Debug, Clone)]
pub(crate) struct Evidence<'a> {
    /// Index into [`Results::targets`].
    pub(crate) target: usize,
    pub(crate) sample: &'a Sample,
    pub(crate) ingest: &'a Ingest,
    /// The instrument.
    pub(crate) instrument: RecordedInstrument,
    /// The instrument, with the format of the stored frames.
    pub(crate) stored: Instrument,
}

/// From this number of busy processors on, a recorder counts as limited by the processor.
const BUSY: f64 = 0.85;

/// All valid recordings, in chronological order.
pub(crate) fn evidence(results: &Results) -> Vec<Evidence<'_>> {
    let valid = results.samples.iter().filter(|measured| measured.sample.invalid.is_none());
    valid.filter_map(|measured| of(results, measured)).collect()
}

fn of<'a>(results: &'a Results, measured: &'a Measured) -> Option<Evidence<'a>> {
    let sample = &measured.sample;
    let ingest = sample.ingest.as_ref()?;
    let run = results.recording(measured.key).filter(|run| run.onto == Onto::Target)?;
    let instrument = run.recorded_instrument();
    let stored = run.recorded().into_owned();
    Some(Evidence { target: measured.key.target, sample, ingest, instrument, stored })
}

impl Evidence<'_> {
    /// Returns true for a recording at full speed, alone.
    pub(crate) fn is_limit(&self) -> bool {
        self.ingest.goal == Goal::Limit && self.is_alone()
    }

    /// Returns true if nobody read it, nothing else was recorded, and the target was in its usual state.
    pub(crate) fn is_alone(&self) -> bool {
        let Ingest { readers, company, .. } = self.ingest;
        readers.iter().all(|reader| reader.after) && company.is_empty() && self.ingest.is_undisturbed()
    }

    /// Returns true if frames of this instrument would be written in the same form and with the same data.
    /// Packing is then as effective, and costs as much.
    pub(crate) fn packs_like(&self, instrument: &Instrument) -> bool {
        let stored = &self.stored;
        let wanted = instrument.received();
        let (one, other) = (&stored.data, &wanted.data);
        stored.recording.format == wanted.recording.format
            && stored.pixel == wanted.pixel
            && one.kind == other.kind
            && one.intensity == other.intensity
            && one.compressibility == other.compressibility
    }

    /// Returns true if it also writes files of the same kind: a recorder needs as much processor time per byte.
    pub(crate) fn is_like(&self, instrument: &Instrument) -> bool {
        self.packs_like(instrument) && self.stored.recording.storing == instrument.recording.storing
    }

    /// Returns true if the recorder packed the frames.
    pub(crate) fn packs(&self) -> bool {
        self.stored.recording.packs()
    }

    /// The factor by which written frames were smaller than received ones.
    pub(crate) fn packing(&self) -> Option<f64> {
        let Ingest { stored, frame_size, written, .. } = self.ingest;
        (*stored > 0 && written.0 > 0).then(|| (stored * frame_size.0) as f64 / written.0 as f64)
    }

    /// Processors kept busy by each recorder.
    pub(crate) fn cores(&self) -> f64 {
        let busy = (self.sample.user + self.sample.system).seconds();
        busy / self.sample.wall.seconds().max(1e-9) / f64::from(self.ingest.count.max(1))
    }

    /// Processor seconds per GB of frames, including the file system's client; `None` if nothing was stored.
    pub(crate) fn cost(&self) -> Option<f64> {
        let Sample { user, system, client, bytes, .. } = self.sample;
        (*bytes > 0).then(|| (*user + *system + *client).seconds() / (*bytes as f64 * 1e-9))
    }

    /// Returns true if the result does not show the storage. A thread of the recorder never waited for it, the
    /// recorder waited for a processor, or packets came over a network.
    pub(crate) fn is_bound_elsewhere(&self) -> bool {
        self.cores() >= BUSY || self.sample.recorder_wait().is_long() || self.ingest.packets.is_some()
    }
}

/// The factor by which these recordings packed frames of this instrument; `None` if none was like it.
pub(crate) fn measured_packing(evidence: &[Evidence<'_>], instrument: &Instrument) -> Option<f64> {
    let alike = evidence.iter().filter(|of| of.packs_like(instrument));
    let ratios = alike.filter_map(Evidence::packing);
    ratios.min_by(f64::total_cmp)
}

/// The largest part of a target's cache that a recording filled, in written bytes; `None` if no recording saw it
/// full.
pub(crate) fn largest_cache(evidence: &[Evidence<'_>], target: usize) -> Option<u64> {
    let limits = evidence.iter().filter(|of| of.target == target && of.ingest.goal == Goal::Limit);
    #[expect(clippy::cast_sign_loss, reason = "a volume is not negative")]
    let volume = |of: &Evidence<'_>| {
        let step = step(&of.sample.series)?;
        Some((step.volume.0 as f64 / of.packing().unwrap_or(1.0)) as u64)
    };
    limits.filter_map(volume).max()
}
