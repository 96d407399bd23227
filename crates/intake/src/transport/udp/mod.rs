//! Packets over UDP: `receive` takes them with one thread, `threads` with several, `together` at several
//! addresses, `routes` for several recordings, and `leaving` sends them. The system calls, each for many packets, are
//! in [`nilometer_datagram`].

mod address;
mod leaving;
mod receive;
mod routes;
mod senders;
mod threads;
mod together;

pub use address::{Address, AddressError};
pub use nilometer_datagram::{GroupMembership, Sending, UdpOutlet};
pub use receive::{Listening, ROOM, UdpInlet};
pub use routes::{ROUTE_BYTES, RoutedInlet};
pub use threads::{UdpThreads, received_memory};
pub use together::UdpTogether;
