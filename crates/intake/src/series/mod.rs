//! Frames of a series that come as messages, one an image: how they get to their place in a recording.
//!
//! ```text
//! PullSocket -> ZmqMessage -> SeriesReception: decoder -> SeriesCheck (which frames?) -> FrameIntake -> ring
//!      | pixels are read into slots that the intake gives, if they are of the series that is recorded
//! ```
//!
//! A frame is one channel of one image: image `i` of `n` channels gives the frames `i * n` to `i * n + n - 1`, in the order in
//! which the start of the series names the channels. Frames come in any order, on any number of connections. The bytes of a
//! frame are handed on as they came, compressed if they came compressed.
//!
//! A series is over when all its frames are there, or when nothing of it comes for some time: its end message may overtake
//! images on other connections, and only makes that time shorter. It is over too when another one begins behind it; the
//! messages of that one wait for the next recording.

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
pub use ring_intake::{RingIntake, SeriesStorage};
pub use sender::{SendOverflow, SendQueueLimits, SentSeries, SimulatedSeries, StreamVersion};
pub use tally::{SeriesRefusal, SeriesTally};
pub use traffic::{SeriesEnding, SeriesTraffic, SeriesUntil};

use std::{fmt::Debug, ops::Range};

use nilometer_model::Nanos;
use nilometer_storage::Buffer;
use nilometer_wire::series::{ElementType, ImageTimes, Packing, SeriesImage, SeriesStart};

use crate::transport::zeromq::ZmqMessage;

/// A frame that came.
#[derive(Debug)]
pub struct SeriesFrame {
    /// Its place in the recording, from 0.
    pub number: u64,
    /// When all of it was there.
    pub arrived: Nanos,
    /// A slot of the intake, with its bytes.
    pub data: Buffer,
    /// The first so many bytes of it are the frame's.
    pub length: usize,
    /// How many it has unpacked.
    pub size: u64,
    /// How these are packed.
    pub packing: Packing,
    /// What a pixel is.
    pub element: ElementType,
    /// When the image was taken.
    pub times: ImageTimes,
}

/// A frame that an intake does not take.
#[derive(Debug)]
pub struct RefusedFrame {
    /// Its slot.
    pub slot: Buffer,
    /// What is wrong with its bytes.
    pub fault: String,
}

/// What is said to who wants a slot.
#[derive(Debug)]
pub enum SlotAnswer {
    /// Here it is.
    Free(Buffer),
    /// There is none now: the sender is to wait.
    Wait,
    /// There is none, and nobody waits: this frame is lost.
    Lost,
    /// No slot is as long.
    TooLong,
}

/// Where frames go. It has slots of memory, and takes them back with frames in them.
pub trait FrameIntake: Debug {
    /// A slot for so many bytes.
    fn slot(&mut self, now: Nanos, length: usize) -> SlotAnswer;
    /// A slot that was not needed.
    fn give_back(&mut self, slot: Buffer);
    /// The series begins. Arrays of what it says beside pixels lie in the message. What it is recorded to may not suit it: then
    /// why, and nothing of this series is taken.
    fn begin(&mut self, now: Nanos, start: &SeriesStart, message: &ZmqMessage) -> Result<(), String>;
    /// An image of the series came: what it says beside its pixels.
    fn noted(&mut self, image: &SeriesImage) {
        let _ = image;
    }
    /// Frames that there are places for. None if there is no limit: a series may bring more than it announced.
    fn frames_max(&self) -> Option<u64> {
        None
    }
    /// A frame that is of the series and did not come before.
    ///
    /// # Errors
    /// If its bytes are none of a frame.
    fn take(&mut self, now: Nanos, frame: SeriesFrame) -> Result<(), RefusedFrame>;
    /// Called again and again, whether or not something comes.
    fn tend(&mut self, now: Nanos) {
        let _ = now;
    }
    /// The series is over, and these frames did not come.
    fn missing(&mut self, now: Nanos, frames: Range<u64>);
}
