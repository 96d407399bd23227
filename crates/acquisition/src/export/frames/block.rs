//! Reads a block of a recording in a thread: puts each intact frame received into a slot.

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    mpsc::{Receiver, SyncSender},
};

use nilometer_recording::{
    Gap, Packed, Stream,
    instrument::{Content, Origin},
    journal::Encoding,
    reader::{FrameLocation, FrameReader, FrameRecord, Recording},
    view::RecordingView,
};
use nilometer_ring::{Frame, StoredAs};
use nilometer_storage::{Buffer, engine::Wake};

/// A block to read: a frame, or several that came in packets.
pub(super) struct BlockJob {
    pub(super) block: u64,
    /// A slot for each of its frames.
    pub(super) slots: Vec<Buffer>,
    /// All places of the block.
    pub(super) places: Vec<BlockPlace>,
}

/// A place of a block.
pub(super) struct BlockPlace {
    pub(super) at: FrameLocation,
    /// The journal's record of the block there, or the reason why that can't be read.
    pub(super) record: Result<FrameRecord, String>,
}

/// The result of reading a block.
pub(super) struct BlockRead {
    pub(super) block: u64,
    pub(super) frames: Vec<Frame>,
    /// Slots without a frame.
    pub(super) slots: Vec<Buffer>,
    /// Bytes of its frames.
    pub(super) bytes: u64,
    /// If no place has it intact: its first frame, its number of frames, and the damage.
    pub(super) damaged: Option<(u64, u64, String)>,
}

/// Reads blocks. Each thread has one.
#[derive(Clone)]
pub(super) struct BlockReader {
    whole: Arc<RecordingView>,
    /// Encoding of the new recording.
    encoding: Encoding,
    /// Content of simulated frames, made once when a frame without a checksum comes up.
    content: Arc<OnceLock<Option<Content>>>,
}

/// State that a thread keeps from block to block.
struct Kept<'a> {
    recording: &'a Recording,
    frames: FrameReader<'a>,
    /// The decoded block.
    bytes: Vec<u8>,
}

impl BlockReader {
    pub(super) fn new(whole: Arc<RecordingView>, encoding: Encoding) -> Self {
        BlockReader { whole, encoding, content: Arc::default() }
    }

    /// Reads blocks until the job channel closes.
    pub(super) fn run(
        &self,
        jobs: &Mutex<Receiver<BlockJob>>,
        give: &SyncSender<BlockRead>,
        waker: &dyn Wake,
    ) {
        self.whole.recording(|recording| {
            let mut kept = Kept { recording, frames: recording.frames(), bytes: Vec::new() };
            let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            while let Ok(job) = next() {
                if give.send(self.block(&mut kept, job)).is_err() {
                    return;
                }
                waker.wake();
            }
        });
    }

    fn block(&self, kept: &mut Kept<'_>, job: BlockJob) -> BlockRead {
        let BlockJob { block, mut slots, places } = job;
        let mut complaint = None;
        let mut frames = Vec::new();
        let mut bytes = 0;
        for BlockPlace { at, record } in places {
            match record.and_then(|record| self.place(kept, block, at, record, &mut slots)) {
                Ok(read) => {
                    frames = read;
                    bytes = at.extent.size.into();
                    complaint = None;
                    break;
                }
                Err(why) => complaint = complaint.or(Some(why)),
            }
        }
        let of_block = self.whole.frames_of_block();
        let damaged = complaint.map(|why| (block * of_block, of_block, why));
        BlockRead { block, frames, slots, bytes, damaged }
    }

