//! Records the data streams of a scan, each as a recording of its own: see `--listen` with labels. The command prepares
//! all before any begins, and they stop together. One thread follows all of them, and each has its own results.

use std::sync::{Arc, atomic::AtomicBool};

use anyhow::anyhow;
use nilometer_acquisition::{DataStreamWatch, NamedStatus, Outcome as Recorded, Status};
use nilometer_cluster::Alone;
use nilometer_model::{ByteRate, Bytes, Nanos};
use nilometer_service::{BeforeRecording, StreamSettings, StreamVolume, with_less_data};
use nilometer_storage::{Calendar, Clock};

use super::{
    FinishedRecording, LOOK, ReadyRecording, Record, is_prepared, live::Live, note_beginning, parts::shared,
    stopped_early, wait_until,
};
use crate::{Blame, Failure, Outcome, explained, tell, together::Together};

/// The recording of a data stream that has begun.
struct BegunStream {
    ready: ReadyRecording,
    before: BeforeRecording,
    /// The reason why it did not begin.
    fault: Option<String>,
    /// Its outcome, once all have ended.
    outcome: Option<Recorded>,
}

/// The result of a data stream.
struct StreamResult {
    name: String,
    /// Kept bytes of its packets that have a place.
    bytes: Bytes,
    outcome: Outcome,
}

impl Record {
    /// Records all data streams. It fails if one of them did.
    pub(super) fn data_streams(&self, streams: Vec<StreamSettings>, stop: &Arc<AtomicBool>) -> Outcome {
        self.refuse_views(&streams)?;
        let scan = streams.first().map_or_else(String::new, |one| one.scan.clone());
        let mut ready = self.ready_streams(streams, stop)?;
        let Some(first) = ready.first() else { return Ok(()) };
        if let Some(start) = first.settings.wishes().start {
            tell::note(is_prepared(&scan, start));
            if !wait_until(start, stop) {
                ready.into_iter().for_each(ReadyRecording::discard);
                return Err(stopped_early());
            }
        }
        for one in &mut ready {
            // The others were still being prepared when these packets arrived.
            one.prepared.recorder.discard().run()?;
        }
        let mut begun: Vec<BegunStream> = ready.into_iter().map(BegunStream::begin).collect();
        let together = Together::share(&Alone, &shared(None));
        follow(&mut begun, Live::new(&scan, self.live_form(&together), Clock::start().now()));
        let rate = begun.first().map_or(ByteRate(0.0), BegunStream::rate);
        all_went_well(with_volumes_compared(begun.into_iter().map(BegunStream::result).collect(), rate))
    }

    fn refuse_views(&self, streams: &[StreamSettings]) -> Result<(), Failure> {
        if self.shown.http.is_none() && self.shown.preview.address.is_none() {
            return Ok(());
        }
        let by_sender = streams.iter().any(|one| one.settings.shares_sockets());
        let option = if by_sender { "--data-stream" } else { "--listen with labels" };
        Err(Failure::Input(anyhow!(
            "{option} makes several recordings, and --http and --preview show one: leave them out, or run `nilometer \
             serve`"
        )))
    }

    /// Prepares all data streams. If one fails, it removes the others.
    fn ready_streams(
        &self,
        streams: Vec<StreamSettings>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Vec<ReadyRecording>, Failure> {
        let mut ready = Vec::new();
        for StreamSettings { settings, .. } in streams {
            let together = Together::share(&Alone, &shared(Some(&settings)));
            match self.ready(settings, None, &together, stop) {
                Ok(one) => ready.push(one),
                Err(failure) => {
                    ready.into_iter().for_each(ReadyRecording::discard);
                    return Err(failure);
                }
            }
        }
        Ok(ready)
    }
}

impl BegunStream {
    fn begin(mut ready: ReadyRecording) -> Self {
        note_beginning(&ready.prepared, &ready.settings);
        let before = BeforeRecording::now();
        let begun = ready.prepared.recorder.begin();
        let fault = begun.err().map(|error| error.to_string());
        let outcome = fault.as_ref().map(|_| ready.prepared.recorder.give_up());
        BegunStream { ready, before, fault, outcome }
    }

