//! Records the data streams of a scan, each as a recording of its own: see `--listen` with labels. The command prepares
//! all before any begins, and they stop together. Each has a thread that follows it, and its own results.

use std::{
    sync::{Arc, atomic::AtomicBool},
    thread,
};

use anyhow::anyhow;
use nilometer_cluster::Alone;
use nilometer_model::{ByteRate, Bytes};
use nilometer_service::{StreamSettings, StreamVolume, with_fewer_packets};

use super::{ReadyRecording, Record, parts::shared};
use crate::{Blame, Failure, Outcome, explained, tell, together::Together};

impl Record {
    /// Records all data streams. It fails if one of them did.
    pub(super) fn data_streams(&self, streams: Vec<StreamSettings>, stop: &Arc<AtomicBool>) -> Outcome {
        if self.shown.http.is_some() || self.shown.preview.address.is_some() {
            let by_sender = streams.iter().any(|one| one.settings.shares_sockets());
            let option = if by_sender { "--data-stream" } else { "--listen with labels" };
            return Err(Failure::Input(anyhow!(
                "{option} makes several recordings, and --http and --preview show one: leave them out, or run \
                 `nilometer serve`"
            )));
        }
        // Lines of several recordings would overwrite each other.
        let quiet = Record { quiet: true, ..self.clone() };
        let mut ready = quiet.ready_streams(streams, stop)?;
        for one in &mut ready {
            // The others were still being prepared when these packets arrived.
            one.prepared.recorder.discard().run()?;
        }
        let rate = ready.first().map_or(ByteRate(0.0), |one| one.prepared.instrument.received().rate());
        let outcomes: Vec<(String, (Outcome, Bytes))> = thread::scope(|scope| {
            let follow = |one: ReadyRecording| {
                let name = one.prepared.name.clone();
                let quiet = &quiet;
                (name, scope.spawn(move || quiet.stream(one, stop)))
            };
            let threads: Vec<_> = ready.into_iter().map(follow).collect();
            let broken = || (Err(Failure::Run(anyhow!("internal error (see above)"))), Bytes(0));
            threads
                .into_iter()
                .map(|(name, thread)| (name, thread.join().unwrap_or_else(|_| broken())))
                .collect()
        });
        let volume = |(name, (_, bytes)): &(String, (Outcome, Bytes))| StreamVolume {
            name: name.clone(),
            bytes: *bytes,
        };
        let volumes: Vec<StreamVolume> = outcomes.iter().map(volume).collect();
        let mut outcomes: Vec<(String, Outcome)> =
            outcomes.into_iter().map(|(name, (outcome, _))| (name, outcome)).collect();
        for (name, why) in with_fewer_packets(&volumes, rate) {
            let own = outcomes.iter_mut().find(|(other, outcome)| *other == name && outcome.is_ok());
            if let Some((_, outcome)) = own {
                *outcome = Err(Failure::Run(anyhow!(why)));
            }
        }
        all_went_well(outcomes)
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
            match self.ready(settings, &together, stop) {
                Ok(one) => ready.push(one),
                Err(failure) => {
                    ready.into_iter().for_each(ReadyRecording::discard);
                    return Err(failure);
                }
            }
        }
        Ok(ready)
    }

    /// Records one data stream to its end.
    fn stream(&self, ready: ReadyRecording, stop: &Arc<AtomicBool>) -> (Outcome, Bytes) {
        let together = Together::share(&Alone, &shared(Some(&ready.settings)));
        let ReadyRecording { settings, mut server, prepared } = match ready.awaited(&together, stop) {
            Ok(Some(ready)) => ready,
            Ok(None) => return (Ok(()), Bytes(0)),
            Err(failure) => return (Err(failure), Bytes(0)),
        };
        self.recorded_volume(&settings, &mut server, prepared, &together)
    }
}

/// The failure of the data streams that failed, each with its name.
fn all_went_well(outcomes: Vec<(String, Outcome)>) -> Outcome {
    let all = outcomes.len();
    let mut failed = 0;
    for (name, outcome) in outcomes {
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
