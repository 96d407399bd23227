//! The serial number in front of packets.

use nilometer_model::packets::{Field, Packets};

use super::Known;

/// Where it stands, and which the first is that a simulator sends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Serial {
    field: Option<Field>,
    first: u64,
}

impl Serial {
    pub(super) fn new(packets: &Packets, known: &Known) -> Self {
        Serial { field: packets.serial(), first: known.serial }
    }

    /// Whether there is one.
    pub(super) fn is_there(&self) -> bool {
        self.field.is_some()
    }

    /// Bits of it; 64 if there is none.
    pub(super) fn bits(&self) -> u32 {
        self.field.map_or(64, |field| field.width())
    }

    #[inline]
    pub(super) fn read(&self, prefix: &[u8]) -> Option<u64> {
        self.field.map(|field| field.read(prefix))
    }

    /// Writes that of packet `number`, from the first one on.
    pub(super) fn write(&self, number: u64, prefix: &mut [u8]) {
        prefix.fill(0);
        if let Some(field) = self.field {
            field.write(self.first.wrapping_add(number), prefix);
        }
    }

    /// The serial number so many before.
    #[inline]
    pub(super) fn back(&self, serial: u64, by: u64) -> u64 {
        serial.wrapping_sub(by) & (u64::MAX >> (64 - self.bits()))
    }

    /// How many packets `to` is later than `from`, the nearer way round.
    #[inline]
    pub(super) fn distance(&self, from: u64, to: u64) -> i64 {
        let above = 64 - self.bits();
        (to.wrapping_sub(from) << above).cast_signed() >> above
    }
}
