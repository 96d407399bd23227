//! A recording as it was asked for, with everything looked up and checked that can be refused before anything is made.

use std::net::{Ipv4Addr, SocketAddr};

use nilometer_acquisition::{
    LayoutOptions, PART, RecordingPlan, Retention, StoredFrames, assembly::ReorderWindow,
};
use nilometer_model::{Bytes, Format, Instrument, Nanos, TargetDescription, packets::Packets};
use nilometer_recording::Missing;
use nilometer_storage::{Calendar, user_file};
use nilometer_wire::WireFormat;

use super::{
    options::RecordOptions,
    place::{KEPT, check_buffer, check_name, check_place},
};
use crate::error::{ServiceError, require};

/// A recording that can be prepared, as far as that is known without a look at the storage: an instrument that comes over a
/// network, and what was wished of its recording.
#[derive(Debug)]
pub struct RecordingSettings {
    pub(super) instrument: Instrument,
    /// How the instrument comes over a network.
    pub(super) packets: Packets,
    pub(super) wishes: RecordOptions,
}

const BUFFER: Bytes = Bytes(1 << 30);
const RESERVE: Bytes = Bytes(1 << 30);
const HANG_AFTER: Nanos = Nanos::from_millis(60_000);
/// Larger chunks would keep too much memory waiting for one disk.
const CHUNK_MOST: u64 = 2 << 30;

impl RecordingSettings {
    /// Looks the instrument up and checks what is asked, as far as that needs no look at the storage.
    ///
    /// # Errors
    ///
    /// What is asked can't be recorded.
    pub fn of(wishes: RecordOptions) -> Result<Self, ServiceError> {
        let mut instrument = asked(&wishes)?;
        instrument.recording.write_as(wishes.format.unwrap_or(instrument.recording.format));
        if wishes.compression.is_some() {
            instrument.recording.compression = wishes.compression;
        }
        instrument
            .check()
            .map_err(|why| ServiceError::AskedWrongly(format!("{}: {why}", instrument.name)))?;
        require(!wishes.to.is_empty(), || "no --to: name the directory that the recording goes to".into())?;
        let name = &instrument.name;
        let unknown = || format!("{name}: it has no `packets`: nothing says how it comes over a network");
        let packets = instrument.packets.clone().ok_or_else(|| ServiceError::AskedWrongly(unknown()))?;
        let settings = RecordingSettings { instrument, packets, wishes };
        settings.check_limits()?;
        Ok(settings)
    }

    fn check_limits(&self) -> Result<(), ServiceError> {
        if let Some(name) = &self.wishes.name {
            check_name(name)?;
        }
        let RecordOptions { packets, duration, start, stop, hang_after, .. } = &self.wishes;
        let time = |time: &Option<Nanos>| time.map(|time| time.0);
        let least =
            [("--packets", *packets), ("--duration", time(duration)), ("--hang-after", time(hang_after))];
        for (option, value) in least {
            require(value != Some(0), || format!("{option} 0: write more than 0"))?;
        }
        if let (Some(start), Some(stop)) = (start, stop) {
            require(start < stop, || format!("--stop {stop}: write a time after --start {start}"))?;
        }
        if let Some(stop) = stop {
            let is_ahead = stop.0 > Calendar::now().time;
            require(is_ahead, || format!("--stop {stop}: that is over, write a time to come"))?;
        }
        Ok(())
    }

    /// What was asked.
    pub fn wishes(&self) -> &RecordOptions {
        &self.wishes
    }

    /// What is recorded.
    pub(crate) fn instrument(&self) -> &Instrument {
        &self.instrument
    }

    /// How long storage may be silent after the last packet, before it is given up.
    pub fn patience(&self) -> Nanos {
        self.wishes.hang_after.unwrap_or(HANG_AFTER)
    }

    /// Where packets are awaited.
    pub(crate) fn listens_at(&self) -> String {
        let usual = || format!("udp://{}:{}", Ipv4Addr::LOCALHOST, self.packets.port);
        self.wishes.listen.as_ref().map_or_else(usual, ToString::to_string)
    }

    pub(super) fn buffer(&self) -> Bytes {
        self.wishes.buffer.unwrap_or(BUFFER)
    }

    /// What stays free on each storage.
    pub(crate) fn reserve(&self) -> Bytes {
        reserve_of(&self.wishes)
    }

    pub(super) fn reorder_window(&self) -> ReorderWindow {
        let limits = ReorderWindow::default();
        ReorderWindow { window: self.wishes.window.unwrap_or(limits.window), ..limits }
    }

    pub(super) fn missing(&self) -> Missing {
        self.wishes.missing.unwrap_or_default()
    }

