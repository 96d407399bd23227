//! EIGER detectors of the Paul Scherrer Institute: half modules that send from two ports each.

use serde::{Deserialize, Serialize};

use super::Detector;
use crate::Bytes;

/// The half modules of an EIGER, each with a left and a right port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EigerHalves {
    /// Number of half modules of 256 x 1024 pixels, 1 to 512. A module has two: top and bottom.
    pub halves: u16,
    /// Bytes of pixels in a packet: 4096 over 10 Gbit/s (`tengiga 1`), 1024 over 1 Gbit/s.
    #[serde(default = "over_10_gigabit")]
    pub payload: Bytes,
}

fn over_10_gigabit() -> Bytes {
    Bytes(4096)
}

/// The number of EIGER in `sls_detector_header`.
const EIGER: u64 = 1;
const HALVES_MAX: u16 = 512;
/// Ports of a half module: left and right.
pub(super) const PORTS_OF_HALF: u16 = 2;
/// Pixels that come to a port: 256 rows of 512 columns.
const PIXELS_OF_PORT: u64 = 256 * 512;
/// Bits of a pixel (`dr`) that the detector has.
const BITS: [u64; 5] = [4, 8, 12, 16, 32];

impl EigerHalves {
    /// Number of ports, each of which brings 256 x 512 pixels.
    pub(super) fn ports(self) -> u16 {
        self.halves.saturating_mul(PORTS_OF_HALF)
    }

    /// The layout of packets for frames of this size. Packets follow the header of all detectors of this
    /// institute, and have the rows of a port in their order.
    ///
    /// Source: slsDetectorPackage, `detectorType` in `sls_detector_defs.h` and `EigerData` in `GeneralData.h`;
    /// `start_timer` and `configureMAC` in `slsDetectorFunctionList.c` of eigerDetectorServer. The latter swaps
    /// the ports of a bottom half, so that the left columns always go to the first port.
    pub(super) fn detector(self, frame: Bytes) -> Detector {
        let port = frame.0 / u64::from(self.ports().max(1));
        let packets = port.div_ceil(self.payload.0.max(1));
        Detector { modules: self.ports(), ..Detector::sls(EIGER, packets, self.payload) }
    }

    /// Takes the half modules of this number of ports.
    pub(super) fn take_ports(&mut self, ports: u16) {
        self.halves = ports / PORTS_OF_HALF;
    }

    pub(super) fn check(self, frame: Bytes) -> Result<(), String> {
        let EigerHalves { halves, payload } = self;
        if !(1..=HALVES_MAX).contains(&halves) {
            return Err(format!("halves = {halves}: write 1 to {HALVES_MAX}"));
        }
        if ![1024, 4096].contains(&payload.0) {
            return Err(format!(
                "payload = \"{payload}\": write \"4096 B\" for 10 Gbit/s, or \"1024 B\" for 1 Gbit/s"
            ));
        }
        let ports = u64::from(self.ports());
        if !BITS.iter().any(|bits| ports * PIXELS_OF_PORT * bits / 8 == frame.0) {
            return Err(format!(
                "halves = {halves}: write shape = [{ports}, 256, 512], with pixels of 8, 12, 16 or 32 bits"
            ));
        }
        Ok(())
    }

    /// The half module and the side of a port.
    pub(super) fn port_name(port: u16) -> String {
        let side = if port.is_multiple_of(PORTS_OF_HALF) { "left" } else { "right" };
        format!("the {side} port of half module {}", port / PORTS_OF_HALF)
    }
}
