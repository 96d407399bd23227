//! The frames of a series that arrive as messages, one for each image, and their way into a recording.
//!
//! ```text
//! PullSocket -> ZmqMessage -> SeriesReception: decoder -> SeriesCheck (which frames?) -> FrameIntake -> ring
//!      | pixels are read into slots that the intake gives, if they are of the series that is recorded
//! ```
//!
//! A frame is one channel of one image. Image `i` of `n` channels gives the frames `i * n` to `i * n + n -
//! 1`, in the order in which the start of the series names the channels. Frames arrive in any order, on any
//! number of connections. A frame keeps its bytes as received, compressed or not.
//!
//! A series is over when all its frames are there, or when nothing of it arrives for some time. Its end
//! message may overtake images on other connections, and only shortens that time. The series is also over
//! when another one begins behind it; the messages of that one wait for the next recording.

mod admission;
mod awaited;
mod check;
mod description;
mod lent_receiver;
#[cfg(test)]
mod misbehaving;
mod queued;
mod receiver;
mod reception;
mod relay;
mod ring_intake;
mod sender;
mod tally;
#[cfg(test)]
mod tests;
mod traffic;
mod waiting_room;

pub use awaited::AwaitedSeries;
pub use check::SeriesCheck;
pub use description::DescribedSeries;
pub use lent_receiver::{LentReceiver, ReceiverReturn};
pub use receiver::SeriesReceiver;
pub use relay::SeriesRelay;
pub use ring_intake::{RingIntake, SeriesStorage};
pub use sender::{SendOverflow, SendQueueLimits, SentSeries, SimulatedSeries, StreamVersion};
pub use tally::{SeriesRefusal, SeriesTally};
pub use traffic::{SeriesEnding, SeriesTraffic, SeriesUntil};

use std::{fmt::Debug, ops::Range};

use nilometer_model::Nanos;
use nilometer_storage::Buffer;
use nilometer_wire::series::{ElementType, ImageTimes, Packing, SeriesImage, SeriesStart};

use crate::transport::zeromq::ZmqMessage;

/// A received frame.
#[derive(Debug)]
pub struct SeriesFrame {
    /// Its place in the recording, from 0.
    pub number: u64,
    /// When it was complete.
    pub arrived: Nanos,
    /// A slot of the intake with its bytes.
    pub data: Buffer,
    /// Number of bytes in the slot that belong to the frame.
    pub length: usize,
    /// Number of bytes when unpacked.
    pub size: u64,
    /// How its bytes are packed.
    pub packing: Packing,
    /// The type of a pixel.
    pub element: ElementType,
    /// When the image was taken.
    pub times: ImageTimes,
    /// MD5 of its bytes as the sender sent them, if it states one.
    pub hash: Option<[u8; 16]>,
}

/// A frame that an intake does not take.
#[derive(Debug)]
pub struct RefusedFrame {
    /// Its slot.
    pub slot: Buffer,
    /// The fault of its bytes.
    pub fault: String,
}

/// The answer to a request for a slot.
#[derive(Debug)]
pub enum SlotAnswer {
    /// A free slot.
    Free(Buffer),
    /// There is no slot now: the sender must wait.
    Wait,
    /// There is no slot, and the sender does not wait: this frame is lost.
    Lost,
    /// No slot is large enough.
    TooLong,
}

/// A destination for frames. It gives out slots of memory and takes them back with frames in them.
pub trait FrameIntake: Debug {
    /// Asks for a slot for `length` bytes.
    fn slot(&mut self, now: Nanos, length: usize) -> SlotAnswer;
    /// Returns an unused slot.
    fn give_back(&mut self, slot: Buffer);
    /// Begins the series. Arrays of its start lie in the message.
    ///
    /// # Errors
    ///
    /// If the recording can't hold this series, with the reason. No frame of the series is then
    /// taken.
    fn begin(&mut self, now: Nanos, start: &SeriesStart, message: &ZmqMessage) -> Result<(), String>;
    /// Takes the values of an image beside its pixels.
    fn noted(&mut self, image: &SeriesImage) {
        let _ = image;
    }
    /// Maximum number of frames. `None` if there is no limit: a series may bring more than it announced.
    fn frames_max(&self) -> Option<u64> {
        None
    }
    /// Takes a frame of the series that has not arrived before.
    ///
    /// # Errors
    /// If its bytes are not those of a frame.
    fn take(&mut self, now: Nanos, frame: SeriesFrame) -> Result<(), RefusedFrame>;
    /// Called repeatedly, whether or not messages arrive.
    fn tend(&mut self, now: Nanos) {
        let _ = now;
    }
    /// Reports that the receiver itself did not run for this long.
    fn halted(&mut self, length: Nanos) {
        let _ = length;
    }
    /// Reports frames that are missing at the end of the series.
    fn missing(&mut self, now: Nanos, frames: Range<u64>);
}
