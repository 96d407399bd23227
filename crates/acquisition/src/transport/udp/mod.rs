//! Packets over UDP, in batches: `receive` is how they come, `threads` how they come by several threads, `send` how they
//! leave.

mod address;
mod options;
mod receive;
mod send;
mod senders;
mod threads;

pub use address::{Address, AddressError};
pub use receive::{Listening, ROOM, UdpInlet};
pub use send::{Sending, UdpOutlet};
pub use senders::Allowed;
pub use threads::UdpThreads;
