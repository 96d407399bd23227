//! Lanes become ready before a recording begins, or it does not begin.

use std::{collections::BTreeSet, sync::mpsc::Receiver};

use nilometer_model::Nanos;

use super::threads::Report;

/// Reason why a recording could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A lane could not be set up.
    #[error("lane {}: {why}", lane + 1)]
    Lane {
        /// Index of the lane. Messages count from 1.
        lane: usize,
        /// Cause of the failure.
        why: String,
    },
    /// A lane's storage did not answer while the lane was set up.
    #[error("lane {}: hung while it was set up", lane + 1)]
    Hung {
        /// Index of the lane. Messages count from 1.
        lane: usize,
    },
    /// A thread could not be started, or the network gave up.
    #[error("can't start: {0}")]
    Thread(#[from] std::io::Error),
}

/// Waits until every lane is ready, or until some are and the others do not answer. Returns the reports of
/// lanes that have already ended.
pub(super) fn all_ready(
    reports: &Receiver<Report>,
    lanes: usize,
    limit: Nanos,
) -> Result<Vec<Report>, RecordingError> {
    let mut waiting: BTreeSet<usize> = (0..lanes).collect();
    let mut early = Vec::new();
    while let Some(&lane) = waiting.first() {
        match reports.recv_timeout(limit.duration()) {
            Ok(Report::Refused(lane, why)) => return Err(RecordingError::Lane { lane, why }),
            Ok(Report::Ready(lane)) => drop(waiting.remove(&lane)),
            Ok(report) => {
                if let Report::Lane(lane, _) = &report {
                    waiting.remove(lane);
                }
                early.push(report);
            }
            Err(_) if waiting.len() < lanes => break,
            Err(_) => return Err(RecordingError::Hung { lane }),
        }
    }
    Ok(early)
}

/// Fails if space is reserved before the recording begins and a lane has none.
pub(super) fn whole_ring(reserved: bool, early: Vec<Report>) -> Result<Vec<Report>, RecordingError> {
    for report in early.iter().filter(|_| reserved) {
        if let Report::Lane(lane, ended) = report {
            let why = ended.totals.fault.map_or("no room for its file".into(), |fault| fault.to_string());
            return Err(RecordingError::Lane { lane: *lane, why });
        }
    }
    Ok(early)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use nilometer_storage::process::Usage;

    use super::*;
    use crate::{Lane, WriterTotals};

    fn said(reports: impl IntoIterator<Item = Report>, lanes: usize) -> Result<Vec<Report>, RecordingError> {
        let (sender, receiver) = sync_channel(8);
        reports.into_iter().for_each(|report| sender.send(report).expect("there is room"));
        all_ready(&receiver, lanes, Nanos::from_millis(10))
    }

    fn full(lane: usize) -> Report {
        let totals = WriterTotals { full: true, ..WriterTotals::default() };
        let (usage, none) = (Usage::default(), Nanos(0));
        Report::Lane(lane, Box::new(Lane { totals, written: 0, usage, run_delay: none, ended: none }))
    }

    #[test]
    fn what_lanes_report_before_all_are_ready_is_heard_later() {
        let early = said([full(1), Report::Ready(0), Report::Ready(2)], 3).expect("two are ready");
        assert!(matches!(early[..], [Report::Lane(1, _)]), "{early:?}");
        assert!(whole_ring(false, early).is_ok());
        let early = said([full(1), Report::Ready(0)], 2).expect("one is ready");
        let error = whole_ring(true, early).expect_err("its space is not reserved").to_string();
        assert!(error.contains("lane 2: no room"), "{error}");
    }

    #[test]
    fn a_lane_that_does_not_answer_keeps_others_from_nothing() {
        assert!(matches!(said([Report::Ready(1)], 2), Ok(early) if early.is_empty()));
        assert!(matches!(said([], 2), Err(RecordingError::Hung { lane: 0 })));
        let refused = Report::Refused(1, "why".into());
        assert!(matches!(said([Report::Ready(0), refused], 2), Err(RecordingError::Lane { lane: 1, .. })));
    }
}
