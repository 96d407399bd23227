//! What every transport must do, whoever wrote it; and a sender of series that does what none should.

mod misbehaving_sender;
mod serial_format;
mod transport;

pub use misbehaving_sender::{ScenarioSeries, SenderScenario, SentKind, SentMessage};
pub use serial_format::SerialFormat;
pub use transport::{MakeTransport, transport_suite};
