//! Packets over UDP, in batches: [`receive`] is how they come.

mod receive;

pub use receive::{Listening, UdpInlet};
