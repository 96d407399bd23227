//! Measures the network between the machines of a campaign, before any storage behind it. Flows run between
//! processes on different machines over plain sockets. The processes tell each other the addresses and begin
//! together.
//!
//! ```text
//! lead (rank 0)   who sends to whom next, and what came of it -> NetworkResults
//!   machines      who can be reached, and where
//! follow (others) take part
//!   together      one trial, at every rank
//!   Part          this rank's flows of it: listen, connect, send and receive
//!   tcp, udp      one end of a flow
//!   observe       the counters of this machine meanwhile
//!   socket_settings  options of sockets that a plan asks for
//! ```
//!
//! A flow is measured at its receiver: all bytes received, over the time from the agreed start until the last
//! byte. Processes exchange no messages meanwhile. A rate counted by the sender is wrong: it includes bytes
//! that are still in its own kernel (iperf3's "sender" line).

#![deny(unsafe_code)]

mod connection;
mod lead;
mod machines;
mod observe;
#[expect(unsafe_code, reason = "options of a socket that are plain memory")]
mod options;
mod part;
mod reach;
mod socket_settings;
mod span;
mod tcp;
mod together;
mod udp;

pub use lead::{NetworkLead, NetworkProgress, follow_network, lead_network};
pub use machines::{ReachedMachines, own_address, reached_machines, say_reachable};
pub use together::take_part;
