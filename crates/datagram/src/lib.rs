//! Packets over UDP in batches: many of them with one call of the kernel, both ways. Whose packets they are, and what becomes
//! of them, others know: the recorder and those that send to it, and the stage that measures a network.
//!
//! ```text
//! packets -> UdpOutlet (send)      one message that the kernel cuts (GSO), or many (sendmmsg)  -> network
//! network -> DatagramBatch (batch) many messages (recvmmsg), each joined by the kernel (GRO)   -> spots
//! ```

mod batch;
mod options;
mod receive_options;
mod send;

pub use batch::{DatagramBatch, DatagramMessage, MESSAGES_AT_ONCE, Spot};
pub use options::set_segment;
pub use receive_options::{busy_poll, count_drops, drops, join_group, join_segments, receive_room};
pub use send::{Sending, Sent, UdpOutlet};
