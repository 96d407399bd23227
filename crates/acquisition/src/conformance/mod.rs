//! What every sink must do, whoever wrote it.

mod sink;

pub use sink::sink_suite;
