//! For tests: frames, and files in memory.

use std::io;

use nilometer_wire::{mark5b::Mark5bHeader, vdif::VdifHeader};

use crate::recording_storage::StoredFile;

/// Frames a second of each thread.
pub(crate) const RATE: u64 = 10;

/// A file in memory.
#[derive(Debug)]
pub(crate) struct InMemory(pub(crate) Vec<u8>);

impl StoredFile for InMemory {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}

/// Frame `number` of a thread, with samples that differ from frame to frame.
pub(crate) fn vdif_frame(number: u64, thread: u16, length: usize, is_legacy: bool) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length).map(|at| (at as u64 * 7 + number * 13) as u8 | 1).collect();
    let header = VdifHeader {
        invalid: false,
        epoch: 52,
        second: 1000 + (number / RATE) as u32,
        frame: (number % RATE) as u32,
        version: 1,
        channels_log2: 0,
        length,
        complex: false,
        bits: 2,
        thread,
        station: 0x4d63,
        extended: (!is_legacy).then_some([0; 4]),
    };
    header.write(&mut bytes);
    bytes
}

/// Mark5B frame `number`.
pub(crate) fn mark5b_frame(number: u64) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..10_016).map(|at| (at * 7 + number * 13) as u8 | 1).collect();
    Mark5bHeader::at(0, 800_000_000 + number / RATE, number % RATE, RATE).write(&mut bytes);
    bytes
}
