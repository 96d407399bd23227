//! Estimates how much data a file of this length can hold. A file may claim any size, so memory and output are
//! limited by its real content.

use nilometer_hdf5::{Hdf5Error, ReadDataset};
use nilometer_model::Bytes;

use super::LoneFile;

/// The highest compression accepted: blank frames in LZ4 become 255 times smaller, in deflate 1030 times.
const SMALLEST: u64 = 4096;
/// Bytes of missing data that are filled in without an error, beside as much again as is there.
const FILLED: u64 = 64 << 20;
/// Bytes of a number in memory.
const NUMBER: u64 = 8;

impl LoneFile {
    /// Bytes of its frames if all of them were there.
    pub fn claimed(&self) -> u64 {
        self.frames().saturating_mul(self.frame_size())
    }

    /// Bytes of the elements that are there.
    pub fn present(&self) -> u64 {
        let Some(chunk) = &self.shape.chunk else {
            return if self.shape.is_there { self.claimed() } else { 0 };
        };
        let bytes = chunk.iter().fold(self.shape.element as u64, |all, side| all.saturating_mul(*side));
        let chunks = self.grid_places().count() as u64;
        chunks.saturating_mul(bytes).min(self.bytes.saturating_mul(SMALLEST))
    }

    /// Checks that the file does not claim much more than it has: an export would fill the storage with missing
    /// data.
    ///
    /// # Errors
    /// The bytes claimed, and those that are there.
    pub fn check_claim(&self) -> Result<(), String> {
        let claimed = self.claimed();
        let present = self.present();
        if claimed <= present.saturating_mul(2).saturating_add(FILLED) {
            return Ok(());
        }
        Err(format!(
            "{} claims {} frames, {}, and {} of them are there",
            self.name,
            self.frames(),
            Bytes(claimed),
            Bytes(present)
        ))
    }

    /// Reads the numbers of a dataset, unless it claims more of them than frames or than the file can hold.
    pub(super) fn believable_numbers(&self, dataset: &ReadDataset) -> Result<Vec<i64>, Hdf5Error> {
        let count = dataset.dimensions().iter().fold(1_u64, |all, side| all.saturating_mul(*side));
        let most = self.bytes.saturating_mul(SMALLEST).saturating_add(FILLED) / NUMBER;
        if count > most.min(self.frames().max(1)) {
            let what = format!("read its {count} numbers");
            let why = format!("it has more than the {} frames, or than the file can hold", self.frames());
            return Err(Hdf5Error::Refused { what, why });
        }
        dataset.numbers()
    }
}
