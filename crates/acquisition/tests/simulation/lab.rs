//! A recorder in virtual time: a source, a ring, and lanes on simulated targets.

use std::sync::Arc;

use nilometer_acquisition::{
    Writer, WriterTotals,
    sink::{Durability, FILE_SLOTS, Gauge, LaneFiles, Numbering, RawLayout, Streamer, encode_stage},
};
use nilometer_hdf5_recording::Hdf5Contents;
use nilometer_model::{
    FileNames, Format, FrameCompression, Nanos, Picture, PixelType, Schedule, Seed, Storing,
};
use nilometer_recording::{
    instrument::{Content, Pattern},
    journal::{Entry, FrameExtent, Head, prefix},
    reader::{Index, Trust},
};
use nilometer_ring::{Chronicle, Delivery, Pace, Ring, Source, WhenFull};
use nilometer_storage::{
    Arena, Buffer, Drive, Engine, OpKind, Open, Operation, ROOT, Slot, Target, Wait, Workload,
    clock::VirtualClock,
    interleave, listing,
    process::BootId,
    testing::{Cost, Device, Simulated},
};

pub(crate) const PAGE: u64 = 4096;
/// What a stall is longer than.
pub(crate) const ALLOWANCE: Nanos = Nanos(100_000);

/// What is simulated.
#[derive(Clone)]
pub(crate) struct Lab {
    pub(crate) frame_size: u64,
    pub(crate) frames: u64,
    pub(crate) period: Nanos,
    pub(crate) slots: usize,
    pub(crate) depth: usize,
    pub(crate) frames_per_file: u64,
    pub(crate) keep: Option<u64>,
    /// Bytes of frames that are written together.
    pub(crate) together: u32,
    pub(crate) storing: Storing,
    /// CBF needs frames of whole pixels.
    pub(crate) format: Format,
    /// Of frames in HDF5.
    pub(crate) compression: FrameCompression,
    /// Pixels of a tile, where frames are cut into some.
    pub(crate) tile: Option<u64>,
    pub(crate) devices: Vec<Device>,
    /// Lanes on each device.
    pub(crate) writers: usize,
    pub(crate) when_full: WhenFull,
    pub(crate) durability: Durability,
    pub(crate) checksums: bool,
    /// Files are put whole.
    pub(crate) whole_files: bool,
    /// Bytes of each device that are left free, if any.
    pub(crate) reserve: Option<u64>,
    pub(crate) streamer: Option<Streamer>,
    /// How long an acknowledged frame waits to be durable.
    pub(crate) checkpoint: Nanos,
    /// In which start of which machine it is recorded, if its journals say so.
    pub(crate) boot: Option<BootId>,
    /// Its journals say that the frames are made, and from what: they can be made again.
    pub(crate) says_origin: bool,
    /// What a lane knows of the numbers of chunks.
    pub(crate) numbering: fn(&Numbering) -> Numbering,
    /// Wraps each lane's engine.
    pub(crate) wrap: fn(Box<dyn Engine>) -> Box<dyn Engine>,
}

impl Default for Lab {
    fn default() -> Self {
        Lab {
            frame_size: PAGE,
            frames: 20_000,
            period: Nanos(1000),
            slots: 5000,
            depth: 1,
            frames_per_file: 100_000,
            keep: None,
            together: 0,
            storing: Storing::Files,
            format: Format::Raw,
            compression: FrameCompression::None,
            tile: None,
            devices: vec![Device::default()],
            writers: 1,
            when_full: WhenFull::DropNewest,
            durability: Durability::EachFile,
            checksums: false,
            whole_files: false,
            reserve: None,
            streamer: None,
            checkpoint: Nanos::from_millis(10_000),
            boot: None,
            says_origin: true,
            numbering: Numbering::clone,
            wrap: |engine| engine,
        }
    }
}

/// A stage beside the recorder's, with its engine.
pub(crate) type Beside<'a> = (&'a mut dyn Workload, &'a mut dyn Engine);

