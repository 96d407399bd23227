//! A recorder under command. The crate has the options of a recording, the recorder's states and orders, and the
//! two ways to give orders: HTTP and the commands of Mark 5 recorders.
//!
//! ```text
//! RecordOptions -> RecordingSettings (checked) -> PreparedRecording -> Recorder -> RecordingAccount
//! http, mark5 -> Console -> CommandedRecorder (one thread: the only one that has the recorder) -> the same
//! ```
//!
//! The crate prints nothing: lines for the operator go to an [`OperatorLog`].

#![forbid(unsafe_code)]

mod access;
mod background;
mod client;
mod client_stream;
mod commanded_recorder;
mod connections;
mod console;
mod dump;
mod ended_scan;
mod error;
mod history;
mod http;
mod latest_frame;
mod listener;
mod mark5;
mod metrics;
mod permission;
mod preview;
mod publisher;
pub mod recording;
mod serve;
mod state;
mod status_server;
mod storage_space;

pub use access::TlsFiles;
pub use client::{RecorderAddress, RecorderClient};
pub use dump::{DUMP_SUMMARY_SUFFIX, DumpReport, DumpRequest, DumpState, DumpWait, DumpedRange};
pub use ended_scan::RecordingAtEnd;
pub use error::{OperatorLog, ServiceError, with_causes};
pub use http::openapi_document;
pub use listener::{ClientReach, HTTP_ADDRESS, ServiceListener, listen};
pub use permission::CommandPermission;
pub use preview::{PreviewListener, PreviewOptions};
pub use recording::{
    account::{BeforeRecording, RecordingAccount, RecordingMetadata},
    allowed_sender::AllowedSender,
    data_streams::StreamSettings,
    kept_connections::KeptConnections,
    less_data::{StreamVolume, with_less_data},
    options::{RecordOptions, RecordingEngine, compression_parser},
    prepare::PreparedRecording,
    series_share::SeriesShare,
    settings::RecordingSettings,
};
pub use serve::{ServiceSetup, serve};
pub use state::ServiceState;
pub use status_server::StatusServer;
