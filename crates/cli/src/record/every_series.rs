//! Records every series of a detector until it is stopped, each as a recording of its own. The connections
//! stay open between two series, so that none is missed.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::anyhow;
use nilometer_model::Nanos;
use nilometer_service::{KeptConnections, RecordingSettings, ServiceState};
use nilometer_storage::Calendar;

use super::Record;
use crate::{Failure, Outcome, explained, tell, together::Together};

impl Record {
    /// Records until it is stopped. Reports an incomplete series, or one that can't be recorded, at once, and
    /// ends with code 1.
    pub(super) fn every_series(
        &self,
        settings: &RecordingSettings,
        together: &Together<'_>,
        stop: &Arc<AtomicBool>,
    ) -> Outcome {
        let mut server = self.shown.server(tell::log)?;
        let kept = KeptConnections::default();
        let mut series = EverySeries::default();
        loop {
            server.awaits(settings);
            match settings.prepare_keeping(stop.clone(), tell::log, Some(&kept)) {
                Ok(mut prepared) => {
                    server.enter(ServiceState::Armed, &mut prepared, settings);
                    series.ended(self.recorded(settings, &mut server, prepared, together));
                }
                Err(_) if is_stopped(settings, stop) => break,
                // The next series would fail too.
                Err(error) if !kept.take_begun() => return Err(error.into()),
                Err(error) => series.ended(Err(error.into())),
            }
            kept.take_begun();
            if is_stopped(settings, stop) {
                break;
            }
        }
        series.outcome()
    }
}

/// True if somebody stopped it, or its time is over.
fn is_stopped(settings: &RecordingSettings, stop: &AtomicBool) -> bool {
    let end = settings.wishes().stop;
    stop.load(Ordering::Relaxed) || end.is_some_and(|end| Calendar::left_until(end) == Nanos(0))
}

/// Counts the series that ended, and those among them with faults.
#[derive(Debug, Default)]
struct EverySeries {
    all: u64,
    faulty: u64,
}

impl EverySeries {
    fn ended(&mut self, outcome: Outcome) {
        self.all += 1;
        if let Err(failure) = outcome {
            self.faulty += 1;
            tell::note(explained(failure.error()));
        }
    }

    fn outcome(self) -> Outcome {
        let EverySeries { all, faulty } = self;
        match (all, faulty) {
            (0, _) => Err(Failure::Run(anyhow!("stopped before a series began: nothing was recorded"))),
            (_, 0) => Ok(()),
            _ => Err(Failure::Run(anyhow!(
                "{faulty} of {all} series are not whole or not recorded, see above"
            ))),
        }
    }
}
