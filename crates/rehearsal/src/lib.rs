//! Campaigns in virtual time: the recorder itself, on simulated storage of which everything is known. `nilometer demo` shows three
//! of them, and `nilometer-bench verdict` holds thousands of verdicts against the truth.
//!
//! Nothing here touches a disk, and forty seconds of recording take milliseconds.

mod campaign;
mod demo;
mod storage_case;

pub use campaign::{cell, layout, recorded, results};
pub use demo::{DEMO_STORAGE, DemoStorage, demo_results};
pub use storage_case::{FRAME_SIZE, StallPattern, StorageCase, StorageKind};
