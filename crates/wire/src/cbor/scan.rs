//! Finds the long byte strings of a message while it comes, so that each can be read into memory of its own.
//!
//! Items of CBOR follow one another without regard to what contains what: a first byte, an argument, and, for strings, so
//! many bytes. So the scanner keeps no more than its place:
//!
//! ```text
//! a3 64 "type" 65 "image" .. d8 46 da 00 00 dc b4 83 65 "bslz4" 04 5a 00 0f 42 40 | a million bytes | ..
//!                                                                  a string of so many bytes: apart
//! ```
//!
//! It judges nothing: of bytes that are no CBOR it takes nothing out any more, and the reader says what is wrong.

/// What follows in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scanned {
    /// More of the message has to come before it can be said.
    More,
    /// Behind so many bytes of the message's own, a byte string of so many bytes begins.
    String {
        /// The message's own bytes in front of it: what came apart is not counted.
        at: usize,
        /// Its bytes.
        length: u64,
    },
}

/// Goes through the bytes of a message as they come.
#[derive(Debug, Clone, Default)]
pub struct StringScanner {
    /// The message's own bytes up to the beginning of the item that is next.
    at: u64,
    /// There is no sense in the bytes.
    lost: bool,
}

impl StringScanner {
    /// Looks for the next byte string of `least` bytes or more. `own` is all that came of the message but the strings that it
    /// found before: those were read elsewhere if `apart` was said of them.
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

    /// The string that was found comes with the rest of the message after all.
    pub fn along(&mut self, length: u64) {
        self.at = self.at.saturating_add(length);
    }
}
