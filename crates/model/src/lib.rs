//! The vocabulary of Nilometer: units, time, seeds, instruments, samples and their statistics.
//!
//! Nothing here does I/O or reads a clock, so tests can be exact. The campaign fills in these types, the
//! record stores them, the analysis reads them.

#![forbid(unsafe_code)]

mod activity;
mod background_done;
pub mod catalogue;
mod census;
mod chunk_shape;
mod data;
mod device_traffic;
mod engine_kind;
mod facility;
mod format;
mod frame_compression;
mod frame_cut;
mod histogram;
mod ingest;
mod instrument;
mod invalid;
mod locks;
mod metrics_text;
mod module_places;
mod moment;
mod mpi_io;
mod network;
pub mod observed;
pub mod packets;
mod phase;
mod picture;
mod pixel_type;
mod plugin_filter;
mod rank_part;
mod ranks;
mod readers;
mod reading_part;
mod reading_way;
mod recall;
mod recording_layout;
mod sample;
mod schedule;
mod seed;
mod series;
mod shell_word;
pub mod statistics;
mod storage_room;
mod storing;
pub mod sustained;
mod target;
mod time;
mod timeline;
mod toml_file;
mod units;
mod visibility;
mod written;

pub use activity::{Activity, Pressure, Switches};
pub use background_done::{BackgroundDone, FramesBeside};
pub use census::{
    AgeCounts, CENSUS_DEPTH_MAX, CENSUS_VERSION, Census, CountedDirectory, CountedEntry, CountedKind,
    LevelCounts, OwnerCount, PowerCount, PowerCounts,
};
pub use chunk_shape::{ChunkShape, ScanShape};
pub use data::{Data, DataKind};
pub use device_traffic::{DeviceTraffic, DeviceUse};
pub use engine_kind::EngineKind;
pub use facility::{Facility, FacilityError, Member};
pub use format::Format;
pub use frame_compression::FrameCompression;
pub use frame_cut::{FrameCut, TILES_FILLED, TILES_MAX};
pub use histogram::Histogram;
pub use ingest::{Goal, Ingest, PacketTotals, ReaderTotals, STALLS_MOST, SentPackets, Stall};
pub use instrument::{Instrument, InstrumentError};
pub use invalid::{Invalid, SentAtOnce, SourceLag, Waited};
pub use locks::LocksSeen;
pub use metrics_text::MetricsText;
pub use module_places::{ImageBlock, ModulePlaces};
pub use moment::{Moment, MomentError};
pub use mpi_io::{MpiIoHints, MpiIoImplementation, MpiIoInForce};
pub use network::{
    BondMember, CampaignMachine, CongestionControl, CongestionControlError, DatagramCounts, EACH_PAIR_MAX,
    FlowEnd, FlowSample, FlowSettings, GROUP_PAIRS_MAX, LinkBond, LinkTraffic, MachineGroups, NetworkCell,
    NetworkFlow, NetworkLink, NetworkMachine, NetworkProtocol, NetworkResults, NetworkSample, NetworkStage,
    NetworkTraffic, PatternKind, Subnet, SubnetError, TcpFindings, TrafficInterval, TrafficPattern,
};
pub use packets::Packets;
pub use phase::Phase;
pub use picture::{BeamPixel, COUNT_CUTOFF, CbfHeader, Picture, RotationAngle};
pub use pixel_type::PixelType;
pub use plugin_filter::PluginFilter;
pub use rank_part::{NodeStart, RankPart};
pub use ranks::RankSample;
pub use readers::{ReaderLoad, Readers};
pub use reading_part::{ChunkedFrames, ReaderPlace, ReadingPart};
pub use reading_way::{FrameBlock, ReadingWay};
pub use recall::{RecallTimes, RecalledFile, is_hollow};
pub use recording_layout::{DECTRIS_FRAMES_PER_FILE, DECTRIS_LAYOUT, FrameShape, RecordingLayout};
pub use sample::{Coldness, Sample, WorkerTotals};
pub use schedule::{Burst, Schedule};
pub use seed::{RandomStream, Seed};
pub use series::{Bin, Level, Levels, Series};
pub use shell_word::shell_word;
pub use storage_room::{StorageRoom, rounded_down};
pub use storing::{ChunkNumber, FileNames, Storing, StoringKind};
pub use target::{
    BlockLayer, BlockLayerKind, Capabilities, Capability, DescriptionRow, DirectIo, EngineTrial,
    FeatureBasis, FeatureFinding, FileSystemKind, FileSystemSpace, NotExpected, PcieLink, RunHandle,
    StorageFeature, StorageProfile, StripeControl, StripeLayout, StripesRefused, TargetAddress,
    TargetAddressError, TargetDescription, TargetUrl, TargetUrlError, TriedEngine, UnknownFileSystem,
    UrlScheme, check_expected, check_expected_count, is_volatile, option_meanings, published_features,
};
pub use time::Nanos;
pub use timeline::Timeline;
pub use toml_file::{TomlError, plain_serde_message, read_toml};
pub use units::{ByteRate, Bytes, Frequency, Length, LinkRate, UnitError};
pub use visibility::FilesSeen;
