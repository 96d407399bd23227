//! Receives frames from a network, and sends them as a simulated instrument does.
//!
//! They arrive as packets over UDP and TCP, or as images in ZeroMQ messages; further messages carry values
//! that belong to frames.
//!
//! ```text
//! network -> transport -> receiver -> assembly (format) -> ring
//! network -> PULL of ZeroMQ -> series (frames by number) -> ring
//! ```

#![forbid(unsafe_code)]

pub mod assembly;
#[cfg(any(test, feature = "test-kit"))]
pub mod conformance;
mod expected;
pub mod joined;
mod receiver;
mod reception_end;
pub mod replay;
mod scan_streams;
pub mod senders;
pub mod series;
pub mod transport;

pub use expected::{Blocks, Expected};
pub use receiver::{Receiver, Span, Traffic, Until};
pub use reception_end::ReceptionEnd;
pub use scan_streams::{ScanMember, ScanStreams};
