//! Writes items in the shortest form, as RFC 8949 4.2 has it.

/// Appends items to bytes.
#[derive(Debug, Default)]
pub(crate) struct CborWriter(pub(crate) Vec<u8>);

impl CborWriter {
    pub(crate) fn unsigned(&mut self, number: u64) {
        self.head(0, number);
    }

    pub(crate) fn integer(&mut self, number: i128) {
        let positive = u64::try_from(number);
        let negative = u64::try_from(-1 - number);
        match (positive, negative) {
            (Ok(number), _) => self.head(0, number),
            (_, Ok(number)) => self.head(1, number),
            _ => self.float(number as f64),
        }
    }

    /// The beginning of a byte string: its bytes follow.
    pub(crate) fn bytes(&mut self, length: u64) {
        self.head(2, length);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.head(3, text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn array(&mut self, items: u64) {
        self.head(4, items);
    }

    pub(crate) fn map(&mut self, pairs: u64) {
        self.head(5, pairs);
    }

    pub(crate) fn tag(&mut self, tag: u64) {
        self.head(6, tag);
    }

    pub(crate) fn bool(&mut self, value: bool) {
        self.0.push(if value { 0xf5 } else { 0xf4 });
    }

    pub(crate) fn null(&mut self) {
        self.0.push(0xf6);
    }

    pub(crate) fn float(&mut self, value: f64) {
        self.0.push(0xfb);
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    fn head(&mut self, kind: u8, argument: u64) {
        let bytes = argument.to_be_bytes();
        let (detail, size) = match argument {
            0..24 => (argument as u8, 0),
            24..0x100 => (24, 1),
            0x100..0x1_0000 => (25, 2),
            0x1_0000..0x1_0000_0000 => (26, 4),
            _ => (27, 8),
        };
        self.0.push(kind << 5 | detail);
        self.0.extend_from_slice(&bytes[8 - size..]);
    }
}
