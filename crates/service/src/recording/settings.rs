//! The settings of a recording. All look-ups and checks that are possible before anything is made have passed.

use std::{net::Ipv4Addr, sync::Arc};

use nilometer_acquisition::{LayoutOptions, PART, RecordingPlan, Retention, StoredFrames};
use nilometer_hdf5_recording::UserLayout;
use nilometer_intake::{ScanStreams, assembly::ReorderWindow};
use nilometer_model::{
    Bytes, Capability, Format, Instrument, Nanos, StorageRoom, TargetDescription,
    packets::{PacketPartKind, PacketShare},
};
use nilometer_recording::Missing;
use nilometer_storage::Calendar;
use nilometer_wire::WireFormat;

use super::{
    addresses::PacketPlace,
    memory::MemoryWishes,
    options::RecordOptions,
    place::{KEPT, check_align, check_mounted, check_name, check_place, refuse_twice},
    routes::StreamRoute,
    series_share::SeriesShare,
    source::RecordedSource,
};
use crate::error::{ServiceError, require};

/// A recording that can be prepared, as far as checks without the storage can tell: its source on the network,
/// and the options.
#[derive(Debug)]
pub struct RecordingSettings {
    pub(super) source: RecordedSource,
    pub(super) wishes: RecordOptions,
    /// The layout of HDF5 files, if it is not NeXus.
    pub(crate) layout: Option<Arc<UserLayout>>,
    /// The number of recorders on this machine that record together, including this one.
    pub(super) sharing: u32,
    /// True if viewers may see its frames meanwhile.
    pub(super) has_preview: bool,
    /// Its share of sockets, or `None` if it has sockets of its own.
    pub(super) route: Option<StreamRoute>,
    /// The recordings of its scan, which fill the storage together: one for each data stream.
    pub(super) of_scan: u64,
    /// Its share of a series that several processes record, or `None` if it records all of it.
    pub(super) share: Option<SeriesShare>,
    /// The data streams of its scan, or `None` if it has no others.
    pub(super) beside: Option<ScanStreams>,
    /// The memory that was available before the first of them. `None` to ask the kernel.
    pub(super) available: Option<Bytes>,
}

const RESERVE: Bytes = Bytes(1 << 30);
const HANG_AFTER: Nanos = Nanos::from_millis(60_000);
/// Larger chunks would keep too much memory waiting for one disk.
const CHUNK_MOST: u64 = 2 << 30;

impl RecordingSettings {
    /// Looks up the instrument and checks the options, as far as that needs no storage.
    ///
    /// # Errors
    ///
    /// A recording with these options is impossible.
    pub fn of(wishes: RecordOptions) -> Result<Self, ServiceError> {
        RecordingSettings::of_share(wishes, PacketShare::ALL)
    }

    /// Like [`Self::of`], for the share of one of several recorders.
    ///
    /// # Errors
    ///
    /// A recording with these options is impossible, or not with this number of recorders.
    pub fn of_share(wishes: RecordOptions, share: PacketShare) -> Result<Self, ServiceError> {
        wishes.check_streams()?;
        let source = RecordedSource::of(&wishes, share)?;
        require(!wishes.to.is_empty(), || "no --to: name the directory that the recording goes to".into())?;
        let layout = source.layout(&wishes.metadata)?;
        let settings = RecordingSettings {
            source,
            wishes,
            layout,
            sharing: 1,
            has_preview: false,
            route: None,
            of_scan: 1,
            share: None,
            beside: None,
            available: None,
        };
        settings.check_limits()?;
        settings.check_layout()?;
        if share != PacketShare::ALL && matches!(settings.source, RecordedSource::Series(_)) {
            settings.check_share_layout()?;
        }
        Ok(settings)
    }

    fn check_limits(&self) -> Result<(), ServiceError> {
        refuse_twice(&self.wishes.to)?;
        if let Some(name) = &self.wishes.name {
            check_name(name)?;
        }
        if let Some(align) = self.wishes.align {
            check_align(align)?;
        }
        let RecordOptions { packets, duration, start, stop, hang_after, stripe_count, stripe_size, .. } =
            &self.wishes;
        let time = |time: &Option<Nanos>| time.map(|time| time.0);
        let least = [
            ("--packets", *packets),
            ("--duration", time(duration)),
            ("--hang-after", time(hang_after)),
            ("--stripe-count", stripe_count.map(u64::from)),
            ("--stripe-size", stripe_size.map(|size| size.0)),
        ];
        for (option, value) in least {
            require(value != Some(0), || format!("{option} 0: write more than 0"))?;
        }
        if let (Some(start), Some(stop)) = (start, stop) {
            require(start < stop, || format!("--stop {stop}: write a time after --start {start}"))?;
        }
        if let Some(stop) = stop {
            let is_ahead = stop.0 > Calendar::now().time;
            require(is_ahead, || format!("--stop {stop}: this time is past; write a later one"))?;
        }
        Ok(())
    }