    /// Looks whether it has ended.
    fn has_ended(&mut self) -> bool {
        if self.outcome.is_none() {
            self.outcome = self.ready.prepared.recorder.wait(Nanos(0));
        }
        self.outcome.is_some()
    }

    fn status(&mut self) -> NamedStatus {
        let status = self.ready.prepared.recorder.status();
        NamedStatus { name: self.ready.prepared.name.clone(), status }
    }

    fn rate(&self) -> ByteRate {
        self.ready.prepared.instrument.received().rate()
    }

    /// Writes the files that belong to its end, and prints its results.
    fn result(self) -> StreamResult {
        let BegunStream { ready, before, fault, outcome } = self;
        let ReadyRecording { settings, server, mut prepared } = ready;
        let outcome = outcome.unwrap_or_else(|| prepared.recorder.give_up());
        let bytes = Bytes(outcome.traffic.as_ref().map_or(0, |traffic| traffic.tally.bytes));
        let name = prepared.name.clone();
        let together = Together::share(&Alone, &shared(Some(&settings)));
        let ended =
            FinishedRecording { settings: &settings, server: &server, prepared, before, outcome, fault };
        StreamResult { name, bytes, outcome: ended.told(&together) }
    }
}

/// Follows all data streams until they have ended, or until the time to stop.
fn follow(streams: &mut [BegunStream], mut live: Live) {
    let clock = Clock::start();
    let mut watch = DataStreamWatch::default();
    let stop = streams.first().and_then(|one| one.ready.settings.wishes().stop);
    loop {
        let left = stop.map_or(LOOK, Calendar::left_until);
        if left == Nanos(0) {
            for one in streams.iter() {
                one.ready.prepared.recorder.stop();
            }
        }
        let ended = streams.iter_mut().map(BegunStream::has_ended).filter(|ended| *ended).count();
        let now = clock.now();
        if ended == streams.len() {
            live.end(&status(streams, &mut watch, now));
            return;
        }
        live.warn(now, || status(streams, &mut watch, now));
        live.tell(now, || status(streams, &mut watch, now));
        let pause = if left == Nanos(0) { LOOK } else { left.min(LOOK) };
        std::thread::sleep(pause.duration());
    }
}

/// The status of all data streams together.
fn status(streams: &mut [BegunStream], watch: &mut DataStreamWatch, now: Nanos) -> Status {
    let shares_sockets = streams.iter().any(|one| one.ready.settings.shares_sockets());
    watch.together(now, streams.iter_mut().map(BegunStream::status).collect(), shares_sockets)
}

/// The results, with the failure of a data stream that brought less than another one.
fn with_volumes_compared(mut results: Vec<StreamResult>, rate: ByteRate) -> Vec<StreamResult> {
    let volume = |result: &StreamResult| StreamVolume { name: result.name.clone(), bytes: result.bytes };
    let volumes: Vec<StreamVolume> = results.iter().map(volume).collect();
    for (name, why) in with_less_data(&volumes, rate) {
        let own = results.iter_mut().find(|result| result.name == name && result.outcome.is_ok());
        if let Some(own) = own {
            own.outcome = Err(Failure::Run(anyhow!(why)));
        }
    }
    results
}

/// The failure of the data streams that failed, each with its name.
fn all_went_well(results: Vec<StreamResult>) -> Outcome {
    let all = results.len();
    let mut failed = 0;
    for StreamResult { name, outcome, .. } in results {
        if let Err(failure) = outcome {
            failed += 1;
            tell::note(format_args!("{name}: {}", explained(failure.error())));
        }
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::Run(anyhow!(
            "{failed} of {all} data streams are not whole or not recorded, see above"
        ))),
    }
}
