//! Copies between this recorder and others over TCP, by the commands of jive5ab. Each runs on a thread of its own;
//! replies to commands never wait for it.
//!
//! ```text
//! disk2net, file2net:  PeerSource -> sender -> TCP -> receiver -> PeerSink:    net2file, record
//! vbs2net:             chunk files -> TCP, a connection for each -> chunk files: net2vbs
//! ```
//!
//! A stream is the plain bytes, and its end is the end of the connection. A sender that fails or dies resets the
//! connection, so that the receiver does not take a part for the whole.
//!
//! Sources in the repository of jive5ab at 971c3d6: `src/mk5command/{disk2net,net2file,net2vbs,vbs2net}.cc` and
//! `src/threadfns/multisend.cc`.

pub(super) mod chunk_exchange;
mod chunk_header;
pub(super) mod chunk_sink;
pub(super) mod chunk_store;
pub(super) mod file_sink;
pub(super) mod line;
pub(super) mod progress;
pub(super) mod receiver;
pub(super) mod sender;
pub(super) mod source;
