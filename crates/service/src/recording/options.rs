//! The options of a recording, from the command line, a TOML file or a command to the service. The keys are the
//! same everywhere. An option nearer to the user wins.

mod values;

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use nilometer_intake::transport::Allowed;
use nilometer_model::{
    Bytes, ChunkShape, EngineKind, FileSystemKind, Format, FrameCompression, Moment, Nanos, ScanShape,
    StripeLayout, packets::VlbiMode, read_toml,
};
use nilometer_recording::Missing;
use nilometer_storage::user_file;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    addresses::{LabelledSender, ListenAddress, StreamAddress},
    allowed_sender::AllowedSender,
};
use crate::error::{ServiceError, caused};

pub use values::compression_parser;
use values::{OneOrManyTexts, format, missing, one_or_many, one_or_many_texts, recorded_format, written};

/// Reads the address of a network interface.
fn interface_address(text: &str) -> Result<IpAddr, String> {
    let is_name = Path::new("/sys/class/net").join(text).exists();
    let hint = if is_name { "; `ip address` shows that of an interface" } else { "" };
    text.parse().map_err(|_| format!("write the address of an interface, such as 10.0.0.1{hint}"))
}

/// The options of a recording.
///
/// An option that was not given is `None` or empty. This one list defines the command's options, the keys of a
/// TOML file, and those of a JSON request. A new option can't be missing in one of them, or have another name
/// there. This is the only reason why the crate uses `clap`.
#[derive(Debug, Clone, Default, PartialEq, Args, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecordOptions {
    /// A name in the catalogue (see `nilometer instrument list`), or the path of a .toml file with `packets`.
    /// With `--from` you can leave it out: the stream describes its frames
    pub instrument: Option<String>,
    /// Receive frames over TCP from tcp://HOST:PORT, where a detector or any program sends the DECTRIS stream
    /// (ZeroMQ, version 2 or 1). Repeat the option for more connections. The recorder stores the next series
    /// that begins in HDF5, compressed as it arrives. To wait for senders that connect to this machine, use
    /// --listen tcp://*:PORT
    #[arg(long, value_name = "ADDRESS", help_heading = "Source")]
    #[serde(deserialize_with = "one_or_many_texts")]
    #[schemars(with = "OneOrManyTexts")]
    pub from: Vec<StreamAddress>,
    /// The data format in the notation of station software, such as VDIF_8000-4096-16-2 or Mark5B-2048-16-2,
    /// instead of the instrument's. You need no instrument then
    #[arg(long, help_heading = "Source")]
    #[schemars(with = "Option<String>")]
    pub mode: Option<VlbiMode>,
    /// Directory for the recording, which makes a new directory of its name there. One --to gives one file. With
    /// several, each on its own disk, chunks are scattered over them, as VLBI recorders do. If one fails or is
    /// full, the others take the rest
    #[arg(long = "to", value_name = "DIRECTORY", help_heading = "Storage")]
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(with = "OneOrManyTexts")]
    pub to: Vec<PathBuf>,
    /// Refuse directories on another type of file system, such as the one below a missing mount. Give one type
    /// for all, or one for each in their order (ext4, nfs, lustre ...; an unknown word lists them)
    #[arg(long, value_name = "TYPE", value_delimiter = ',', help_heading = "Storage")]
    #[serde(deserialize_with = "one_or_many_texts")]
    #[schemars(with = "OneOrManyTexts")]
    pub expect: Vec<FileSystemKind>,
    /// The format of frames, instead of the instrument's: their bytes, or HDF5 (detectors only)
    #[arg(long, value_name = "FORMAT", value_parser = format(), help_heading = "Storage")]
    #[serde(deserialize_with = "recorded_format")]
    #[schemars(with = "Option<String>")]
    pub format: Option<Format>,
    /// The compression of frames in HDF5, instead of the instrument's
    #[arg(long, value_name = "HOW", value_parser = compression_parser(), help_heading = "Storage")]
    #[schemars(with = "Option<String>")]
    pub compression: Option<FrameCompression>,
    /// Frames in an HDF5 file, or images of all channels, instead of the instrument's number [default: one file
    /// for all]
    #[arg(long, value_name = "FRAMES", help_heading = "Storage")]
    pub frames_per_file: Option<u64>,
    /// Layout of HDF5 files, instead of NeXus: a file in XML as areaDetector's file plug-in has it, or in TOML. The
    /// word `dectris` makes the files of DECTRIS' file writer
    #[arg(long, value_name = "FILE", help_heading = "Storage")]
    pub layout: Option<PathBuf>,
    /// Join values that arrive apart from their frames, by the frame's number: {"frame": 12, "Angle": 1.5}. They
    /// come as one JSON object a message from a sender of ZeroMQ (PUSH or PUB) at tcp://HOST:PORT, or from those
    /// that connect to tcp://*:PORT. A growing file or a pipe has one a line. You can repeat the option
    #[arg(long, value_name = "ADDRESS|FILE", help_heading = "Source")]
    #[serde(deserialize_with = "one_or_many_texts")]
    #[schemars(with = "OneOrManyTexts")]
    pub metadata: Vec<String>,
    /// Dimensions of a scan in HDF5, slowest first: 20x30 for 20 lines of 30 frames, ?x30 for any number of
    /// lines. A series must have this number of images, or whole lines if it is ?x30 [default: a row of frames]
    #[arg(long, value_name = "LINESxFRAMES", help_heading = "Storage")]
    #[schemars(with = "Option<String>")]
    pub scan: Option<ScanShape>,
    /// Pixels of a chunk of an HDF5 dataset, slowest dimension first. The recorder cuts frames into such tiles
    /// and compresses each by itself [default: a frame]
    #[arg(long, value_name = "ROWSxCOLUMNS", help_heading = "Storage")]
    #[schemars(with = "Option<String>")]
    pub chunk: Option<ChunkShape>,
    /// Align frames larger than SIZE in HDF5 files to multiples of SIZE [default: the stripe size, if the
    /// storage states one]. SIZE is a power of 2, at least 4 KiB
    #[arg(long, value_name = "SIZE", help_heading = "Storage")]
    #[schemars(with = "Option<String>")]
    pub align: Option<Bytes>,
    /// Spread each file of the recording over N storage devices, on storage that can, such as Lustre [default:
    /// unchanged]
    #[arg(long, value_name = "N", help_heading = "Storage")]
    pub stripe_count: Option<u32>,
    /// Spread each file in pieces of SIZE, if the storage can [default: unchanged]
    #[arg(long, value_name = "SIZE", help_heading = "Storage")]
    #[schemars(with = "Option<String>")]
    pub stripe_size: Option<Bytes>,
    /// Bytes of a chunk, if there are several directories [default: 256 MiB]
    #[arg(long, value_name = "SIZE", help_heading = "Storage")]
    #[schemars(with = "Option<String>")]
    pub chunk_size: Option<Bytes>,
    /// Keep only the latest SIZE, until you stop the recording. Each directory reserves a file with its share
    /// before the recording begins, and overwrites it from its beginning when it is full. The journal beside it
    /// is not overwritten: it grows by 64 B for each block of about a megabyte. In HDF5, which needs a single
    /// directory, the recorder removes the oldest files instead [default: all]
    #[arg(long, value_name = "SIZE", help_heading = "Storage")]
    #[schemars(with = "Option<String>")]
    pub keep: Option<Bytes>,
    /// The name of the recording [default: the instrument and a number]
    #[arg(long, help_heading = "Storage")]
    pub name: Option<String>,
    /// Address and port for packets: an address of this machine, or of a multicast group [default:
    /// `udp://127.0.0.1` and the port of the instrument, so that only this machine can send]. Repeat the option
    /// for more addresses, ports and groups; their packets become one recording. A label behind each, such as
    /// udp://127.0.0.1:46227=A, makes a recording of its own, `NAME_dsA`. udp://SOURCE@GROUP:PORT takes the packets of
    /// one source to a group. For frames over TCP as with --from: the address to which senders connect,
    /// tcp://ADDRESS:PORT, or tcp://*:PORT for all of this machine's
    #[arg(long, value_name = "ADDRESS", help_heading = "Source")]
    #[serde(deserialize_with = "one_or_many_texts")]
    #[schemars(with = "OneOrManyTexts")]
    pub listen: Vec<ListenAddress>,
    /// Join multicast groups at the network interface with this address
    #[arg(long, value_name = "ADDRESS", value_parser = interface_address, help_heading = "Source")]
    pub interface: Option<IpAddr>,
    /// Accept packets and connections from this sender only: an address, a network such as 10.0.0.0/24, or
    /// `any`. Repeat the option for more senders. It holds for `--listen` and for `--metadata tcp://*:PORT`.
    /// Name the senders if several boards send and don't all begin within a second. The recorder takes up to
    /// 64, each with serial numbers of its own. Default: the senders of the stream's first packets, at each
    /// port; with `--receive-threads` everybody. For connections: the address that begins a series, until it
    /// is over
    #[arg(long, value_name = "ADDRESS|NETWORK", help_heading = "Source")]
    #[schemars(with = "Vec<String>")]
    pub allow: Vec<AllowedSender>,
    /// Record the packets of this sender, or network, as a recording of its own: A=10.0.2.20 makes `NAME_dsA`. Repeat
    /// the option for more, with the same label for senders that belong together. The recorder hears no other
    /// senders. If each sends to a port of its own, write labels behind the addresses of --listen instead
    #[arg(long, value_name = "LABEL=SENDER", help_heading = "Source")]
    #[serde(deserialize_with = "one_or_many_texts")]
    #[schemars(with = "OneOrManyTexts")]
    pub data_stream: Vec<LabelledSender>,
    /// Begin at this time in UTC, with everything prepared beforehand: 2026-11-22T18:00:00Z, or
    /// 2026y326d18h00m00s
    #[arg(long, value_name = "TIME", help_heading = "When")]
    #[schemars(with = "Option<String>")]
    pub start: Option<Moment>,
    /// End at this time in UTC
    #[arg(long, value_name = "TIME", help_heading = "When")]
    #[schemars(with = "Option<String>")]
    pub stop: Option<Moment>,
    /// End at this time after the first packet or frame. If no packet comes at all, end after the same time from
    /// the start, at least 5 s
    #[arg(long, help_heading = "When")]
    #[schemars(with = "Option<String>")]
    pub duration: Option<Nanos>,
    /// End after this number of packets, and those that arrived together with the last
    #[arg(long, help_heading = "When")]
    pub packets: Option<u64>,
    /// End if nothing arrives for this time after the last packet or frame. If no packet comes at all, end
    /// after the same time from the start, at least 5 s. Default: 60 s for a series of frames, whose last one
    /// may be lost
    #[arg(long, help_heading = "When")]
    #[schemars(with = "Option<String>")]
    pub silence: Option<Nanos>,
    /// Record the next series of frames over TCP, or every series until you stop it, each as a recording of its
    /// own. The stream gives the name of each (a text, or `name`, in `user_data` or `header_appendix`).
    /// Otherwise it is --name and the number of the series [default: next]
    #[arg(long, value_name = "WHICH", help_heading = "When")]
    pub series: Option<SeriesChoice>,
    /// Fill gaps with frames that are marked as invalid, at the times of the missing ones, or leave them out
    /// [default: fill]
    #[arg(long, value_name = "HOW", value_parser = missing(), help_heading = "Missing and late packets")]
    #[serde(deserialize_with = "written")]
    #[schemars(with = "String")]
    pub missing: Option<Missing>,
    /// The number of later packets that may overtake a packet before it counts as missing [default: 512]
    #[arg(long, value_name = "PACKETS", help_heading = "Missing and late packets")]
    pub window: Option<u64>,
    /// Memory between the network and the storage [default: 1 GiB, or the rest of --memory or of the available
    /// memory]
    #[arg(long, help_heading = "This machine")]
    #[schemars(with = "Option<String>")]
    pub buffer: Option<Bytes>,
    /// Limit all memory of the recorder: its buffer, packets that wait in the kernel, and the program. Default:
    /// no limit beyond those of its parts, which /status shows
    #[arg(long, help_heading = "This machine")]
    #[schemars(with = "Option<String>")]
    pub memory: Option<Bytes>,
    /// Memory of the kernel for packets that wait. Without root `net.core.rmem_max` limits it [default: 256 MiB;
    /// with --memory at most an eighth of that, for all ports together]
    #[arg(long, help_heading = "This machine")]
    #[schemars(with = "Option<String>")]
    pub receive_buffer: Option<Bytes>,
    /// Microseconds to poll the network card before the processor sleeps [default: 0]
    #[arg(long, value_name = "MICROSECONDS", help_heading = "This machine")]
    pub busy_poll: Option<u32>,
    /// Threads that receive at each port, each with its own socket (`SO_REUSEPORT`). Use several if many senders
    /// send more packets than one thread takes from the kernel. All packets of one sender go to the same thread
    /// [default: 1]
    #[arg(long, value_name = "THREADS", help_heading = "This machine")]
    pub receive_threads: Option<usize>,
    /// Processors, by their numbers: the first for the thread that places packets, the others for the threads
    /// that receive [default: any]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', help_heading = "This machine")]
    pub cpus: Vec<usize>,
    /// Space that stays free on the storage; the recording ends when no more is left [default: 1 GiB]
    #[arg(long, help_heading = "Storage")]
    #[schemars(with = "Option<String>")]
    pub reserve: Option<Bytes>,
    /// The engine that writes: one system call at a time, the kernel's `io_uring`, or a pool of threads [default:
    /// `io_uring` past the page cache, or `pool` if a trial of the storage shows it far faster; `sync` into the cache]
    #[arg(long, value_name = "ENGINE", help_heading = "This machine")]
    pub engine: Option<RecordingEngine>,
    /// Write a checksum of each block of packets into the journal, so that `verify` can prove every byte. The
    /// recorder then needs about a tenth more processor time
    #[arg(long, help_heading = "Storage")]
    pub checksums: bool,
    /// Give up if the storage does not answer for this time after the last packet [default: 60 s]
    #[arg(long, help_heading = "This machine")]
    #[schemars(with = "Option<String>")]
    pub hang_after: Option<Nanos>,
}