    /// Returns the frames of a block from one place, or the damage there.
    fn place(
        &self,
        kept: &mut Kept<'_>,
        block: u64,
        place: FrameLocation,
        record: FrameRecord,
        slots: &mut Vec<Buffer>,
    ) -> Result<Vec<Frame>, String> {
        let size = self.whole.frame_size() as usize;
        let extent = place.extent;
        if kept.recording.index.stream.is_none() && extent.size as usize != size {
            return Err(format!("it has {} B, and a frame has {size}", extent.size));
        }
        let cant_be_read = |error: std::io::Error| format!("can't be read: {error}");
        kept.bytes.resize(extent.size as usize, 0);
        // Tiles with other sides have the same encoding, so tiles are always made again.
        let is_whole = !matches!(extent.encoding, Encoding::Raw | Encoding::Tiles(..));
        let as_it_is = is_whole && extent.encoding == self.encoding;
        let slot = slots.last_mut().ok_or("it has no slot")?;
        let came_as = if as_it_is {
            let length = kept.frames.read_stored(place, slot).map_err(cant_be_read)?;
            let decoded = extent.encoding.decode(&slot[..length], &mut kept.bytes);
            decoded.map_err(|error| cant_be_read(error.into()))?;
            Some(StoredAs { encoding: extent.encoding, length: extent.length })
        } else {
            kept.frames.read_into(place, &mut kept.bytes).map_err(cant_be_read)?;
            None
        };
        let checksum = crc32fast::hash(&kept.bytes);
        self.check(kept, block, record, checksum)?;
        if self.whole.frames_of_block() > 1 || kept.recording.index.stream.is_some() {
            return Ok(self.split(kept, block, record, slots));
        }
        let mut data = slots.pop().ok_or("it has no slot")?;
        if came_as.is_none() {
            data[..size].copy_from_slice(&kept.bytes);
        }
        let frame = Frame::new(block, record.due, record.due, data);
        Ok(vec![Frame { came_as, checksum: Some(checksum), ..frame }])
    }

    /// Compares a block with its checksum or with the content made again.
    fn check(&self, kept: &Kept<'_>, block: u64, record: FrameRecord, found: u32) -> Result<(), String> {
        if let Some(checksum) = record.checksum {
            return if checksum == found { Ok(()) } else { Err("its checksum is another".into()) };
        }
        let made = || kept.recording.index.origin.as_ref().map(Origin::content).and_then(Result::ok);
        let Some(content) = self.content.get_or_init(made) else { return Ok(()) };
        content.verify(block, &kept.bytes).map_err(|page| format!("differs from byte {} on", page * 4096))
    }

    /// Returns the frames of a block of packets, except those without any packet received.
    fn split(&self, kept: &Kept<'_>, block: u64, record: FrameRecord, slots: &mut Vec<Buffer>) -> Vec<Frame> {
        let index = &kept.recording.index;
        let size = self.whole.frame_size() as usize;
        let first = block * self.whole.frames_of_block();
        let gaps = index.gaps.get(&block).map_or(&[][..], Vec::as_slice);
        let packets = index.stream.as_ref().map_or(1, Stream::packets_of_frame) as u64;
        let mut frames = Vec::new();
        for (number, bytes) in (first..).zip(kept.bytes.chunks_exact(size)) {
            let gaps = gaps_of_frame(gaps, (number - first) * packets..(number - first + 1) * packets);
            if gaps.iter().map(|gap| gap.count).sum::<u64>() >= packets {
                continue;
            }
            let Some(mut data) = slots.pop() else { break };
            data[..size].copy_from_slice(bytes);
            let packed: Option<Packed> = index.stream.as_ref().map(|stream| stream.packed(size, gaps));
            let frame = Frame::new(number, record.due, record.due, data);
            frames.push(Frame { packed: packed.map(Box::new), ..frame });
        }
        frames
    }
}

/// Returns the gaps in a frame that has these packets of its block.
fn gaps_of_frame(gaps: &[Gap], packets: std::ops::Range<u64>) -> Vec<Gap> {
    let cut = |gap: &Gap| {
        let begin = u64::from(gap.at).max(packets.start);
        let end = u64::from(gap.at).saturating_add(gap.count).min(packets.end);
        (begin < end).then(|| Gap { at: (begin - packets.start) as u32, count: end - begin, ..*gap })
    };
    gaps.iter().filter(|gap| gap.filled).filter_map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_of_a_block_are_those_of_its_frames() {
        let gap = |at, count| Gap { at, count, filled: true, sender: None };
        let gaps = [gap(1, 2), gap(6, 7), gap(19, 1)];
        assert_eq!(gaps_of_frame(&gaps, 0..8), [gap(1, 2), gap(6, 2)]);
        assert_eq!(gaps_of_frame(&gaps, 8..16), [gap(0, 5)]);
        assert_eq!(gaps_of_frame(&gaps, 16..24), [gap(3, 1)]);
        assert_eq!(gaps_of_frame(&gaps, 24..32), []);
    }
}
