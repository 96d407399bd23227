//! Packets over UDP: `receive` is how they come, `threads` how they come by several threads, `leaving` how they leave. The
//! calls of the kernel, each for many packets, are made elsewhere ([`nilometer_datagram`]).

mod address;
mod leaving;
mod receive;
mod senders;
mod threads;

pub use address::{Address, AddressError};
pub use nilometer_datagram::{Sending, UdpOutlet};
pub use receive::{Listening, ROOM, UdpInlet};
pub use threads::{UdpThreads, received_memory};