    /// The same settings under another name.
    ///
    /// # Errors
    ///
    /// The name is invalid.
    pub fn named(mut self, name: String) -> Result<Self, ServiceError> {
        check_name(&name)?;
        self.wishes.name = Some(name);
        Ok(self)
    }

    /// The settings of one of several processes that record a series.
    #[must_use]
    pub fn of_series_share(self, share: SeriesShare) -> Self {
        RecordingSettings { share: Some(share), ..self }
    }

    /// Returns true if other processes record the rest of its series.
    pub fn is_series_share(&self) -> bool {
        self.share.is_some()
    }

    /// Refuses a layout whose files hold frames in order: those in between came to other processes.
    fn check_share_layout(&self) -> Result<(), ServiceError> {
        let several = self.layout.as_ref().is_some_and(|layout| layout.has_several_datasets());
        require(!several, || {
            "--layout: its datasets need all frames in order, and each process gets some; leave it out or start one process"
                .into()
        })
    }

    /// The settings of a recorder with a preview or without one, which takes memory.
    #[must_use]
    pub fn with_preview(self, has_preview: bool) -> Self {
        RecordingSettings { has_preview, ..self }
    }

    /// The settings of one of `sharing` recorders on this machine, which share its memory.
    #[must_use]
    pub fn sharing_memory(self, sharing: u32) -> Self {
        RecordingSettings { sharing, ..self }
    }

    /// The settings of one data stream of this scan, beside `count - 1` others.
    pub(super) fn of_stream(&self, own: RecordOptions, count: u64) -> Result<Self, ServiceError> {
        let settings = RecordingSettings::of(own)?.sharing_memory(self.sharing);
        Ok(RecordingSettings { of_scan: count, ..settings.with_preview(self.has_preview) })
    }

    /// Returns true if frames come as messages of a series.
    pub fn is_series(&self) -> bool {
        matches!(self.source, RecordedSource::Series(_))
    }

    /// The options that several recorders must have in common, as text. They are the whole instrument, the form in
    /// which a series is stored, and the replacement of missing frames. Each has its own number of encoding threads.
    pub fn asked_of_all(&self) -> String {
        let (whole, stored) = match &self.source {
            RecordedSource::Packets(source) => (Some(&source.whole), None),
            RecordedSource::Series(source) => {
                (source.instrument.as_ref(), Some((source.compression, source.chunk, &source.layout)))
            }
        };
        let mut whole = whole.cloned();
        if let Some(whole) = &mut whole {
            whole.recording.encoders = None;
        }
        serde_json::to_string(&(whole, stored, self.missing().name())).unwrap_or_default()
    }

    /// The name of the instrument, if the options name one.
    pub fn instrument_name(&self) -> Option<&str> {
        self.instrument().map(|instrument| instrument.name.as_str())
    }

    /// The part of the instrument that this recorder takes.
    pub fn part(&self) -> PacketPartKind {
        match &self.source {
            RecordedSource::Packets(source) => source.part,
            RecordedSource::Series(_) => PacketPartKind::All,
        }
    }

    /// The options.
    pub fn wishes(&self) -> &RecordOptions {
        &self.wishes
    }

    /// The instrument before the stream begins; `None` if only the stream describes it.
    pub(crate) fn instrument(&self) -> Option<&Instrument> {
        self.source.instrument()
    }

    /// The longest that storage may be silent after the last packet, before the recorder gives it up.
    pub fn patience(&self) -> Nanos {
        self.wishes.hang_after.unwrap_or(HANG_AFTER)
    }

