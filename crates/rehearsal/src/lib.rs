//! Campaigns in virtual time: the recorder itself, on simulated storage with known properties. `nilometer demo` shows
//! three of them, and `nilometer-bench verdict` holds thousands of verdicts against the truth.
//!
//! Nothing here touches a disk, and forty seconds of recording take milliseconds.

#![forbid(unsafe_code)]

mod campaign;
mod demo;
mod storage_case;

pub use campaign::{cell, layout, recorded, results};
pub use demo::{DEMO_STORAGE, DemoStorage, demo_results};
pub use storage_case::{FRAME_SIZE, StallPattern, StorageCase, StorageKind};
