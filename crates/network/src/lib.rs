//! What the network between the machines of a campaign carries, before anything is said of storage behind it: flows between
//! processes on different machines, by plain sockets whose addresses the processes tell each other, begun together.
//!
//! ```text
//! lead (rank 0)   who sends to whom next, and what came of it -> NetworkResults
//! follow (others) take part
//!   Part          this rank's flows of one trial: listen, connect, send and receive
//!   tcp, udp      one end of a flow
//! ```
//!
//! A flow is measured at its receiver: all bytes that came, over the time from the agreed start until the last had come.
//! Nothing is said between processes meanwhile. How tools of this kind go wrong: a rate that the sender counts has the
//! bytes in it that lie in its own kernel (iperf3's "sender" line).

#![deny(unsafe_code)]

mod connection;
#[expect(unsafe_code, reason = "an option of a socket that is plain memory")]
mod findings;
mod lead;
mod part;
mod reach;
mod subnet;
mod tcp;
mod udp;

pub use lead::{NetworkProgress, NetworkTrials, follow_network, lead_network};
pub use subnet::{Subnet, SubnetError};
