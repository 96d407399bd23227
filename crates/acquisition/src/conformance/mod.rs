//! What every sink and every transport must do, whoever wrote it.

mod sink;
mod transport;

pub use sink::sink_suite;
pub use transport::{MakeTransport, transport_suite};
