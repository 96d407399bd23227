//! The latest frame as a stream for viewers, over ZeroMQ (PUB): a few frames a second, whole and with all their bits.
//!
//! ```text
//! (thread) PreviewStream -> PublishSocket -> viewers, each only while it is free
//!             | begins reads when they are due and somebody watches
//!          (thread) PreviewReader -> LastFrameReader -> PreviewFrame
//! ```
//!
//! The recorder waits for none of these threads. They read storage like the page's picture, for at most a fifth of
//! the time, and with a low priority. Frames that a viewer does not take in time are dropped for it, and counted.

mod frame;
mod options;
mod report;
mod stream;

pub(crate) use frame::PreviewSource;
pub use options::PreviewOptions;
pub(crate) use report::PreviewReport;
pub use stream::PreviewListener;
