//! The data streams of a scan that still receive. One that ended by itself listens on until all have ended, and counts
//! the packets that still come to it.
//!
//! ```text
//! A   receives ... silence: its end | counts packets that come | over
//! B   receives ........................................ its end | over
//! ```

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The number of data streams of a scan that still receive. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ScanStreams(Arc<AtomicUsize>);

/// The receiver of one data stream of a scan. It leaves the others when it is dropped.
#[derive(Debug)]
pub struct ScanMember {
    receiving: Arc<AtomicUsize>,
    has_left: bool,
}

impl ScanStreams {
    /// Adds the receiver of another data stream. All have to join before the first one begins.
    pub fn join(&self) -> ScanMember {
        self.0.fetch_add(1, Ordering::AcqRel);
        ScanMember { receiving: self.0.clone(), has_left: false }
    }
}

impl ScanMember {
    /// Notes that this data stream takes no more packets.
    pub fn leave(&mut self) {
        if !std::mem::replace(&mut self.has_left, true) {
            self.receiving.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Returns true if another data stream still receives.
    pub fn has_others(&self) -> bool {
        self.receiving.load(Ordering::Acquire) > usize::from(!self.has_left)
    }
}

impl Drop for ScanMember {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_others_until_the_last_of_them_leaves() {
        let scan = ScanStreams::default();
        let mut first = scan.join();
        assert!(!first.has_others());
        let [mut second, third] = [scan.join(), scan.join()];
        first.leave();
        first.leave();
        assert!(first.has_others() && second.has_others());
        drop(third);
        assert!(first.has_others() && !second.has_others());
        second.leave();
        assert!(!first.has_others() && !second.has_others());
    }
}