/// The series of frames to record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SeriesChoice {
    /// The next series that begins.
    Next,
    /// Every series, each as a recording of its own.
    Every,
}

/// An engine that can write a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum RecordingEngine {
    /// One system call at a time.
    Sync,
    /// The kernel's `io_uring`.
    IoUring,
    /// A pool of threads.
    Pool,
}

impl From<RecordingEngine> for EngineKind {
    fn from(engine: RecordingEngine) -> Self {
        match engine {
            RecordingEngine::Sync => EngineKind::Sync,
            RecordingEngine::IoUring => EngineKind::IoUring,
            RecordingEngine::Pool => EngineKind::Pool,
        }
    }
}

impl RecordOptions {
    /// The requested layout of files on storage devices.
    pub(super) fn stripes(&self) -> StripeLayout {
        let RecordOptions { stripe_count, stripe_size, .. } = *self;
        StripeLayout { stripe_count, stripe_size, ..StripeLayout::default() }
    }

    /// The permitted senders of packets and connections.
    ///
    /// # Errors
    /// The list contradicts itself.
    pub(super) fn allowed(&self) -> Result<Allowed, ServiceError> {
        AllowedSender::all("--allow", &self.allow)
    }

    /// Reads the options from a TOML file. The file must have no other keys.
    ///
    /// # Errors
    ///
    /// The file can't be read, or has other content.
    pub fn read(file: &Path) -> Result<Self, ServiceError> {
        let text = user_file::read(file, "configuration").map_err(ServiceError::asked_wrongly)?;
        let of_file = |error| ServiceError::AskedWrongly(caused(&file.display().to_string(), &error));
        read_toml(&text).map_err(of_file)
    }

