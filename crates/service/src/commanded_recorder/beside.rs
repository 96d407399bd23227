//! The recordings of a scan with data streams: one for each, which begin and stop together. Without data streams there
//! is one.

use std::{convert::Infallible, sync::Arc};

use nilometer_acquisition::{DataStreamWatch, NamedStatus, RecordingError, Status};
use nilometer_model::{Bytes, Nanos};

use crate::{
    background::CurrentRecording,
    latest_frame::PictureSource,
    recording::{
        account::BeforeRecording,
        less_data::{StreamVolume, with_less_data},
    },
};

impl CurrentRecording {
    /// Begins all recordings. They discard packets received since arming.
    pub(super) fn begin(&mut self) -> Result<(), RecordingError> {
        self.watch = DataStreamWatch::default();
        self.each(|one| one.prepared.recorder.discard())?;
        self.each(|one| {
            one.before = Some(BeforeRecording::now());
            one.prepared.recorder.begin()
        })
    }

    /// Returns true if all recordings have ended, and keeps the outcomes of those that have.
    pub(super) fn has_ended(&mut self) -> bool {
        let is_open = |one: &CurrentRecording| one.outcome.is_none();
        let looked = self.each(|one| {
            if is_open(one) {
                one.outcome = one.prepared.recorder.wait(Nanos(0));
            }
            Ok::<_, Infallible>(())
        });
        looked.is_ok() && !is_open(self) && !self.beside.iter().any(is_open)
    }

    /// The status of all recordings together.
    pub(super) fn status(&mut self, now: Nanos) -> Status {
        let mut streams = vec![self.named_status()];
        streams.extend(self.beside.iter_mut().map(CurrentRecording::named_status));
        self.watch.together(now, streams, self.settings.shares_sockets())
    }

    /// The sources of pictures and dumps, in the order of the data streams.
    pub(super) fn pictured(&self) -> Vec<Arc<PictureSource>> {
        let all = std::iter::once(self).chain(&self.beside);
        all.map(|one| Arc::new(PictureSource::of(&one.prepared))).collect()
    }

    fn named_status(&mut self) -> NamedStatus {
        let status = self.prepared.recorder.status();
        NamedStatus { name: self.prepared.name.clone(), status }
    }

    /// The names of data streams that brought less than another one, each with the reason to look at it.
    pub(super) fn with_less_data(&self) -> Vec<(String, String)> {
        let volume = |one: &CurrentRecording| {
            let tally = &one.outcome.as_ref()?.traffic.as_ref()?.tally;
            Some(StreamVolume { name: one.prepared.name.clone(), bytes: Bytes(tally.bytes) })
        };
        let all = std::iter::once(self).chain(&self.beside);
        let volumes: Vec<StreamVolume> = all.filter_map(volume).collect();
        with_less_data(&volumes, self.prepared.instrument.received().rate())
    }

    /// The recordings one by one, in the order of the data streams.
    pub(super) fn apart(mut self) -> impl Iterator<Item = CurrentRecording> {
        let beside = std::mem::take(&mut self.beside);
        std::iter::once(self).chain(beside)
    }

    /// Acts on each recording in turn, until one fails.
    fn each<E>(&mut self, mut act: impl FnMut(&mut CurrentRecording) -> Result<(), E>) -> Result<(), E> {
        let mut beside = std::mem::take(&mut self.beside);
        let done = act(self).and_then(|()| beside.iter_mut().try_for_each(act));
        self.beside = beside;
        done
    }
}
