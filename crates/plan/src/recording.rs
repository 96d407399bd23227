//! A stage that is a recording: an instrument over a matrix of ways to deliver and to store frames.

use nilometer_model::{
    Bytes, ChunkShape, Format, FrameCompression, Frequency, Goal, Instrument, Nanos, Readers, ReadingWay,
    Storing, Subnet,
};
use serde::{Deserialize, Serialize};

use super::{
    Onto, RecordingRun, Route, Sweep, Swept, USUAL_KEEP, parameters::scaled_count, plan_table::plan_table,
};

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
        /// Read an HDF5 recording afterwards in this way, from a cold cache, in a phase of its own.
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
        let slot = |run: &RecordingRun| Bytes(run.recorded().frame_size().0 * run.rings());
        if let Some(run) = runs.iter().find(|run| run.buffer.0 / 2 < slot(run).0) {
            let frame = slot(run);
            let buffer = run.buffer;
            return Err(format!("buffer = \"{buffer}\": write room for at least two frames of {frame}"));
        }
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

    fn check_payload(&self, instrument: &Instrument) -> Result<(), String> {
        let name = &self.instrument;
        let packets = instrument.packets.clone();
        let no_packets =
            || format!("payload: nothing says how frames of {name} come over a network; leave it out");
        packets.ok_or_else(no_packets)?.set_payload(Bytes(1))
    }

    /// Checks that the instrument's frames can be made less or more compressible.
    fn check_compressibility(&self, instrument: &Instrument) -> Result<(), String> {
        let factors = self.compressibility.as_ref().map_or(&[][..], Sweep::values);
        for factor in factors {
            let mut data = instrument.data.clone();
            data.set_compressibility(*factor).map_err(|why| format!("compressibility = {factor}: {why}"))?;
        }
        let kind = &instrument.data.kind;
        if !factors.is_empty() && kind.usual_intensity().is_none() && !instrument.compressed {
            return Err(format!(
                "compressibility: {kind} data of {} have none to choose; leave it out, or write data of another \
                 kind in a .toml file of the instrument",
                self.instrument
            ));
        }
        Ok(())
    }

    /// The instrument with each combination of the plan's changes.
    fn swept(&self, mut instrument: Instrument) -> Result<Vec<(Instrument, Swept)>, String> {
        if let Some(shape) = &self.shape {
            instrument.shape.clone_from(shape);
        }
        let all = vec![(instrument, Swept::default())];
        if self.payload.is_some() {
            self.check_payload(&all[0].0)?;
        }
        let all = over(self.payload.as_ref(), all, |instrument, swept, payload| {
            if let Some(packets) = &mut instrument.packets {
                packets.set_payload(payload).expect("it was just checked");
            }
            swept.payload = Some(payload);
        });
        let all = over(self.rate.as_ref(), all, |instrument, swept, rate| {
            *instrument = instrument.at_rate(rate);
            swept.rate = Some(rate);
        });
        let all = over(self.streams.as_ref(), all, |instrument, swept, streams| {
            instrument.streams = streams;
            swept.streams = Some(streams);
        });
        self.check_compressibility(&all[0].0)?;
        let all = over(self.compressibility.as_ref(), all, |instrument, swept, factor| {
            instrument.data.set_compressibility(factor).expect("it was just checked");
            swept.compressibility = Some(factor);
        });
        Ok(self.swept_layouts(all))
    }

    /// The instruments with each combination of ways to store frames.
    fn swept_layouts(&self, all: Vec<(Instrument, Swept)>) -> Vec<(Instrument, Swept)> {
        let all = over(self.format.as_ref(), all, |instrument, swept, format| {
            instrument.recording.write_as(format);
            swept.format = Some(format);
        });
        let all = over(self.storing.as_ref(), all, |instrument, swept, storing| {
            instrument.recording.store(storing);
            swept.storing = Some(storing);
        });
        let all = over(self.frames_per_file.as_ref(), all, |instrument, swept, frames| {
            instrument.recording.frames_per_file = Some(frames);
            swept.frames_per_file = Some(frames);
        });
        let all = over(self.encoders.as_ref(), all, |instrument, swept, encoders| {
            instrument.recording.encoders = Some(encoders);
            swept.encoders = Some(encoders);
        });
        let all = over(self.chunk.as_ref(), all, |instrument, swept, chunk| {
            instrument.recording.chunk = Some(chunk);
            swept.chunk = Some(chunk);
        });
        let all = over(self.compression.as_ref(), all, |instrument, swept, compression| {
            instrument.recording.compression = Some(compression);
            swept.compression = Some(compression);
        });
        let all = over(self.writers.as_ref(), all, |_, swept, writers| swept.writers = Some(writers));
        let all = over(self.stripe_count.as_ref(), all, |_, swept, count| swept.stripe_count = Some(count));
        over(self.stripe_size.as_ref(), all, |_, swept, size| swept.stripe_size = Some(size))
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

/// The matrix over values that may replace those of the instrument's file.
fn over<T: Clone>(
    sweep: Option<&Sweep<T>>,
    all: Vec<(Instrument, Swept)>,
    set: impl Fn(&mut Instrument, &mut Swept, T),
) -> Vec<(Instrument, Swept)> {
    match sweep {
        Some(sweep) => sweep.over(all, |(instrument, swept), value| set(instrument, swept, value)),
        None => all,
    }
}

/// All bytes that arrive during a recording, with some room. A short recording keeps no more, and needs no
/// more space.
fn all_that_comes(run: &RecordingRun) -> Bytes {
    let all = run.all().0;
    Bytes(all.saturating_add(all / 16))
}

#[cfg(test)]
mod tests {
    use super::super::{ResolvedPlan, parse_with};
    use super::*;

    const PLAN: &str = r#"
title = "a test"
repeats = 2
[[stage]]
name = "images"
[stage.ingest]
instrument = "camera"
frames = 100
rate = ["1 Hz", "50 Hz"]
"#;

    fn camera(name: &str) -> Result<Instrument, String> {
        let data = match name {
            "camera" => "incompressible",
            "detector" => "diffraction",
            _ => return Err(format!("no instrument `{name}`: write one of camera, detector")),
        };
        let text = format!(
            "name = \"{name}\"\ntitle = \"t\"\nsource = \"s\"\nshape = [10, 20]\npixel = \"int32\"\nframe_rate = \"5 Hz\"\n\
             data = \"{data}\"\n"
        );
        Instrument::parse(&text, name).map_err(|error| error.to_string())
    }

    fn read(text: &str, scale: f64) -> Result<ResolvedPlan, String> {
        parse_with(text, "my.toml", scale, &camera).map_err(|error| error.to_string())
    }

    #[test]
    fn lists_make_a_matrix_of_recordings() {
        let plan = read(PLAN, 1.0).expect("a valid plan");
        let told: Vec<_> = plan.recordings().map(|(_, run)| run.to_string()).collect();
        assert_eq!(
            told,
            [
                "camera at 1 Hz at 800 B/s for 100 s, buffer 1 GiB",
                "camera at 50 Hz at 40 kB/s for 2 s, buffer 1 GiB"
            ]
        );
        let run =
            |plan: &ResolvedPlan, at: usize| plan.cells[at].as_recording().expect("a recording").clone();
        assert_eq!((plan.cells[0].stage.as_str(), run(&plan, 0).repeats), ("images", 2));
        assert_eq!((run(&plan, 1).instrument.name.as_str(), plan.workloads().count()), ("camera", 0));
        let half = read(PLAN, 0.5).expect("a valid plan");
        assert_eq!(run(&half, 1).duration, Nanos::from_millis(1000), "as many frames less");
        // 51 frames of 800 B and a sixteenth, instead of 2 GiB.
        assert_eq!([run(&plan, 1).keep, run(&half, 1).keep], [Bytes(2 << 30), Bytes(43_350)]);
        let hundredth = read(PLAN, 0.01).expect("a valid plan");
        assert_eq!(run(&hundredth, 1).duration, Nanos::from_millis(400), "enough to show something");
        let more =
            format!("{PLAN}format = [\"raw\", \"cbf\"]\nbuffer = [\"1 MB\", \"2 MB\"]\nshape = [30, 40]\n");
        let more = read(&more, 1.0).expect("a valid plan");
        let names: std::collections::BTreeSet<_> = more.cells.iter().map(ToString::to_string).collect();
        assert_eq!((more.cells.len(), names.len(), run(&more, 0).instrument.shape), (8, 8, vec![30, 40]));
        let files =
            PLAN.replace("rate = [\"1 Hz\", \"50 Hz\"]", "format = \"hdf5\"\nframes_per_file = [1, 10]");
        let files = read(&files, 1.0).expect("a valid plan");
        let kept: Vec<_> =
            files.recordings().map(|(_, run)| run.instrument.recording.frames_per_file).collect();
        assert_eq!(kept, [Some(1), Some(10)]);
        assert!(
            files.cells[1].to_string().starts_with("camera as hdf5, 10 frames a file at"),
            "{}",
            files.cells[1]
        );
        let encoded = PLAN.replace("rate = [\"1 Hz\", \"50 Hz\"]", "format = \"cbf\"\nencoders = [1, 2]");
        let encoded = read(&encoded, 1.0).expect("a valid plan");
        let encoders: Vec<_> =
            encoded.recordings().map(|(_, run)| run.instrument.recording.encoders).collect();
        assert_eq!(encoders, [Some(1), Some(2)]);
        assert!(
            encoded.cells[1].to_string().starts_with("camera as cbf, encoded by 2 at"),
            "{}",
            encoded.cells[1]
        );
    }

    #[test]
    fn readers_of_several_rates_make_a_matrix() {
        let several = "readers = [{ count = 0 }, { count = 1, rate = \"100 kB/s\" }, { count = 1 }]";
        let plan = PLAN.replace("rate = [\"1 Hz\", \"50 Hz\"]", several);
        let plan = read(&plan, 1.0).expect("a valid plan");
        let names: Vec<_> = plan.recordings().map(|(_, run)| run.to_string()).collect();
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(
            !names[0].contains("reader") && names[1].ends_with(", 1 reader at 100 kB/s each"),
            "{names:?}"
        );
        assert!(names[2].ends_with(", 1 reader"), "{names:?}");
    }

    #[test]
    fn chunks_lanes_and_ways_of_reading_make_a_matrix() {
        let more = "format = \"hdf5\"\nchunk = [\"10x20\", \"5x5\"]\ncompression = [\"none\", \"bslz4\"]\nwriters = [1, 2]\n\
                    read = [\"frames\", \"line\"]\ngoal = \"limit\"";
        let plan = PLAN.replace("rate = [\"1 Hz\", \"50 Hz\"]", more);
        let plan = read(&plan, 1.0).expect("a valid plan");
        let names: std::collections::BTreeSet<_> = plan.cells.iter().map(ToString::to_string).collect();
        assert_eq!((plan.cells.len(), names.len()), (16, 16), "{names:?}");
        let last = plan.cells.last().expect("there are some");
        assert!(
            last.to_string().starts_with("camera as hdf5 in 5x5, bslz4, 2 lanes at full speed"),
            "{last}"
        );
        assert!(last.to_string().ends_with("read by line"), "{last}");
        let phases: Vec<_> = last.measured_phases().iter().map(|phase| phase.name()).collect();
        assert_eq!(phases, ["ingest", "write", "read"]);
    }

    #[test]
    fn compressibility_and_stripes_make_a_matrix() {
        let more = "compressibility = [2, 8.5]\nstripe_count = [1, 4]\nstripe_size = [\"1 MiB\", \"4 MiB\"]";
        let plan = PLAN.replace("rate = [\"1 Hz\", \"50 Hz\"]", more).replace("\"camera\"", "\"detector\"");
        let plan = read(&plan, 1.0).expect("a valid plan");
        let names: std::collections::BTreeSet<_> = plan.cells.iter().map(ToString::to_string).collect();
        assert_eq!((plan.cells.len(), names.len()), (8, 8), "{names:?}");
        let last = plan.cells[7].as_recording().expect("a recording");
        assert_eq!(last.label(), "detector, compressibility 8.5, stripe count 4, stripes of 4 MiB");
        assert_eq!(last.instrument.data.compressibility, Some(8.5));
        assert_eq!(last.swept.layout().to_string(), "stripe count 4 of 4 MiB");
        let kept = serde_json::to_string(last).expect("a record keeps it");
        assert_eq!(&serde_json::from_str::<RecordingRun>(&kept).expect("it is read again"), last);
    }

    #[test]
    fn all_writers_share_one_file_of_hdf5_and_no_chunks_of_it() {
        let stored = |storing: &str| {
            let more = format!("frames = 100\nformat = \"hdf5\"\nstoring = \"{storing}\"");
            read(&PLAN.replace("frames = 100", &more), 1.0)
        };
        let plan = stored("shared").expect("a valid plan");
        assert!(plan.recordings().all(|(_, run)| run.is_one_dataset()));
        let why = stored("scattered").expect_err("HDF5 has no such files");
        assert!(why.contains("my.toml:5") && why.contains("\"shared\" for one file"), "{why}");
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        for (from, to, parts) in [
            (
                "\"camera\"",
                "\"camra\"",
                &["my.toml:5: stage `images`: no instrument `camra`", "one of camera"][..],
            ),
            ("frames = 100", "", &["my.toml:5", "frames = N or duration"]),
            ("frames = 100", "frames = 0", &["my.toml:5", "more than 0"]),
            ("frames = 100", "frames = 19", &["my.toml:5", "frames = 19: too short", "at least 20 s"]),
            ("frames = 100", "duration = \"1 ms\"", &["my.toml:5", "duration = \"1 ms\": too short"]),
            ("frames = 100", "frames = 1\nduration = \"1 s\"", &["my.toml:5", "one of them"]),
            ("\"1 Hz\"", "\"0 Hz\"", &["my.toml:5", "more than 0 Hz"]),
            ("\"1 Hz\"", "\"1 fps\"", &["line 9", "the unit `fps`"]),
            ("frames = 100", "frames = 100\nbuffer = \"1 kB\"", &["my.toml:5", "two frames of 800 B"]),
            ("frames = 100", "frames = 100\nformat = \"tiff\"", &["line 9", "`raw`, `cbf`, `hdf5`"]),
            (
                "frames = 100",
                "frames = 100\nread = \"line\"",
                &["my.toml:5", "it works only with recordings in HDF5"],
            ),
            ("frames = 100", "frames = 100\nread = \"lines\"", &["line 9", "`line`"]),
            ("frames = 100", "frames = 100\nwriters = 0", &["my.toml:5", "writers: write 1 to 64"]),
            ("frames = 100", "frames = 100\ngoal = \"search\"", &["line 9", "`limit`"]),
            (
                "frames = 100",
                "frames = 100\nformat = \"hdf5\"\nchunk = \"11x20\"",
                &["my.toml:5", "larger than a frame"],
            ),
            ("frames = 100", "frames = 100\nencoders = 2", &["my.toml:5", "frames are written as they are"]),
            (
                "frames = 100",
                "frames = 100\nformat = \"cbf\"\nencoders = 0",
                &["my.toml:5", "write 1 to 1024"],
            ),
            ("frames = 100", "frames = 100\nreaders = { copy = true }", &["my.toml:5", "--copy-to"]),
            ("frames = 100", "frames = 100\nstripe_count = [1, 0]", &["my.toml:5", "more than 0"]),
            ("frames = 100", "frames = 100\nstripe_count = -1", &["line 9", "`-1`"]),
            (
                "frames = 100",
                "frames = 100\nstripe_size = \"1 MiB\"\nonto = \"nothing\"",
                &["my.toml:5", "nothing is stored"],
            ),
            (
                "[stage.ingest]",
                "stripe_count = 2\n[stage.ingest]",
                &["my.toml:5", "stripe_count: write it in [stage.ingest]"],
            ),
            (
                "frames = 100",
                "frames = 100\ncompressibility = 3",
                &["my.toml:5", "incompressible data of camera have none"],
            ),
            ("frames = 100", "frames = 100\ncompressibility = [2, 0]", &["my.toml:5", "above 0"]),
            ("instrument", "instrumnt", &["line 7", "`instrument`"]),
            ("[stage.ingest]", "workers = 2\n[stage.ingest]", &["my.toml:5", "a recording has none"]),
            (
                "[stage.ingest]",
                "[stage.workload.small_writes]\ntotal = \"1 MB\"\n[stage.ingest]",
                &["my.toml:5", "one of them"],
            ),
        ] {
            let text = PLAN.replace(from, to);
            assert_ne!(text, PLAN);
            let error = read(&text, 1.0).expect_err(to);
            assert!(parts.iter().all(|part| error.contains(part)), "{parts:?} in {error}");
        }
        let neither = PLAN.split("[stage.ingest]").next().expect("a head");
        assert!(read(neither, 1.0).expect_err("nothing is measured").contains("[stage.ingest]"));
    }
}
