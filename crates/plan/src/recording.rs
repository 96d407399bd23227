//! A stage that is a recording: an instrument over a matrix of ways to deliver and to store frames.

mod matrix;

use nilometer_model::{
    Bytes, ChunkShape, Format, FrameCompression, Frequency, Goal, Instrument, Nanos, Readers, ReadingWay,
    Storing, Subnet,
};
use serde::{Deserialize, Serialize};

use super::{Onto, RecordingRun, Route, Sweep, USUAL_KEEP, parameters::scaled_count, plan_table::plan_table};

plan_table! {
    /// Records an instrument.
    #[derive(Debug, Clone)]
    IngestSweep {
        /// The instrument: a name of the catalogue, or the path of a .toml file.
        instrument: String,
        /// Frames a second of each stream, instead of the instrument's.
        rate: Option<Sweep<Frequency>>,
        /// Streams in step, instead of the instrument's.
        streams: Option<Sweep<u64>>,
        /// Pixels of a frame, slowest dimension first, instead of the instrument's. One shape only, no list
        /// of shapes.
        shape: Option<Vec<u64>>,
        /// Make frames that bitshuffle with LZ4 compresses by this factor, instead of the instrument's.
        compressibility: Option<Sweep<f64>>,
        /// The format of frames, instead of the instrument's.
        format: Option<Sweep<Format>>,
        /// The files that frames go into, instead of the instrument's. With format = "hdf5", "shared" is one
        /// dataset that the writers of all processes fill.
        storing: Option<Sweep<Storing>>,
        /// Frames of a file if there are many files, instead of the instrument's.
        frames_per_file: Option<Sweep<u64>>,
        /// Record packets in chunks of this size, as VLBI recorders do, scattered over all targets that record
        /// together. Default: 256 MiB with several targets, else one growing file.
        chunk_size: Option<Sweep<Bytes>>,
        /// Threads that encode frames, over all writers, instead of the instrument's. Only for formats that
        /// need encoding.
        encoders: Option<Sweep<u32>>,
        /// The compression of frames in HDF5, instead of the instrument's.
        compression: Option<Sweep<FrameCompression>>,
        /// Pixels of a chunk of an HDF5 dataset, instead of the instrument's.
        chunk: Option<Sweep<ChunkShape>>,
        /// Writers, each with a lane and files of its own. Default: the number that suits the storage.
        writers: Option<Sweep<u32>>,
        /// Spread each file over N storage devices. Only for targets that can.
        stripe_count: Option<Sweep<u32>>,
        /// Spread a file in pieces of this size. Only for targets that can.
        stripe_size: Option<Sweep<Bytes>>,
        /// Read an HDF5 recording afterwards in this way, from a cold cache, in a phase of its own. All processes
        /// that wrote one dataset (storing = "shared") read it together, each a part.
        read: Option<Sweep<ReadingWay>>,
        /// Deliver frames when they are due (pace), or as fast as the storage takes them (limit).
        goal: IngestGoal = IngestGoal::Pace,
        /// Frames to deliver, over all streams. Write this or `duration`.
        frames: Option<u64>,
        /// The time for which frames come. Write this or `frames`.
        duration: Option<Nanos>,
        /// Bytes of samples or pixels in a packet, instead of the instrument's. Only for packets that may
        /// have any size.
        payload: Option<Sweep<Bytes>>,
        /// Packets over this machine's own network (loopback) or from another machine, or frames in place.
        /// Default: loopback, if the catalogue has the instrument's packets; else in place.
        route: Option<Route>,
        /// Send packets over this network, with route = "network".
        network: Option<Subnet>,
        /// Store frames on the target, or nowhere. With "nothing" writes do nothing, so that only the
        /// recorder's own cost is left.
        onto: Onto = Onto::Target,
        /// Memory between the instrument and the storage.
        buffer: Sweep<Bytes> = Sweep::from(Bytes(1 << 30)),
        /// Remove the oldest frames of a recording that grows larger than this, counted before compression.
        keep: Bytes = USUAL_KEEP,
        /// The readers during the recording: their number, their distance behind it, their rate. Several, with
        /// other rates, show at which rate a dump from the recording costs frames.
        readers: Sweep<Readers> = Sweep::from(Readers::default()),
    }
}

/// The question that the recordings of a stage answer. A search belongs to one instrument and takes many
/// recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IngestGoal {
    /// Does the storage keep up with the instrument?
    #[default]
    Pace,
    /// How fast does the storage take frames?
    Limit,
}

