//! Test suites that every sink must pass.

mod sink;

pub use sink::sink_suite;
