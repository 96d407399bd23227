//! Packets over UDP: `receive` takes them with one thread, `threads` with several, `together` at several
//! addresses, and `leaving` sends them. The system calls, each for many packets, are in [`nilometer_datagram`].

mod address;
mod leaving;
mod receive;
mod senders;
mod threads;
mod together;

pub use address::{Address, AddressError};
pub use nilometer_datagram::{GroupMembership, Sending, UdpOutlet};
pub use receive::{Listening, ROOM, UdpInlet};
pub use threads::{UdpThreads, received_memory};
pub use together::UdpTogether;
