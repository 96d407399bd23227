//! Fills missing blocks with frames that the stream's format makes from the nearest ones present.

use std::sync::{MutexGuard, PoisonError};

use nilometer_model::packets::{Cut, Field, PacketFormat, Packets, Serial};

use super::{Extent, RecordingView, State, Survey};
use crate::reader::Recording;
use nilometer_wire::{Known, Near, Stamps, WireFormat};

/// The format of a recording's packets, with all known facts, and the last frame used as a model.
#[derive(Debug)]
pub(super) struct Filling {
    format: Option<Box<dyn WireFormat>>,
    near: Option<(u64, Neighbour)>,
}

/// A frame that exists, by its number in the stream as sent. The number also counts frames left out near it.
#[derive(Debug, Clone)]
struct Neighbour {
    number: i64,
    head: Vec<u8>,
}

/// Number of blocks on each side in which to look for a readable frame.
const NEAR: usize = 16;
/// Attempts to read the newest block, which a recorder may overwrite meanwhile.
const TRIES: usize = 3;

impl RecordingView {
    /// Makes the content for a part of a missing block.
    pub(super) fn fill_block(&self, block: u64, within: u64, into: &mut [u8]) {
        let frames_of_block = self.frames_of_block().cast_signed();
        let mut filling = self.filling();
        if filling.is_none() {
            // The survey reads frames, which must happen without the lock.
            drop(filling);
            let survey = self.survey();
            let wire = self.wire();
            let format = wire.and_then(|wire| format_of(&wire.packets, &wire.known(), &survey));
            filling = self.filling();
            filling.get_or_insert(Filling { format, near: None });
        }
        let Some(Filling { format: Some(format), near }) = filling.as_mut() else { return into.fill(0) };
        if near.as_ref().is_none_or(|(of, _)| *of != block) {
            let found = self.neighbour(block).or_else(|| self.newest());
            // While a ring is overwritten faster than it can be read, an earlier neighbour is better than none.
            let found = found.or_else(|| near.take().map(|(_, neighbour)| neighbour));
            *near = found.map(|neighbour| (block, neighbour));
        }
        let near = near.as_ref().map(|(_, neighbour)| neighbour);
        let mut at = within;
        let end = within + into.len() as u64;
        while at < end {
            let number = at / self.frame_size;
            let begin = at % self.frame_size;
            let length = (self.frame_size - begin).min(end - at);
            let number = block.cast_signed() * frames_of_block + number.cast_signed();
            let to = &mut into[(at - within) as usize..][..length as usize];
            make(format.as_ref(), near, number, begin as usize, to);
            at += length;
        }
    }

    fn filling(&self) -> MutexGuard<'_, Option<Filling>> {
        self.filling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last readable frame before a block, or else the first after it.
    fn neighbour(&self, block: u64) -> Option<Neighbour> {
        let (before, behind) = {
            let State { recording, .. } = &*self.state();
            let frames = &recording.index.frames;
            let before = std::iter::successors(frames.previous(block), |block| frames.previous(*block));
            let before: Vec<u64> = before.take(NEAR).collect();
            let behind: Vec<u64> = frames.numbers(block + 1..u64::MAX).take(NEAR).collect();
            (before, behind)
        };
        let frames_of_block = self.frames_of_block().cast_signed();
        let mut head = vec![0; self.frame_size.min(Stamps::BYTES as u64) as usize];
        for block in before {
            let place = self.state().recording.index.frames.get(block);
            let last = place.map_or(self.block_size, |place| place.extent.size.into()) / self.frame_size;
            let Some(last) = last.checked_sub(1) else { continue };
            if self.head(block, last * self.frame_size, &mut head).is_some() {
                let number = block.cast_signed() * frames_of_block + last.cast_signed();
                return Some(Neighbour { number: number - self.left_out(block, last), head });
            }
        }
        let found = behind.into_iter().find(|block| self.head(*block, 0, &mut head).is_some())?;
        Some(Neighbour { number: found.cast_signed() * frames_of_block, head })
    }

    /// Returns the first frame of the newest block of a recording in progress, for a block whose neighbours the
    /// recorder is just overwriting. A ring overwrites its newest block last.
    fn newest(&self) -> Option<Neighbour> {
        if self.extent == Extent::All || self.is_over() {
            return None;
        }
        let frames_of_block = self.frames_of_block().cast_signed();
        let mut head = vec![0; self.frame_size.min(Stamps::BYTES as u64) as usize];
        (0..TRIES).find_map(|_| {
            self.gain(Recording::look);
            let newest = self.recording(|recording| recording.index.frames.previous(u64::MAX))?;
            self.head(newest, 0, &mut head)?;
            Some(Neighbour { number: newest.cast_signed() * frames_of_block, head: head.clone() })
        })
    }

    /// Number of frames left out at the end of a block, after its last one.
    fn left_out(&self, block: u64, last: u64) -> i64 {
        let State { recording, .. } = &*self.state();
        let parts =
            recording.index.stream.as_ref().map_or(1, |stream| stream.packets_of_frame().max(1)) as u64;
        let gaps = recording.index.gaps.get(&block).into_iter().flatten();
        let behind = gaps.filter(|gap| !gap.filled && u64::from(gap.at) > last * parts);
        behind
            .map(|gap| gap.count / parts)
            .fold(0, u64::saturating_add)
            .min(i64::MAX as u64 / 4)
            .cast_signed()
    }
}

/// Makes the bytes of frame `number` from offset `from` on, part by part.
fn make(format: &dyn WireFormat, near: Option<&Neighbour>, number: i64, from: usize, into: &mut [u8]) {
    let near = near.map(|near| Near { bytes: &near.head, ahead: number - near.number });
    let mut begin = 0;
    let to = from + into.len();
    let mut bytes = Vec::new();
    for (part, length) in format.geometry().parts.iter().enumerate() {
        let first = begin.max(from);
        let end = (begin + length).min(to);
        if first < end {
            bytes.resize(*length, 0);
            format.fill(near, part, &mut bytes);
            into[first - from..end - from].copy_from_slice(&bytes[first - begin..end - begin]);
        }
        begin += length;
    }
}

/// Returns the format of these packets as the recording has their frames: whole, and in the order of threads
/// that the survey found.
fn format_of(packets: &Packets, known: &Known, survey: &Survey) -> Option<Box<dyn WireFormat>> {
    let mut packets = packets.clone();
    // The recording lacks the serial numbers of packets. Only formats that need one read this field.
    let numbered = Some(Serial::At(Field::new(0, 8)));
    match &mut packets.format {
        PacketFormat::Vdif(vdif) => {
            let seen = survey.lanes.iter().map(|(_, thread)| *thread).collect::<Vec<_>>();
            vdif.threads = vdif.threads.take().or(Some(seen).filter(|seen| !seen.is_empty()));
            packets.serial = numbered;
        }
        PacketFormat::Mark5b(mark5b) => {
            (mark5b.frame, packets.serial) = (Cut::Whole, numbered);
        }
        PacketFormat::Raw(_) => packets.serial = numbered,
        _ => {}
    }
    let known = Known { frames_per_second: survey.frames_per_second, ..*known };
    nilometer_wire::of(&packets, &known).ok()
}
