//! Storage that the kernel does not mount: a client in this process reaches it by URL. It is a target like any
//! other.
//!
//! ```text
//! address -> open -> Posix, NullTarget, as they are
//!                 -> RemoteTarget -> RemoteSystem (a server) -> RemoteEngine -> Client -> library of the client
//! ```
//!
//! A [`RemoteSystem`] makes engines on directories of a server. The code that all servers share is here: the
//! table of open files, a run's directory with its marker, and the directory of a recording. Each library's own
//! code is in the module of its feature.

#[cfg(any(feature = "xrootd", feature = "nfs"))]
mod answer;
#[cfg(any(feature = "xrootd", feature = "nfs", feature = "s3", feature = "hdfs"))]
mod client;
#[cfg(any(feature = "xrootd", feature = "nfs", feature = "s3", feature = "hdfs"))]
mod engine;
mod files;
#[cfg(any(feature = "s3", feature = "hdfs"))]
mod growing;
#[cfg(feature = "hdfs")]
mod hdfs;
#[cfg(any(feature = "s3", feature = "hdfs"))]
#[cfg_attr(not(all(feature = "s3", feature = "hdfs")), allow(dead_code, reason = "either asks for less"))]
mod http;
#[cfg(any(feature = "s3", feature = "hdfs"))]
mod names_listing;
#[cfg(feature = "nfs")]
mod nfs;
mod open;
#[cfg(any(feature = "s3", feature = "hdfs"))]
mod percent;
mod run;
#[cfg(feature = "s3")]
mod s3;
mod system;
#[cfg(any(feature = "xrootd", feature = "nfs", feature = "s3", feature = "hdfs"))]
mod table;
mod target;
#[cfg(feature = "xrootd")]
mod xrootd;

pub use open::{
    CopySource, clean, clean_run, create_directory, describe, describe_in_child, in_use, is_run_at, is_taken,
    join, join_own, join_with_source, open, recording_at, run_handle,
};
pub use system::RemoteSystem;
