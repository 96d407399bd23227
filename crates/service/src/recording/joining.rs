//! What the user wishes of files in HDF5: their layout, and values of the user's own that are joined to frames.

use std::sync::Arc;

use nilometer_hdf5_recording::{
    AskedFiles, FileWishes, Hdf5Contents, LateValuesError, UserLayout, put_late_values,
};
use nilometer_intake::joined::{JoinedTally, JoinedValues, MetadataReader, MetadataSource};
use nilometer_model::{Format, Nanos};

use super::{prepare::PreparedRecording, settings::RecordingSettings, source::RecordedSource};
use crate::error::{OperatorLog, ServiceError, require};

/// Values that are joined to the frames of a recording.
#[derive(Debug)]
pub(super) struct JoiningValues {
    pub(super) values: Arc<JoinedValues>,
    /// What reads those that come apart from the frames.
    reader: Option<Arc<MetadataReader>>,
}

impl RecordedSource {
    /// The layout of the files, if one is asked for: read and checked.
    pub(super) fn layout(&self, metadata: &[String]) -> Result<Option<Arc<UserLayout>>, ServiceError> {
        let instrument = match self {
            RecordedSource::Packets(source) => {
                let hdf5 = source.instrument.recording.format == Format::Hdf5;
                require(hdf5 || metadata.is_empty(), || {
                    "--metadata: only files of HDF5 have a place for it; write --format hdf5, or leave it out"
                        .into()
                })?;
                Some(&source.instrument)
            }
            RecordedSource::Series(source) => source.instrument.as_ref(),
        };
        let of_instrument = instrument.and_then(|instrument| instrument.recording.layout.as_ref());
        let path = match self {
            RecordedSource::Packets(_) => of_instrument,
            RecordedSource::Series(source) => source.layout.as_ref().or(of_instrument),
        };
        let layout = path.map(|path| UserLayout::read(path).map(Arc::new)).transpose();
        layout.map_err(ServiceError::asked_wrongly)
    }
}

impl RecordingSettings {
    /// Whether the files that are asked for can be by the layout.
    pub(super) fn check_layout(&self) -> Result<(), ServiceError> {
        let Some(layout) = &self.layout else { return Ok(()) };
        let (per_file, scan) = match &self.source {
            RecordedSource::Packets(source) => {
                let recording = &source.instrument.recording;
                (recording.frames_per_file.is_some(), recording.scan.is_some())
            }
            RecordedSource::Series(source) => (source.frames_per_file.is_some(), source.scan.is_some()),
        };
        let writers = self.wishes.to.len();
        let asked = AskedFiles { writers, kept: self.wishes.keep.is_some(), per_file, scan };
        layout.check(asked).map_err(ServiceError::AskedWrongly)
    }

    /// Begins to take values that come apart from the frames; a series brings some with them.
    pub(super) fn joining(&self) -> Result<Option<JoiningValues>, ServiceError> {
        let metadata = &self.wishes.metadata;
        if metadata.is_empty() && !self.is_series() {
            let several = self.layout.as_ref().is_some_and(|layout| layout.has_several_datasets());
            let values = several.then(|| Arc::new(JoinedValues::without_source()));
            return Ok(values.map(|values| JoiningValues { values, reader: None }));
        }
        let values = Arc::new(JoinedValues::default());
        let allowed = self.wishes.allowed()?;
        let open = |text: &String| {
            let source = MetadataSource::open(text, &allowed);
            source.map_err(|error| ServiceError::AskedWrongly(format!("--metadata {error}")))
        };
        let sources: Vec<_> = metadata.iter().map(open).collect::<Result<_, _>>()?;
        let reader = if sources.is_empty() {
            None
        } else {
            Some(Arc::new(MetadataReader::start(sources, &values).map_err(ServiceError::failed)?))
        };
        Ok(Some(JoiningValues { values, reader }))
    }

    /// What is wished of the files. What is known of values by now is.
    pub(super) fn file_wishes(&self, joining: Option<&JoiningValues>, log: OperatorLog) -> FileWishes {
        if let Some(reader) = joining.and_then(|joining| joining.reader.as_ref()) {
            reader.catch_up();
        }
        if let Some(layout) = &self.layout {
            layout.warnings().iter().for_each(|warning| log(warning));
        }
        FileWishes { layout: self.layout.clone(), joined: joining.map(|joining| joining.values.clone()) }
    }
}

/// Says what of a layout is not in the files.
pub(super) fn tell_left_out(contents: &Hdf5Contents, log: OperatorLog) {
    contents.left_out.iter().for_each(|what| log(what));
}

impl PreparedRecording {
    /// With values that are joined to its frames: those that come apart from them are awaited before files are closed.
    pub(super) fn joining(mut self, joining: Option<JoiningValues>) -> Self {
        if let Some(reader) = joining.as_ref().and_then(|joining| joining.reader.clone()) {
            self.recorder.await_values(reader);
        }
        PreparedRecording { joining, ..self }
    }

    /// The recording is over: values that came when the files of their frames were closed are written into these. What came of
    /// all, if there were to be any.
    ///
    /// # Errors
    /// If the files can't be written, or not in time.
    pub fn join_rest(&self, at_most: Nanos) -> Result<Option<JoinedTally>, LateValuesError> {
        let (Some(joining), Some(contents)) = (&self.joining, &self.layout.hdf5) else { return Ok(None) };
        put_late_values(contents, &self.targets, at_most)?;
        Ok(Some(joining.values.tally()))
    }
}
