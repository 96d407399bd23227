//! The PCI Express links between a disk and the processor.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ByteRate;

/// The link of a device on PCI Express, towards the processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PcieLink {
    /// The address of the device, such as `0000:01:00.0`.
    pub address: String,
    /// Lanes in use.
    pub width: u32,
    /// Megatransfers per second of a lane: 8000 for 8.0 GT/s.
    pub megatransfers: u32,
    /// Lanes that the device has.
    pub width_max: u32,
    /// Megatransfers per second that the device can do.
    pub megatransfers_max: u32,
}

impl PcieLink {
    /// The rate in one direction, before the overhead of packets. Up to 5 GT/s a byte takes 10 bits on the wire
    /// (8b/10b), beyond that 16 bytes take 130 (PCI Express Base Specification 3.0, section 4.2).
    pub fn rate(&self) -> ByteRate {
        let per_byte = if self.megatransfers <= 5000 { 10.0 } else { 8.0 * 130.0 / 128.0 };
        ByteRate(f64::from(self.megatransfers) * 1e6 / per_byte * f64::from(self.width))
    }

    /// True if the link runs with fewer lanes, or slower, than its device can.
    pub fn is_reduced(&self) -> bool {
        self.width < self.width_max || self.megatransfers < self.megatransfers_max
    }
}

/// `8.0 GT/s x4`.
fn speed(megatransfers: u32, width: u32) -> String {
    format!("{:.1} GT/s x{width}", f64::from(megatransfers) / 1000.0)
}

impl fmt::Display for PcieLink {
    /// `PCIe 8.0 GT/s x4, of 16.0 GT/s x4 possible`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PCIe {}", speed(self.megatransfers, self.width))?;
        if self.is_reduced() {
            let possible = speed(self.megatransfers_max, self.width_max);
            return write!(f, ", of {possible} possible");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_tells_its_rate_and_if_it_could_be_faster() {
        let link = |megatransfers, width| PcieLink {
            address: "0000:01:00.0".into(),
            width,
            megatransfers,
            width_max: 8,
            megatransfers_max: 8000,
        };
        let full = link(8000, 8);
        assert_eq!(
            (full.rate().to_string(), full.to_string().as_str()),
            ("7.88 GB/s".into(), "PCIe 8.0 GT/s x8")
        );
        let slow = link(2500, 4);
        assert_eq!(slow.rate().to_string(), "1 GB/s");
        assert_eq!(slow.to_string(), "PCIe 2.5 GT/s x4, of 8.0 GT/s x8 possible");
    }
}