    fn check_memory(&self, blocks: StoredFrames, format: &dyn WireFormat) -> Result<(), ServiceError> {
        let buffer = self.buffer();
        let window = self.reorder_window().window;
        check_buffer(buffer, Bytes(blocks.size))?;
        let waiting = window.saturating_mul(format.geometry().packet_size() as u64);
        let needed = Bytes(waiting.saturating_add(4 * blocks.size));
        require(buffer >= needed, || {
            format!("--buffer {buffer}: a window of {window} packets needs {needed}")
        })
    }

    /// Whether other readers of chunks will take them.
    fn check_chunks(&self, blocks: StoredFrames, name: &str) -> Result<(), ServiceError> {
        if blocks.format == Format::Hdf5 {
            require(self.wishes.chunk_size.is_none(), || {
                "--chunk-size: files of HDF5 have the frames_per_file of the instrument, leave it out".into()
            })?;
            return require(self.wishes.keep.is_none() || self.wishes.to.len() == 1, || {
                "--keep: in HDF5 the latest can be kept in one directory only, name one --to".into()
            });
        }
        if !self.is_scattered() {
            let why = match self.wishes.keep {
                Some(_) => "what only the latest --keep is kept of has no chunks",
                None => "one directory has no chunks, name several --to",
            };
            return require(self.wishes.chunk_size.is_none(), || format!("--chunk-size: {why}"));
        }
        require(!name.contains('.'), || {
            format!("--name {name}: readers of chunks take no name with a dot in it")
        })?;
        let chunk = self.chunk_size();
        let buffer = self.buffer();
        let lanes = self.wishes.to.len() as u64;
        let least = Bytes(blocks.size);
        let most = Bytes(CHUNK_MOST);
        require((least..=most).contains(&chunk), || {
            format!("--chunk-size {chunk}: write {least} to {most}")
        })?;
        let needed = Bytes(chunk.0.saturating_mul(lanes));
        require(buffer >= needed, || {
            format!(
                "--buffer {buffer}: {lanes} directories that write at once need {needed}, a chunk of {chunk} each; name \
                 a larger buffer or smaller chunks"
            )
        })
    }

    fn is_scattered(&self) -> bool {
        self.wishes.to.len() > 1 && self.wishes.keep.is_none()
    }

    /// Whether each directory keeps a block at least.
    fn check_kept(&self, blocks: StoredFrames) -> Result<(), ServiceError> {
        let Some(keep) = self.wishes.keep else { return Ok(()) };
        let least = Bytes(blocks.size.saturating_mul(self.wishes.to.len() as u64));
        require(keep >= least, || {
            format!("--keep {keep}: write {least}, which is a block in each directory, or more")
        })
    }

    fn layout_options(&self) -> LayoutOptions {
        LayoutOptions {
            retention: self.wishes.keep.map_or(Retention::All, Retention::Latest),
            chunk_size: self.wishes.chunk_size,
            reserve: self.reserve(),
            checksums: self.wishes.checksums,
            ..LayoutOptions::with_buffer(self.buffer())
        }
    }

    fn chunk_size(&self) -> Bytes {
        self.wishes.chunk_size.unwrap_or(Bytes(PART))
    }

    /// How frames that are stored as these blocks are laid out on the described directories, where everything fits: the
    /// buffer holds what has to wait, and each directory the smallest part of the recording.
    pub(super) fn checked_plan(
        &self,
        blocks: StoredFrames,
        format: &dyn WireFormat,
        described: &[TargetDescription],
        name: &str,
    ) -> Result<RecordingPlan, ServiceError> {
        self.check_memory(blocks, format)?;
        self.check_chunks(blocks, name)?;
        self.check_kept(blocks)?;
        let plan = RecordingPlan::of(blocks, described, &self.layout_options());
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

    /// Where packets are awaited, looked up.
    pub(crate) fn address(&self) -> Result<SocketAddr, ServiceError> {
        match &self.wishes.listen {
            Some(address) => address.resolve().map_err(ServiceError::asked_wrongly),
            None => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, self.packets.port))),
        }
    }
}

/// What is to stay free on each storage.
pub(crate) fn reserve_of(wishes: &RecordOptions) -> Bytes {
    wishes.reserve.unwrap_or(RESERVE)
}

/// The instrument that is named, as its mode changes it.
fn asked(wishes: &RecordOptions) -> Result<Instrument, ServiceError> {
    let named = wishes.instrument.as_deref().map(user_file::instrument).transpose();
    let named = named.map_err(ServiceError::asked_wrongly)?;
    let nothing = "no instrument: name one of the catalogue, or a .toml file, or its --mode";
    let instrument = match &wishes.mode {
        Some(mode) => mode.instrument(named.as_ref()),
        None => named.ok_or_else(|| nothing.into()),
    };
    instrument.map_err(ServiceError::AskedWrongly)
}