/// What came of it.
pub(crate) struct Run {
    pub(crate) ring: Arc<Ring>,
    pub(crate) due: u64,
    /// The source ended because a frame found no slot.
    pub(crate) stopped: bool,
    pub(crate) lanes: Vec<WriterTotals>,
    pub(crate) targets: Vec<Simulated>,
    pub(crate) writers: usize,
    /// Below it, all frames are acknowledged or known to be lost.
    pub(crate) mark: u64,
    /// By lane: the last file that was called durable, and up to which record of its journal frames were.
    pub(crate) durable: Vec<(Option<u64>, u64)>,
}

impl Lab {
    pub(crate) fn pattern(&self) -> Pattern {
        Pattern::new(Seed(5), self.frame_size as usize)
    }

    fn lanes(&self) -> usize {
        self.devices.len() * self.writers
    }

    pub(crate) fn layout(&self, lane: u32) -> RawLayout {
        let (stride, lanes) = (self.frame_size.next_multiple_of(512), self.lanes() as u32);
        let Lab { frame_size, frames_per_file, keep, durability, checksums, .. } = *self;
        let storing = self.storing;
        let head = Head {
            recording: 77,
            lane,
            lanes,
            frame_size,
            stride,
            frames_per_file,
            storing,
            format: self.format,
            names: FileNames::default(),
        };
        let past = !self.whole_files;
        let reserved =
            RawLayout::suited(String::new(), head, true).preallocate || self.storing.is_many_files();
        let direct = self.format == Format::Raw || self.format == Format::Hdf5 && stride.is_multiple_of(PAGE);
        let origin = Content::Pattern(self.pattern()).origin().filter(|_| self.says_origin);
        RawLayout {
            name: "n_r".into(),
            head,
            direct: direct && past,
            preallocate: reserved && past,
            keep,
            together: self.together,
            durability,
            checksums,
            align: 0,
            origin,
            stream: None,
            picture: Some(Picture::new(1, self.frame_size as usize / 4)),
            hdf5: self.hdf5(),
            streamer: self.streamer,
            checkpoint: self.checkpoint,
            boot: self.boot,
            clock: None,
            waiting: 0,
            whole_files: self.whole_files,
        }
    }

    /// As in an instrument: whole pixels, if the frame has whole ones.
    fn hdf5(&self) -> Option<Hdf5Contents> {
        let pixel = if self.frame_size.is_multiple_of(4) { PixelType::Uint32 } else { PixelType::Uint8 };
        let shape = [self.frame_size / pixel.whole_bytes().expect("chosen so")];
        let tile: Vec<u64> = self.tile.into_iter().collect();
        let layout = Hdf5Contents::of_tiles(pixel, &shape, &tile, self.compression);
        layout.filter(|_| self.format == Format::Hdf5)
    }

    /// Records to the end, or until the power goes off at `until`.
    pub(crate) fn run(&self, until: Nanos) -> Run {
        let clock = VirtualClock::default();
        self.run_beside(&clock, self.targets(&clock), until, &mut [])
    }

    /// By lane: those of one device know of each other.
    fn gauges(&self) -> Vec<Gauge> {
        let mut gauges: Vec<Gauge> = Vec::new();
        for lane in 0..self.lanes() {
            let gauge = match lane % self.writers {
                0 => Gauge::with_reserve(self.reserve.unwrap_or_default()),
                _ => gauges[lane - 1].beside(),
            };
            gauges.push(gauge);
        }
        gauges
    }

    /// A target for each lane.
    pub(crate) fn targets(&self, clock: &VirtualClock) -> Vec<Simulated> {
        self.devices.iter().map(|device| Simulated::new(device.clone(), clock.clone())).collect()
    }