/// The most lanes of one recording.
const WRITERS_MAX: u32 = 64;

/// A year: longer than any phase.
const LONG_ENOUGH: Nanos = Nanos::from_millis(365 * 24 * 3_600_000);

/// Finds an instrument by its name in the catalogue or its path. The error is a message for the user.
pub type Catalogue<'a> = &'a dyn Fn(&str) -> Result<Instrument, String>;

impl IngestSweep {
    /// The matrix, in the order of the plan; the scale multiplies counts of frames. Refuses values that make
    /// no sense.
    pub(super) fn runs(
        &self,
        repeats: u32,
        scale: f64,
        catalogue: Catalogue<'_>,
    ) -> Result<Vec<RecordingRun>, String> {
        if self.readers.values().iter().any(|readers| readers.copy) {
            return Err(
                "readers: a plan names no place for copies; leave copy out, and write --copy-to".into()
            );
        }
        if self.onto == Onto::Nothing && self.has_readers() {
            return Err("readers: nothing is stored that could be read; leave readers out, or write onto = \"target\"".into());
        }
        self.check_read()?;
        self.check_stripes()?;
        let swept = self.swept(catalogue(&self.instrument)?)?;
        let mut runs = Vec::new();
        for (instrument, swept) in swept {
            let instrument = instrument.simulated();
            instrument.check()?;
            if swept.writers.is_some_and(|writers| !(1..=WRITERS_MAX).contains(&writers)) {
                return Err(format!("writers: write 1 to {WRITERS_MAX}"));
            }
            if self.read.is_some() && instrument.recording.format != Format::Hdf5 {
                return Err(
                    "read: it works only with recordings in HDF5; write format = \"hdf5\", or leave it out"
                        .into(),
                );
            }
            let route = self.route(&instrument).and_then(|route| route_of_dataset(&instrument, route))?;
            if self.network.is_some() && route != Route::Network {
                return Err("network: frames cross no network between machines; write route = \"network\", \
                            or leave it out"
                    .into());
            }
            let mut run = RecordingRun {
                swept,
                goal: match self.goal {
                    IngestGoal::Pace => Goal::Pace,
                    IngestGoal::Limit => Goal::Limit,
                },
                duration: Nanos(0),
                buffer: Bytes(0),
                keep: self.keep,
                repeats,
                route,
                network: self.network,
                onto: self.onto,
                ..RecordingRun::new(instrument)
            };
            run.duration = self.duration(&run, scale)?;
            if self.frames.is_some() && scale < 1.0 {
                run.keep = run.keep.min(all_that_comes(&run));
            }
            runs.push(run);
        }
        let runs = self.readers.over(runs, |run, readers| run.readers = readers);
        let mut runs = self.buffer.over(runs, |run, value| run.buffer = value);
        if let Some(read) = &self.read {
            runs = read.over(runs, |run, way| run.read = Some(way));
        }
        runs.iter().try_for_each(check_chunk_size)?;
        runs.iter().try_for_each(|run| run.check_buffer(&format!("buffer = \"{}\"", run.buffer)))?;
        Ok(runs)
    }

    /// The matrix of background recordings: they last as long as the measurement, and nothing reads them.
    pub(super) fn lasting_runs(&self, catalogue: Catalogue<'_>) -> Result<Vec<RecordingRun>, String> {
        let written = [
            ("frames", self.frames.is_some()),
            ("duration", self.duration.is_some()),
            ("readers", self.has_readers()),
            ("read", self.read.is_some()),
            ("route", self.route.is_some_and(|route| route != Route::InPlace)),
            ("network", self.network.is_some()),
            ("onto", self.onto != Onto::Target),
            ("chunk_size", self.chunk_size.is_some()),
            ("stripe_count", self.stripe_count.is_some()),
            ("stripe_size", self.stripe_size.is_some()),
        ];
        if let Some((key, _)) = written.into_iter().find(|(_, is_written)| *is_written) {
            return Err(format!(
                "{key}: the recording of a load is in place, onto the target, as long as \
                 the measurement beside it, and without readers; leave it out"
            ));
        }
        let whole = IngestSweep { duration: Some(LONG_ENOUGH), route: Some(Route::InPlace), ..self.clone() };
        let runs = whole.runs(1, 1.0, catalogue)?;
        if runs.iter().any(RecordingRun::is_one_dataset) {
            return Err(format!(
                "storing = \"{}\": nobody completes the one HDF5 file of a load; write another storing",
                Storing::Shared.name()
            ));
        }
        Ok(runs)
    }

