//! Tests that every transport must pass, including those of other crates, and a sender of series that
//! misbehaves.

mod misbehaving_sender;
mod serial_format;
mod transport;

pub use misbehaving_sender::{ScenarioSeries, SenderScenario, SentKind, SentMessage};
pub use serial_format::SerialFormat;
pub use transport::{MakeTransport, transport_suite};
