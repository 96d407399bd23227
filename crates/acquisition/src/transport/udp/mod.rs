//! Packets over UDP, in batches: [`send`] is how they leave.

mod address;
mod options;
mod send;

pub use address::{Address, AddressError};
pub use send::{Sending, UdpOutlet};
