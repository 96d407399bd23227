//! Values of a prepared recording that arrive apart from the frames: before its files close, and after that.

use nilometer_hdf5_recording::{LateValuesError, put_late_values};
use nilometer_intake::joined::JoinedTally;
use nilometer_model::Nanos;

use super::{joining::JoiningValues, prepare::PreparedRecording};

impl PreparedRecording {
    /// Adds the values to join. The recorder waits for those that arrive apart from frames before it closes
    /// files.
    pub(super) fn joining(mut self, joining: Option<JoiningValues>) -> Self {
        if let Some(reader) = joining.as_ref().and_then(|joining| joining.reader.clone()) {
            self.recorder.await_values(reader);
        }
        PreparedRecording { joining, ..self }
    }

    /// Writes late values into the files after the end of the recording: those that arrived after the files of
    /// their frames were closed. Returns the tally of all values, or `None` if there were none to join.
    ///
    /// # Errors
    /// If the files can't be written, or not in time.
    pub fn join_rest(&self, at_most: Nanos) -> Result<Option<JoinedTally>, LateValuesError> {
        let (Some(joining), Some(contents)) = (&self.joining, &self.layout.hdf5) else { return Ok(None) };
        put_late_values(contents, &self.targets, at_most)?;
        Ok(Some(joining.values.tally()))
    }
}