    /// Records on these targets, beside other drives.
    pub(crate) fn run_beside(
        &self,
        clock: &VirtualClock,
        targets: Vec<Simulated>,
        until: Nanos,
        others: &mut [Beside<'_>],
    ) -> Run {
        let pattern = self.pattern();
        let (_, mut slots) = Arena::shared_out(self.slots, self.layout(0).head.stride as usize);
        for slot in &mut slots {
            pattern.prepare(slot);
        }
        let chronicle = Chronicle::new(self.frame_size, ALLOWANCE);
        let ring = if self.storing.is_chunked() {
            Ring::of_leases(slots, self.lanes(), chronicle, self.frames_per_file)
        } else {
            Ring::new(slots, self.lanes(), chronicle)
        };
        let each = targets.iter().flat_map(|target| std::iter::repeat_n(target, self.writers));
        let mut engines: Vec<Box<dyn Engine>> =
            each.map(|target| (self.wrap)(Box::new(target.attach(self.depth, FILE_SLOTS)))).collect();
        let gauges = self.gauges();
        let (mut writers, numbering) = (Vec::new(), Numbering::of(&self.layout(0).head));
        for (seat, engine) in engines.iter().enumerate() {
            ring.seat_writer(seat, engine.waker());
            let sink = LaneFiles::new(self.layout(seat as u32), gauges[seat].clone());
            let sink = sink.numbered((self.numbering)(&numbering));
            let encode = encode_stage(&self.layout(seat as u32), 0).expect("no thread is started");
            writers.push(Writer::new(ring.clone(), seat, sink).encoding(encode));
        }
        let read = |lane: usize| {
            if self.reserve.is_some() {
                let space = || targets[lane / self.writers].space().expect("a simulated one knows");
                gauges[lane].read(|| Some(space().free.0));
            }
        };
        (0..gauges.len()).for_each(read);
        let mut idle = Simulated::new(Device::default(), clock.clone()).attach(1, 1);
        ring.seat_source(idle.waker());
        let mut source = self.source(&ring, pattern);
        {
            let lanes = writers.iter_mut().zip(&mut engines);
            let mut drives = vec![Drive::new(&mut source, &mut idle)];
            drives.extend(lanes.map(|(writer, engine)| Drive::new(writer, engine.as_mut())));
            drives.extend(others.iter_mut().map(|(workload, engine)| Drive::new(*workload, *engine)));
            interleave(clock, &mut drives, until, &mut |drive, completion| {
                if (1..=gauges.len()).contains(&drive) && Gauge::is_due(completion.operation.kind) {
                    read(drive - 1);
                }
            });
        }
        let lanes = writers.iter().map(|writer| writer.totals().clone()).collect();
        let durable = |sink: &LaneFiles| (sink.durable(), sink.durable_records());
        let durable = writers.iter().map(|writer| durable(writer.sink())).collect();
        let (due, stopped) = (source.due(), source.has_stopped());
        Run { durable, mark: ring.mark(), due, stopped, ring, lanes, targets, writers: self.writers }
    }

    fn source(&self, ring: &Arc<Ring>, pattern: Pattern) -> Source {
        let fill = Box::new(move |number, slot: &mut [u8]| pattern.stamp(number, slot));
        let duration = Nanos(self.frames * self.period.0);
        let pace = Pace::Due(Schedule::every(self.period));
        let delivery = Delivery { when_full: self.when_full, ..Delivery::lasting(pace, duration) };
        Source::new(ring.clone(), delivery, Arc::default(), fill)
    }
}

impl Run {
    /// What a reader finds on the targets now.
    pub(crate) fn index(&self, trust: Trust) -> Index {
        let journal = |lane| read_all(self.target(lane), &format!("n_r.{lane}.journal"));
        let journals: Vec<Vec<u8>> = (0..self.lanes.len()).map(journal).collect();
        Index::unite(journals.iter().map(Vec::as_slice), trust)
    }

    /// Frames in the first so many records of a lane's journal.
    pub(crate) fn frames_in(&self, lane: usize, records: u64) -> Vec<u64> {
        let entries = prefix(&read_all(self.target(lane), &format!("n_r.{lane}.journal")));
        let number = |entry| if let Entry::Frame { number, .. } = entry { Some(number) } else { None };
        entries.into_iter().take(records as usize).filter_map(number).collect()
    }

    /// The checksums that a lane's journal has, of each frame.
    pub(crate) fn checksums(&self, lane: usize) -> Vec<Option<u32>> {
        let entries = prefix(&read_all(self.target(lane), &format!("n_r.{lane}.journal")));
        let checksum = |entry| if let Entry::Frame { checksum, .. } = entry { Some(checksum) } else { None };
        entries.into_iter().filter_map(checksum).collect()
    }

    /// The same files in another time: disks that were dead are there again.
    pub(crate) fn back(&self) -> Run {
        let targets = self.targets.iter().map(|target| target.copy(VirtualClock::default())).collect();
        let (ring, lanes, durable) = (self.ring.clone(), self.lanes.clone(), self.durable.clone());
        Run { ring, lanes, targets, durable, ..*self }
    }