    fn has_readers(&self) -> bool {
        self.readers.values().iter().any(|readers| !readers.none())
    }

    /// Checks that a recording for later reading is stored at all.
    fn check_read(&self) -> Result<(), String> {
        if self.read.is_some() && self.onto == Onto::Nothing {
            return Err(
                "read: nothing is stored that could be read; leave it out, or write onto = \"target\"".into(),
            );
        }
        Ok(())
    }

    /// Checks that files are stored at all, and have at least a stripe.
    fn check_stripes(&self) -> Result<(), String> {
        let counts = self.stripe_count.as_ref().map_or(&[][..], Sweep::values);
        let sizes = self.stripe_size.as_ref().map_or(&[][..], Sweep::values);
        let is_written = !counts.is_empty() || !sizes.is_empty();
        if is_written && self.onto == Onto::Nothing {
            return Err(
                "stripe_count and stripe_size: nothing is stored that could be spread; leave them out, \
                        or write onto = \"target\""
                    .into(),
            );
        }
        if counts.contains(&0) || sizes.contains(&Bytes(0)) {
            return Err("stripe_count and stripe_size: write more than 0".into());
        }
        Ok(())
    }

    /// Chooses a network route only if the packets are described.
    fn route(&self, instrument: &Instrument) -> Result<Route, String> {
        match (self.route, &instrument.packets) {
            (Some(Route::Loopback | Route::Network), None) => Err(format!(
                "route: nothing says how frames of {} come over a network; leave route out",
                self.instrument
            )),
            (Some(route), _) => Ok(route),
            (None, Some(_)) => Ok(Route::Loopback),
            (None, None) => Ok(Route::InPlace),
        }
    }

    /// The time until the frame after the last one would be due. It must be long enough to show something; a
    /// small scale shortens it no further.
    fn duration(&self, cell: &RecordingRun, scale: f64) -> Result<Nanos, String> {
        let due = |frames| cell.instrument.schedule().due(frames);
        let (asked, written, scaled) = match (self.frames, self.duration) {
            (Some(frames), None) if frames > 0 => {
                (format!("frames = {frames}"), due(frames), due(scaled_count(frames, scale)))
            }
            (None, Some(duration)) if duration.0 > 0 => {
                (format!("duration = \"{duration}\""), duration, duration)
            }
            _ => return Err("write frames = N or duration = \"T\", one of them and more than 0".into()),
        };
        RecordingRun { duration: written, ..cell.clone() }.check_duration(&asked)?;
        Ok(scaled.max(cell.least_duration()))
    }
}

/// Checks that frames reach the one HDF5 file of all writers without packets, and returns their route.
fn route_of_dataset(instrument: &Instrument, route: Route) -> Result<Route, String> {
    if !route.has_packets() || !instrument.recording.is_one_dataset() {
        return Ok(route);
    }
    let name = Storing::Shared.name();
    Err(format!(
        "storing = \"{name}\": one HDF5 file of all writers takes frames in place; write route = \"in_place\", or another \
         storing"
    ))
}

/// All bytes that arrive during a recording, with some room. A short recording keeps no more, and needs no
/// more space.
fn all_that_comes(run: &RecordingRun) -> Bytes {
    let all = run.all().0;
    Bytes(all.saturating_add(all / 16))
}

/// Checks that a recording has chunks of the size that the plan gives it.
fn check_chunk_size(run: &RecordingRun) -> Result<(), String> {
    let Some(size) = run.swept.chunk_size else { return Ok(()) };
    let recorded = run.recorded();
    let least = recorded.frame_size();
    let why = if recorded.packets.is_none() {
        "only packets are recorded in chunks; leave it out".to_owned()
    } else if recorded.recording.format == Format::Hdf5 {
        "files of HDF5 have frames_per_file; leave one of them out".to_owned()
    } else if run.goal == Goal::Limit {
        "at full speed the oldest frames are overwritten, so there are no chunks; leave it out".to_owned()
    } else if run.all() > run.keep {
        format!(
            "a recording that removes its oldest frames has no chunks; write keep = \"{}\" or more",
            run.all()
        )
    } else if size < least {
        format!("write {least} or more, which is a block of packets")
    } else {
        return Ok(());
    };
    Err(format!("chunk_size: {why}"))
}

#[cfg(test)]
mod tests;
