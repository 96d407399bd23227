//! The file over all files of a recording in HDF5, when the recording has ended.

use std::{path::PathBuf, sync::PoisonError};

use nilometer_hdf5_recording::{
    GrowingMaster, MasterError, ModulesPart, master_path, put_master, put_master_of_modules,
};
use nilometer_model::Nanos;

use super::prepare::PreparedRecording;

impl PreparedRecording {
    /// Writes the master file of a finished HDF5 recording, if that has several files. Returns its path.
    ///
    /// # Errors
    ///
    /// Its directories can't be read, or don't take the file in time.
    pub fn put_master(&self, at_most: Nanos) -> Result<Option<PathBuf>, MasterError> {
        self.put_master_over(Vec::new(), at_most)
    }

    /// The same, over the files in the directories `others` too: other processes recorded parts of a series there.
    ///
    /// # Errors
    ///
    /// The same as those of [`Self::put_master`].
    pub fn put_master_over(
        &self,
        others: Vec<PathBuf>,
        at_most: Nanos,
    ) -> Result<Option<PathBuf>, MasterError> {
        let Some(contents) = &self.layout.hdf5 else { return Ok(None) };
        let growing = self.master.lock().unwrap_or_else(PoisonError::into_inner).take();
        growing.map_or(Ok(()), GrowingMaster::end)?;
        put_master(contents, &self.name, &self.targets, others, at_most)
    }

    /// The path at which [`Self::put_master`] writes; `None` if the recording gets no such file.
    pub(crate) fn master_path(&self) -> Option<PathBuf> {
        master_path(&self.name, &self.layout.head, self.targets.first()?.path())
    }

    /// Writes a master file for the recordings of all modules of a detector, if they are in HDF5. It goes into
    /// the directory of the first modules. Returns its path.
    ///
    /// # Errors
    ///
    /// A recording can't be read, or its directory does not take the file in time.
    pub fn put_master_of_modules(
        &self,
        name: &str,
        parts: Vec<ModulesPart>,
        at_most: Nanos,
    ) -> Result<Option<PathBuf>, MasterError> {
        let (Some(whole), Some(directory)) = (&self.whole, self.targets.first()) else { return Ok(None) };
        put_master_of_modules(whole, name, directory, parts, at_most)
    }
}
