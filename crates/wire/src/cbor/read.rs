//! Reads items one after the other. They borrow from the message.

use super::{ByteCut, CborError, CborFault, DataPlace, ITEMS_MAX, MessageBytes};

/// The beginning of an item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum CborItem<'a> {
    Integer(i128),
    /// A byte string of this length. Read it with [`CborReader::place`].
    Bytes(u64),
    Text(&'a str),
    /// A text that is not valid UTF-8, as bytes.
    Garbled(&'a [u8]),
    /// A string of indefinite length. Strings of the same type follow, up to a break.
    Pieces {
        /// True for text, false for bytes.
        text: bool,
    },
    /// This number of items follows, or all up to a break.
    Array(Option<u64>),
    /// This number of pairs follows, or all up to a break.
    Map(Option<u64>),
    /// Another item follows.
    Tag(u64),
    Bool(bool),
    /// Null, undefined, or another simple value.
    Nothing,
    Float(f64),
    Break,
}

/// Reads a message. Clone the reader to come back to its position.
#[derive(Debug, Clone)]
pub(crate) struct CborReader<'a> {
    message: MessageBytes<'a>,
    at: usize,
    /// Number of cuts passed, and the sum of their bytes.
    passed: usize,
    apart: u64,
    items: u32,
}

impl<'a> CborReader<'a> {
    pub(crate) fn new(message: MessageBytes<'a>) -> Self {
        CborReader { message, at: 0, passed: 0, apart: 0, items: 0 }
    }

    /// Returns an error at the reader's position.
    pub(crate) fn fault(&self, fault: CborFault) -> CborError {
        CborError { at: self.at as u64 + self.apart, fault }
    }

    /// Checks that the reader has read everything.
    pub(crate) fn finish(&self) -> Result<(), CborError> {
        let over = self.at == self.message.bytes.len() && self.passed == self.message.cuts.len();
        if over { Ok(()) } else { Err(self.fault(CborFault::Trailing)) }
    }

    /// Reads the beginning of the next item. The caller reads the content of arrays and maps.
    pub(crate) fn item(&mut self) -> Result<CborItem<'a>, CborError> {
        if self.items == ITEMS_MAX {
            return Err(self.fault(CborFault::Many));
        }
        self.items += 1;
        let begin = self.clone();
        let first = self.take(1)?[0];
        let detail = first & 0x1f;
        let kind = first >> 5;
        if kind == 7 {
            return self.simple(detail).ok_or(begin.fault(CborFault::Reserved))?;
        }
        let argument = match (kind, detail) {
            (4 | 5, 31) => None,
            (2 | 3, 31) => return Ok(CborItem::Pieces { text: kind == 3 }),
            (_, 28..) => return Err(begin.fault(CborFault::Reserved)),
            _ => Some(self.argument(detail)?),
        };
        let number = argument.unwrap_or(0);
        Ok(match kind {
            0 => CborItem::Integer(number.into()),
            1 => CborItem::Integer(-1 - i128::from(number)),
            2 => CborItem::Bytes(number),
            3 => self.text(number)?,
            4 => CborItem::Array(argument),
            5 => CborItem::Map(argument),
            _ => CborItem::Tag(number),
        })
    }

    /// Returns the position of a string whose beginning was just read, and moves past it.
    pub(crate) fn place(&mut self, length: u64) -> Result<DataPlace, CborError> {
        if let Some(ByteCut { at, length: cut }) = self.message.cuts.get(self.passed).copied()
            && (at, cut as u64) == (self.at, length)
            && cut > 0
        {
            self.passed += 1;
            self.apart += length;
            return Ok(DataPlace::Apart { cut: self.passed - 1, length: cut });
        }
        let begin = self.at;
        self.take(length)?;
        Ok(DataPlace::Within(begin..self.at))
    }

    fn text(&mut self, length: u64) -> Result<CborItem<'a>, CborError> {
        let bytes = self.take(length)?;
        Ok(std::str::from_utf8(bytes).map_or(CborItem::Garbled(bytes), CborItem::Text))
    }

    /// Skips an item with all its content, at any depth.
    pub(crate) fn skip(&mut self) -> Result<(), CborError> {
        // Number of items left in each enclosing array, map and tag. `None` means up to a break.
        let mut open = vec![Some(1_u64)];
        while let Some(left) = open.last_mut() {
            match left {
                Some(0) => {
                    open.pop();
                    continue;
                }
                Some(left) => *left -= 1,
                None => {}
            }
            match self.item()? {
                CborItem::Bytes(length) => {
                    self.place(length)?;
                }
                CborItem::Array(count) => open.push(count),
                CborItem::Map(count) => open.push(count.map(|pairs| pairs.saturating_mul(2))),
                CborItem::Pieces { .. } => open.push(None),
                CborItem::Tag(_) => open.push(Some(1)),
                CborItem::Break if open.last() == Some(&None) => drop(open.pop()),
                CborItem::Break => return Err(self.fault(CborFault::Break)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the next bytes. A cut may replace only a whole byte string; at any other position the message
    /// counts as ending early.
    fn take(&mut self, length: u64) -> Result<&'a [u8], CborError> {
        let rest = &self.message.bytes[self.at..];
        let cut = self.message.cuts.get(self.passed).map_or(usize::MAX, |cut| cut.at);
        match usize::try_from(length) {
            Ok(length) if length <= rest.len() && (length == 0 || self.at + length <= cut) => {
                self.at += length;
                Ok(&rest[..length])
            }
            _ => Err(self.fault(CborFault::Short)),
        }
    }

    fn argument(&mut self, detail: u8) -> Result<u64, CborError> {
        if detail < 24 {
            return Ok(detail.into());
        }
        let bytes = self.take(1 << (detail - 24))?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Reads a simple value or a float. `None` if the detail is invalid.
    fn simple(&mut self, detail: u8) -> Option<Result<CborItem<'a>, CborError>> {
        Some(match detail {
            20 => Ok(CborItem::Bool(false)),
            21 => Ok(CborItem::Bool(true)),
            0..=23 => Ok(CborItem::Nothing),
            24 => self.argument(24).map(|_| CborItem::Nothing),
            25 => self.argument(25).map(|bits| CborItem::Float(half(bits as u16))),
            26 => self.argument(26).map(|bits| CborItem::Float(f32::from_bits(bits as u32).into())),
            27 => self.argument(27).map(|bits| CborItem::Float(f64::from_bits(bits))),
            31 => Ok(CborItem::Break),
            _ => return None,
        })
    }
}

/// An IEEE 754 binary16: 1 bit sign, 5 bits exponent, 10 bits fraction.
fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    let exponent = i32::from(bits >> 10 & 0x1f);
    let size = match exponent {
        0 => fraction * 2_f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2_f64.powi(exponent - 15),
    };
    if bits >> 15 == 1 { -size } else { size }
}