    /// The address at which packets arrive, or the source of frames.
    pub(crate) fn listens_at(&self) -> String {
        match &self.source {
            RecordedSource::Packets(source) => {
                let usual = || format!("udp://{}:{}", Ipv4Addr::LOCALHOST, source.packets.port);
                let named: Vec<_> = self.wishes.listen.iter().map(ToString::to_string).collect();
                match (named.is_empty(), source.part) {
                    (true, _) => usual(),
                    (false, PacketPartKind::All) => named.join(", "),
                    (false, part) => format!("{}, its ports for {part}", named.join(", ")),
                }
            }
            RecordedSource::Series(source) => source.text(),
        }
    }

    /// The memory options.
    pub(super) fn memory_wishes(&self) -> MemoryWishes {
        let RecordOptions { buffer, memory, .. } = self.wishes;
        MemoryWishes {
            buffer,
            memory,
            sharing: self.sharing,
            streams: self.of_scan,
            available: self.available,
        }
    }

    /// The bytes that stay free on each storage.
    pub fn reserve(&self) -> Bytes {
        reserve_of(&self.wishes)
    }

    /// The room that the storage of these directories has for the recording's packets. `None` for a ring, which never
    /// fills up, and for a series, whose rate nobody announces.
    pub fn room<'a>(&self, on: impl IntoIterator<Item = &'a TargetDescription>) -> Option<StorageRoom> {
        let instrument = self.instrument().filter(|_| self.wishes.keep.is_none())?;
        let recordings = self.of_scan.max(self.wishes.stream_suffixes().len() as u64);
        Some(StorageRoom::for_instrument(instrument, recordings, on, self.reserve()))
    }

    /// Returns true if its packets come by sockets that the scan's other recordings have too.
    pub fn shares_sockets(&self) -> bool {
        self.route.is_some()
    }

    /// Returns true if its scan has other recordings beside it: one for each data stream.
    pub fn is_of_several(&self) -> bool {
        self.of_scan > 1
    }

    pub(super) fn reorder_window(&self) -> ReorderWindow {
        let limits = ReorderWindow::default();
        ReorderWindow { window: self.wishes.window.unwrap_or(limits.window), ..limits }
    }

    pub(super) fn missing(&self) -> Missing {
        self.wishes.missing.unwrap_or_default()
    }

    /// Checks that other readers of chunks accept these.
    fn check_chunks(
        &self,
        blocks: StoredFrames,
        described: &[TargetDescription],
        name: &str,
        buffer: Bytes,
    ) -> Result<(), ServiceError> {
        if blocks.format == Format::Hdf5 {
            require(self.wishes.chunk_size.is_none(), || {
                "--chunk-size: files of HDF5 have --frames-per-file, leave it out".into()
            })?;
            return require(self.wishes.keep.is_none() || self.wishes.to.len() == 1, || {
                "--keep: in HDF5 the latest can be kept in one directory only, name one --to".into()
            });
        }
        let in_places = |onto: &TargetDescription| onto.capabilities.has(Capability::WriteAnywhere);
        let whole_files = !described.iter().all(in_places);
        if self.wishes.keep.is_some() || described.len() == 1 && !whole_files {
            let why = match self.wishes.keep {
                Some(_) => "a recording with --keep has no chunks, leave one of them out",
                None => "one directory has no chunks, name several --to",
            };
            return require(self.wishes.chunk_size.is_none(), || format!("--chunk-size: {why}"));
        }
        require(!name.contains('.'), || {
            format!("--name {name}: readers of chunks take no name with a dot in it")
        })?;
        if whole_files && self.wishes.chunk_size.is_none() {
            // The buffer determines their size.
            return Ok(());
        }
        let chunk = self.chunk_size();
        let lanes = self.wishes.to.len() as u64;
        let least = Bytes(blocks.size);
        let most = Bytes(CHUNK_MOST);
        require((least..=most).contains(&chunk), || {
            format!("--chunk-size {chunk}: write {least} to {most}")
        })?;
        // The next chunk fills while one is being stored.
        let each = if whole_files { 2 } else { 1 };
        let needed = Bytes(chunk.0.saturating_mul(each * lanes));
        require(buffer >= needed, || {
            format!(
                "--buffer {}: {lanes} directories that write at once need {}, {each} x {chunk} each{}; name \
                 a larger buffer or smaller chunks",
                self.of_all(buffer),
                self.of_all(needed),
                self.for_all()
            )
        })
    }

    /// Checks that each directory keeps at least a block.
    fn check_kept(&self, blocks: StoredFrames) -> Result<(), ServiceError> {
        let Some(keep) = self.wishes.keep else { return Ok(()) };
        let least = Bytes(blocks.size.saturating_mul(self.wishes.to.len() as u64));
        require(keep >= least, || {
            format!("--keep {keep}: write {least}, which is a block in each directory, or more")
        })
    }

    pub(super) fn layout_options(&self, buffer: Bytes) -> LayoutOptions {
        LayoutOptions {
            retention: self.wishes.keep.map_or(Retention::All, Retention::Latest),
            chunk_size: self.wishes.chunk_size,
            reserve: self.reserve(),
            checksums: self.wishes.checksums,
            align: self.wishes.align.or(self.wishes.stripe_size),
            ..LayoutOptions::with_buffer(buffer)
        }
    }

    fn chunk_size(&self) -> Bytes {
        self.wishes.chunk_size.unwrap_or(Bytes(PART))
    }

    /// Checks that the buffer holds the packets that wait for others.
    pub(super) fn check_memory(
        &self,
        blocks: StoredFrames,
        format: &dyn WireFormat,
        buffer: Bytes,
    ) -> Result<(), ServiceError> {
        let window = self.reorder_window().window;
        let needed = self.least_buffer(blocks, format);
        require(buffer >= needed, || {
            let all = self.of_all(buffer);
            let least = self.of_all(needed);
            format!("--buffer {all}: a window of {window} packets needs {least}{}", self.for_all())
        })
    }

    /// The memory of all data streams, from that of one.
    fn of_all(&self, bytes: Bytes) -> Bytes {
        Bytes(bytes.0.saturating_mul(self.of_scan))
    }

    /// The number of data streams, behind a figure for all of them. Nothing without any.
    fn for_all(&self) -> String {
        if self.of_scan > 1 { format!(" for {} data streams", self.of_scan) } else { String::new() }
    }

    /// The smallest buffer: the packets that wait for others, and a few blocks.
    pub(super) fn least_buffer(&self, blocks: StoredFrames, format: &dyn WireFormat) -> Bytes {
        let window = self.reorder_window().window;
        let waiting = window.saturating_mul(format.geometry().packet_size() as u64);
        Bytes(waiting.saturating_add(4 * blocks.size))
    }

    /// The layout of these blocks in the described directories. Each directory must have room for the smallest
    /// part of the recording.
    pub(super) fn checked_plan(
        &self,
        blocks: StoredFrames,
        described: &[TargetDescription],
        name: &str,
        buffer: Bytes,
    ) -> Result<RecordingPlan, ServiceError> {
        self.check_chunks(blocks, described, name, buffer)?;
        self.check_kept(blocks)?;
        check_mounted(blocks.format, described)?;
        let plan = RecordingPlan::of(blocks, described, &self.layout_options(buffer));
        plan.check_lines().map_err(ServiceError::AskedWrongly)?;
        plan.check_storage(described).map_err(ServiceError::AskedWrongly)?;
        for description in described {
            let beside = described.iter().filter(|other| other.shares_space_with(description)).count() as u64;
            let (part, size) = match plan.ring_size() {
                Some(size) => (KEPT, Bytes(size.0.saturating_mul(beside))),
                None => ("block", Bytes(blocks.size)),
            };
            check_place(description, name, self.reserve(), part, size)?;
        }
        Ok(plan)
    }

    /// The resolved addresses at which packets arrive; none if frames come over TCP.
    pub(crate) fn addresses(&self) -> Result<Vec<PacketPlace>, ServiceError> {
        match &self.source {
            RecordedSource::Packets(source) => source.places(&self.wishes.listen),
            RecordedSource::Series(_) => Ok(Vec::new()),
        }
    }

    /// Refuses connections to other machines, except those in `allowed`.
    pub(crate) fn check_within(&self, allowed: &RecordOptions) -> Result<(), ServiceError> {
        let RecordedSource::Series(source) = &self.source else { return Ok(()) };
        for end in source.ends.iter().filter(|end| !end.is_of(allowed)) {
            let within = end.resolved()?.socket().ip().is_loopback();
            require(within, || {
                let option = end.option();
                let text = end.address.text();
                format!(
                    "{option}: {text} is beyond this machine; start the service with --listen-beyond-loopback to \
                     allow that"
                )
            })?;
        }
        Ok(())
    }
}

/// The bytes that stay free on each storage.
pub(crate) fn reserve_of(wishes: &RecordOptions) -> Bytes {
    wishes.reserve.unwrap_or(RESERVE)
}
