//! The serial number in front of packets.

use nilometer_model::packets::{Field, Packets};

use super::Known;

/// Position of the serial number, and the first one that a simulator sends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Serial {
    field: Option<Field>,
    first: u64,
}

impl Serial {
    pub(super) fn new(packets: &Packets, known: &Known) -> Self {
        Serial { field: packets.serial(), first: known.serial }
    }

    /// Returns true if packets have a serial number.
    pub(super) fn is_there(&self) -> bool {
        self.field.is_some()
    }

    /// Bits of the serial number, 64 if there is none.
    pub(super) fn bits(&self) -> u32 {
        self.field.map_or(64, |field| field.width())
    }

    #[inline]
    pub(super) fn read(&self, prefix: &[u8]) -> Option<u64> {
        self.field.map(|field| field.read(prefix))
    }

    /// Writes the serial number of packet `number`, which counts from the first packet.
    pub(super) fn write(&self, number: u64, prefix: &mut [u8]) {
        prefix.fill(0);
        if let Some(field) = self.field {
            field.write(self.first.wrapping_add(number), prefix);
        }
    }

    /// Returns the serial number of the packet `by` packets earlier.
    #[inline]
    pub(super) fn back(&self, serial: u64, by: u64) -> u64 {
        serial.wrapping_sub(by) & (u64::MAX >> (64 - self.bits()))
    }

    /// Returns the number of packets from `from` to `to`, the shorter way around.
    #[inline]
    pub(super) fn distance(&self, from: u64, to: u64) -> i64 {
        let above = 64 - self.bits();
        (to.wrapping_sub(from) << above).cast_signed() >> above
    }
}
