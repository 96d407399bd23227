//! Extended words of VDIF headers that need more than a copy of a neighbour's, for simulated and for missing
//! frames.
//!
//! EDV 1 and 3 give the sampling rate. EDV 2 has a packet number (ALMA). EDV 4 lists the valid channels
//! (`vdif_edv4_header` in `vdifio.h` of difx). EDV 0xAB is a Mark5B header.

use nilometer_model::packets::{HeaderKind, Vdif};

use super::VdifHeader;
use crate::mark5b;

/// Mark5B inside VDIF.
const MARK5B: u8 = 0xab;
const SYNC: u32 = 0xacab_feed;
/// The sync word of baseband. `vdifio.h` gives 0xA5AE5. No reader here checks it.
const ALMA: u32 = 0xa_5ea5;

/// Returns the words that a simulator writes into the header of packet `number`, at this number of frames per
/// second.
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

/// Returns the words for a missing frame. `header` is that of the frame, except for its extended words. These
/// come from the frame `ahead` packets earlier.
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