    /// Names in the directory of a target.
    pub(crate) fn names(&self, target: usize) -> Vec<String> {
        let mut engine = self.targets[target].attach(1, 1);
        let mut names = Vec::new();
        let mut list = Operation::on(OpKind::List, ROOT, Buffer::alone(1 << 16));
        loop {
            let (operation, filled) = carry_out(&mut engine, list);
            let filled = filled.unwrap_or(0) as usize;
            let some = listing::entries(&operation.buffer[..filled]);
            names.extend(some.map(|(name, _)| String::from_utf8_lossy(name).into_owned()));
            if filled == 0 {
                return names;
            }
            list = Operation { length: 0, ..operation };
        }
    }

    /// All bytes of a file on a target; none if it is not there.
    pub(crate) fn read(&self, target: usize, name: &str) -> Vec<u8> {
        read_all(&self.targets[target], name)
    }

    /// Where a lane writes.
    fn target(&self, lane: usize) -> &Simulated {
        &self.targets[lane / self.writers]
    }

    /// All bytes of a file of frames; none if it is not there.
    pub(crate) fn file(&self, head: &Head, file: u64) -> Vec<u8> {
        read_all(self.target(head.lane as usize), &head.file_name("n_r", file))
    }

    /// Frames that a reader finds but that are not what the instrument delivered.
    pub(crate) fn wrong(&self, index: &Index, pattern: &Pattern) -> Vec<u64> {
        let mut files: std::collections::BTreeMap<(usize, u64), Vec<u8>> = std::collections::BTreeMap::new();
        let mut wrong = Vec::new();
        for (number, place) in index.frames.iter() {
            let head = index.heads[place.lane];
            let find = || {
                let names = index.file_names("n_r", place).into_iter();
                let mut files = names.map(|name| read_all(self.target(head.lane as usize), &name));
                files.find(|bytes| !bytes.is_empty()).unwrap_or_default()
            };
            let bytes = files.entry((place.lane, place.file())).or_insert_with(find);
            if pattern.verify(number, &frame(bytes, &place.extent)).is_err() {
                wrong.push(number);
            }
        }
        wrong
    }
}

/// A disk on which an operation takes so long, and a byte a tenth of a nanosecond more.
pub(crate) fn disk(base: Nanos) -> Device {
    Device {
        write: Cost { base, picoseconds_per_byte: 100 },
        sync: Cost::fixed(Nanos(5_000)),
        metadata: Cost::fixed(Nanos(1_000)),
        parallel: 2,
        ..Device::default()
    }
}

/// The bytes of a frame; none if they are not there.
fn frame(file: &[u8], extent: &FrameExtent) -> Vec<u8> {
    let mut frame = vec![0; extent.size as usize];
    let stored = file.get(extent.offset as usize..extent.end() as usize).unwrap_or_default();
    extent.encoding.decode(stored, &mut frame).map(|()| frame).unwrap_or_default()
}

/// All bytes of a file; none if it is not there.
pub(crate) fn read_all(target: &Simulated, name: &str) -> Vec<u8> {
    const FILE: Slot = Slot(1);
    let mut engine = target.attach(1, 2);
    let open = Operation::named(OpKind::Open(Open::READ), ROOT, FILE, name.as_bytes(), Buffer::alone(256));
    if carry_out(&mut engine, open).1.is_none() {
        return Vec::new();
    }
    let mut bytes = Vec::new();
    loop {
        let read = Operation::read(FILE, bytes.len() as u64, 1 << 16, Buffer::alone(1 << 16));
        let (operation, moved) = carry_out(&mut engine, read);
        match moved {
            Some(moved) if moved > 0 => bytes.extend_from_slice(&operation.buffer[..moved as usize]),
            _ => return bytes,
        }
    }
}

fn carry_out(engine: &mut dyn Engine, operation: Operation) -> (Operation, Option<u32>) {
    engine.submit(operation, engine.now());
    let mut done = Vec::new();
    engine.reap(Wait::ForOne, &mut done);
    let completion = done.pop().expect("one completion for one operation");
    (completion.operation, completion.result.ok())
}
