//! The extended words of VDIF headers that say more than a neighbour's: what a simulator writes, and what a missing frame has.
//!
//! EDV 1 and 3 tell the sampling rate, 2 has a packet number (ALMA), 4 says which channels are there (`vdif_edv4_header` in
//! `vdifio.h` of difx), 0xAB is a Mark5B header.

use nilometer_model::packets::{HeaderKind, Vdif};

use super::VdifHeader;
use crate::mark5b;

/// Mark5B inside VDIF.
const MARK5B: u8 = 0xab;
const SYNC: u32 = 0xacab_feed;
/// As baseband has it; `vdifio.h` names 0xA5AE5. No reader here asks for it.
const ALMA: u32 = 0xa_5ea5;

/// What a simulator writes into the header of packet `number`, of a stream with so many frames a second.
pub(super) fn of(vdif: &Vdif, header: &VdifHeader, number: u64, frames_per_second: u64) -> Option<[u32; 4]> {
    if vdif.header == HeaderKind::Legacy {
        return None;
    }
    let first = u32::from(vdif.edv) << 24;
    Some(match vdif.edv {
        1 | 3 => [first | vdif.sampling(frames_per_second).unwrap_or(0), SYNC, 0, 0],
        2 => [first | ALMA << 4, 0, number as u32, (number >> 32) as u32],
        4 => {
            let channels = vdif.channels.min(64) as u32;
            let there = u64::MAX >> (64 - channels);
            [first | channels << 16, SYNC, there as u32, (there >> 32) as u32]
        }
        MARK5B => mark5b_words(0, header, frames_per_second),
        _ => [first, 0, 0, 0],
    })
}

/// What they are in a frame that did not come, which has this header but for them, and is so many packets later than the one
/// that they are from.
pub(super) fn missing(header: &VdifHeader, ahead: i64, frames_per_second: u64) -> Option<[u32; 4]> {
    let words = header.extended?;
    let [first, second, third, fourth] = words;
    Some(match header.edv()? {
        2 => {
            let number = u64::from(fourth) << 32 | u64::from(third);
            let number = number.wrapping_add_signed(ahead);
            [first, second, number as u32, (number >> 32) as u32]
        }
        4 => [first, second, 0, 0],
        MARK5B => mark5b_words(second, header, frames_per_second),
        _ => words,
    })
}

fn mark5b_words(user: u32, header: &VdifHeader, frames_per_second: u64) -> [u32; 4] {
    mark5b::Mark5bHeader::at(user, header.since_2000(), u64::from(header.frame), frames_per_second).words()
}
