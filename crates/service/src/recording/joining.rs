//! The user's wishes for HDF5 files: their layout, and values of the user's own to join to frames.

use std::{path::Path, sync::Arc};

use nilometer_hdf5_recording::{AskedFiles, FileWishes, Hdf5Contents, UserLayout};
use nilometer_intake::joined::{JoinedValues, MetadataReader, MetadataSource};
use nilometer_model::{DECTRIS_LAYOUT, FileNames, Format, RecordingLayout};

use super::{
    settings::RecordingSettings,
    source::{RecordedSource, SeriesSource},
};
use crate::error::{OperatorLog, ServiceError, require};

/// Values that are joined to the frames of a recording.
#[derive(Debug)]
pub(super) struct JoiningValues {
    pub(super) values: Arc<JoinedValues>,
    /// The reader of values that arrive apart from the frames.
    pub(super) reader: Option<Arc<MetadataReader>>,
}

impl RecordedSource {
    /// Reads and checks the layout of the files, if the user wants one.
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
        let file = path.filter(|path| path.as_path() != Path::new(DECTRIS_LAYOUT));
        let layout = file.map(|path| UserLayout::read(path).map(Arc::new)).transpose();
        layout.map_err(ServiceError::asked_wrongly)
    }

    /// Returns true for the layout of DECTRIS.
    fn is_dectris(&self) -> bool {
        match self {
            RecordedSource::Packets(source) => source.instrument.recording.names() == FileNames::Dectris,
            RecordedSource::Series(source) => source.is_dectris(),
        }
    }

    /// The kinds of files that its options request, as by one writer that keeps all frames.
    fn asked_files(&self) -> AskedFiles {
        let asked = |per_file, scan, tiles| AskedFiles { writers: 1, kept: false, per_file, scan, tiles };
        match self {
            RecordedSource::Packets(source) => {
                let RecordingLayout { frames_per_file, scan, chunk, .. } = &source.instrument.recording;
                asked(frames_per_file.is_some(), scan.is_some(), chunk.is_some())
            }
            RecordedSource::Series(source) => {
                let SeriesSource { frames_per_file, scan, chunk, .. } = &**source;
                asked(frames_per_file.is_some(), scan.is_some(), chunk.is_some())
            }
        }
    }
}

impl RecordingSettings {
    /// Checks that the layout fits the files of this recording.
    pub(super) fn check_layout(&self) -> Result<(), ServiceError> {
        let asked = AskedFiles {
            writers: self.wishes.to.len(),
            kept: self.wishes.keep.is_some(),
            ..self.source.asked_files()
        };
        let is_dectris = self.source.is_dectris();
        let checked = match &self.layout {
            _ if is_dectris => asked.check_for_dectris(),
            Some(layout) => layout.check(asked),
            None => Ok(()),
        };
        checked.map_err(ServiceError::AskedWrongly)
    }

    /// Starts to receive values that arrive apart from the frames. The frames of a series bring some themselves.
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

    /// The wishes for the files. It first takes in the values that have arrived so far.
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

/// Logs the parts of a layout that the files lack.
pub(super) fn tell_left_out(contents: &Hdf5Contents, log: OperatorLog) {
    contents.left_out.iter().for_each(|what| log(what));
}
