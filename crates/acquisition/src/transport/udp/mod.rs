//! Packets over UDP, in batches: [`receive`] is how they come, [`send`] how they leave.

mod address;
mod options;
mod receive;
mod send;

pub use address::{Address, AddressError};
pub use receive::{Listening, UdpInlet};
pub use send::{Sending, UdpOutlet};
