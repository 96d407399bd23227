//! Finds the long byte strings of a message as it arrives, so that the receiver can read each into its own
//! memory.
//!
//! CBOR items follow one another independent of nesting: a first byte, an argument and, for strings, the bytes.
//! The scanner therefore only keeps its position:
//!
//! ```text
//! a3 64 "type" 65 "image" .. d8 46 da 00 00 dc b4 83 65 "bslz4" 04 5a 00 0f 42 40 | a million bytes | ..
//!                                                                  a string of so many bytes: apart
//! ```
//!
//! The scanner reports no errors. In bytes that are no CBOR it finds no more strings, and the reader later
//! names the fault.

/// The next event in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scanned {
    /// The scanner needs more bytes of the message.
    More,
    /// A long byte string begins.
    String {
        /// Number of the message's remaining bytes in front of it, without strings taken out.
        at: usize,
        /// Bytes of the string.
        length: u64,
    },
}

/// Scans the bytes of a message as they arrive.
#[derive(Debug, Clone, Default)]
pub struct StringScanner {
    /// Position of the next item in the remaining bytes.
    at: u64,
    /// True if the bytes are no CBOR.
    lost: bool,
}

impl StringScanner {
    /// Looks for the next byte string of at least `least` bytes. `own` holds all bytes of the message so far,
    /// without the strings found before, unless [`StringScanner::along`] left them in.
    pub fn next(&mut self, own: &[u8], least: u64) -> Scanned {
        while !self.lost {
            let Some(rest) = usize::try_from(self.at).ok().and_then(|at| own.get(at..)) else { break };
            let Some(first) = rest.first() else { break };
            let detail = first & 0x1f;
            let size = if (24..28).contains(&detail) { 1 << (detail - 24) } else { 0 };
            let Some(argument) = rest.get(1..=size) else { break };
            self.at += 1 + size as u64;
            self.lost = (28..31).contains(&detail);
            let number = match detail {
                0..24 => u64::from(detail),
                _ => argument.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
            };
            match first >> 5 {
                2 if number >= least && detail != 31 => {
                    return Scanned::String { at: self.at as usize, length: number };
                }
                2 | 3 => self.at = self.at.saturating_add(number),
                _ => {}
            }
        }
        Scanned::More
    }

    /// Leaves the string found last in the message: its `length` bytes follow with the rest.
    pub fn along(&mut self, length: u64) {
        self.at = self.at.saturating_add(length);
    }
}