    /// Takes each option from `below` if it is missing here.
    #[must_use]
    pub fn over(self, below: RecordOptions) -> Self {
        RecordOptions {
            instrument: self.instrument.or(below.instrument),
            mode: self.mode.or(below.mode),
            from: if self.from.is_empty() { below.from } else { self.from },
            to: if self.to.is_empty() { below.to } else { self.to },
            expect: if self.expect.is_empty() { below.expect } else { self.expect },
            format: self.format.or(below.format),
            compression: self.compression.or(below.compression),
            frames_per_file: self.frames_per_file.or(below.frames_per_file),
            layout: self.layout.or(below.layout),
            metadata: if self.metadata.is_empty() { below.metadata } else { self.metadata },
            scan: self.scan.or(below.scan),
            chunk: self.chunk.or(below.chunk),
            align: self.align.or(below.align),
            stripe_count: self.stripe_count.or(below.stripe_count),
            stripe_size: self.stripe_size.or(below.stripe_size),
            chunk_size: self.chunk_size.or(below.chunk_size),
            keep: self.keep.or(below.keep),
            name: self.name.or(below.name),
            listen: if self.listen.is_empty() { below.listen } else { self.listen },
            interface: self.interface.or(below.interface),
            allow: if self.allow.is_empty() { below.allow } else { self.allow },
            data_stream: if self.data_stream.is_empty() { below.data_stream } else { self.data_stream },
            start: self.start.or(below.start),
            stop: self.stop.or(below.stop),
            duration: self.duration.or(below.duration),
            packets: self.packets.or(below.packets),
            silence: self.silence.or(below.silence),
            series: self.series.or(below.series),
            missing: self.missing.or(below.missing),
            window: self.window.or(below.window),
            buffer: self.buffer.or(below.buffer),
            memory: self.memory.or(below.memory),
            receive_buffer: self.receive_buffer.or(below.receive_buffer),
            busy_poll: self.busy_poll.or(below.busy_poll),
            receive_threads: self.receive_threads.or(below.receive_threads),
            cpus: if self.cpus.is_empty() { below.cpus } else { self.cpus },
            reserve: self.reserve.or(below.reserve),
            engine: self.engine.or(below.engine),
            checksums: self.checksums || below.checksums,
            hang_after: self.hang_after.or(below.hang_after),
        }
    }
}

#[cfg(test)]
mod tests;
