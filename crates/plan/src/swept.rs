//! The changes that a plan makes to an instrument of the catalogue.

use std::fmt;

use nilometer_model::{
    Bytes, ChunkShape, Format, FrameCompression, Frequency, Storing, StripeLayout, TargetDescription,
};
use serde::{Deserialize, Serialize};

/// The changes that a plan makes to an instrument of the catalogue. In words they follow the instrument's
/// name.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Swept {
    /// Bytes of samples or pixels in a packet.
    pub payload: Option<Bytes>,
    /// Frames a second of each stream.
    pub rate: Option<Frequency>,
    /// Streams in step.
    pub streams: Option<u64>,
    /// The format of a frame.
    pub format: Option<Format>,
    /// Into which files frames go.
    pub storing: Option<Storing>,
    /// Frames of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames_per_file: Option<u64>,
    /// Bytes of a chunk of packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_size: Option<Bytes>,
    /// Threads that encode frames, over all writers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoders: Option<u32>,
    /// The compression of frames in HDF5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<FrameCompression>,
    /// Pixels of a chunk of an HDF5 dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<ChunkShape>,
    /// Writers, each with a lane of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writers: Option<u32>,
    /// The factor by which bitshuffle with LZ4 compresses the frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compressibility: Option<f64>,
    /// Number of storage devices for each file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stripe_count: Option<u32>,
    /// Bytes written to a storage device before the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stripe_size: Option<Bytes>,
    /// Number of machines, the first ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// Number of processes on each of them, the first ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
}

impl Swept {
    /// The requested layout of files on storage devices.
    pub fn layout(&self) -> StripeLayout {
        let Swept { stripe_count, stripe_size, .. } = *self;
        StripeLayout { stripe_count, stripe_size, ..StripeLayout::default() }
    }

    /// The same, as far as you can choose it on this target.
    pub fn layout_on(&self, target: &TargetDescription) -> StripeLayout {
        target.striping.map(|control| control.choosable(&self.layout())).unwrap_or_default()
    }
}

/// The instrument of recordings. Reports compare recordings of one instrument with each other, with any
/// goals.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordedInstrument {
    /// The instrument's name in the catalogue.
    pub name: String,
    /// The plan's changes to it.
    pub swept: Swept,
    /// Number of such instruments, each with its own recorder.
    pub count: u32,
}

impl RecordedInstrument {
    /// The instrument and the plan's changes, in words, without the count.
    pub fn label(&self) -> String {
        format!("{}{}", self.name, self.swept)
    }
}

impl fmt::Display for RecordedInstrument {
    /// The instrument with its count, if that is not one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count > 1 {
            write!(f, "{} x ", self.count)?;
        }
        f.write_str(&self.label())
    }
}

impl fmt::Display for Swept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Swept { payload, rate, streams, format, storing, encoders, compression, chunk, writers, .. } =
            self;
        payload.map_or(Ok(()), |payload| write!(f, " in packets of {payload}"))?;
        rate.map_or(Ok(()), |rate| write!(f, " at {rate}"))?;
        streams.map_or(Ok(()), |streams| write!(f, " in {streams} streams"))?;
        format.map_or(Ok(()), |format| write!(f, " as {}", format.name()))?;
        storing.map_or(Ok(()), |storing| write!(f, ", {}", storing.name()))?;
        match self.frames_per_file {
            None => Ok(()),
            Some(1) => f.write_str(", 1 frame a file"),
            Some(frames) => write!(f, ", {frames} frames a file"),
        }?;
        self.chunk_size.map_or(Ok(()), |size| write!(f, ", in chunks of {size}"))?;
        encoders.map_or(Ok(()), |encoders| write!(f, ", encoded by {encoders}"))?;
        chunk.map_or(Ok(()), |chunk| write!(f, " in {chunk}"))?;
        compression.map_or(Ok(()), |compression| write!(f, ", {}", compression.name()))?;
        self.compressibility.map_or(Ok(()), |factor| write!(f, ", compressibility {factor}"))?;
        match writers {
            None => Ok(()),
            Some(1) => f.write_str(", 1 lane"),
            Some(writers) => write!(f, ", {writers} lanes"),
        }?;
        let Swept { stripe_count, stripe_size, nodes, processes, .. } = self;
        stripe_count.map_or(Ok(()), |count| write!(f, ", stripe count {count}"))?;
        stripe_size.map_or(Ok(()), |size| write!(f, ", stripes of {size}"))?;
        match processes {
            None => Ok(()),
            Some(1) => f.write_str(", 1 process a node"),
            Some(processes) => write!(f, ", {processes} processes a node"),
        }?;
        match nodes {
            None => Ok(()),
            Some(1) => f.write_str(", 1 node"),
            Some(nodes) => write!(f, ", {nodes} nodes"),
        }
    }
}
