//! UDP packets in batches: many of them with one call of the kernel, in both directions. The content and use
//! of the packets are up to the callers: the recorder, its senders, and the stage that measures a network.
//!
//! ```text
//! packets -> UdpOutlet (send)      one message that the kernel cuts (GSO), or many (sendmmsg)  -> network
//! network -> DatagramBatch (batch) many messages (recvmmsg), each joined by the kernel (GRO)   -> spots
//! ```

mod batch;
mod groups;
mod options;
mod receive_options;
mod send;

pub use batch::{DatagramBatch, DatagramMessage, MESSAGE_BYTES, MESSAGES_AT_ONCE, Spot};
pub use groups::{GroupMembership, join_group, only_own_groups};
pub use options::{interface_index, set_segment};
pub use receive_options::{busy_poll, count_drops, drops, join_segments, receive_room};
pub use send::{Sending, Sent, UdpOutlet};
