//! What every sink and every transport must do, whoever wrote it.

mod misbehaving_sender;
mod serial_format;
mod sink;
mod transport;

pub use misbehaving_sender::{ScenarioSeries, SenderScenario, SentKind, SentMessage};
pub use serial_format::SerialFormat;
pub use sink::sink_suite;
pub use transport::{MakeTransport, transport_suite};
