//! The recordings of a scan with data streams: one for each, which begin and stop together. Without data streams there
//! is one.

use std::convert::Infallible;

use nilometer_acquisition::{RecordingError, Status};
use nilometer_model::{Bytes, Nanos};

use crate::{
    background::CurrentRecording,
    recording::{
        account::BeforeRecording,
        fewer_packets::{StreamVolume, with_fewer_packets},
    },
};

impl CurrentRecording {
    /// Begins all recordings. They discard packets received since arming.
    pub(super) fn begin(&mut self) -> Result<(), RecordingError> {
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
    pub(super) fn status(&mut self) -> Status {
        let first = self.prepared.recorder.status();
        let shares_sockets = self.settings.shares_sockets();
        self.beside.iter_mut().fold(first, |all, one| {
            let status = one.prepared.recorder.status();
            if shares_sockets { all.and_at_same_sockets(status) } else { all.and(status) }
        })
    }

    /// The names of data streams that brought less than another one, each with the reason to look at it.
    pub(super) fn with_fewer_packets(&self) -> Vec<(String, String)> {
        let volume = |one: &CurrentRecording| {
            let tally = &one.outcome.as_ref()?.traffic.as_ref()?.tally;
            Some(StreamVolume { name: one.prepared.name.clone(), bytes: Bytes(tally.bytes) })
        };
        let all = std::iter::once(self).chain(&self.beside);
        let volumes: Vec<StreamVolume> = all.filter_map(volume).collect();
        with_fewer_packets(&volumes, self.prepared.instrument.received().rate())
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
