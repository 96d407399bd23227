//! A series of frames that several processes record together. Each stores the images that come to it.
//!
//! ```text
//! rank 0   Lanes -> Lanes ->  Relay -> Relays ->  time zero ->  start of the series, from one to all ->  Prepared ...
//! others   Lanes -> Lanes ->  Relay -> Relays ->  time zero ->  start of the series, from one to all ->  Prepared ...
//! ```

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::anyhow;
use nilometer_cluster::{StoredPart, launched_here};
use nilometer_hdf5_recording::MasterError;
use nilometer_intake::series::SeriesRelay;
use nilometer_model::Nanos;
use nilometer_network::own_address;
use nilometer_service::{PreparedRecording, RecordingSettings, SeriesShare};

use crate::{
    Blame, Failure,
    together::{Together, directories_of, unseen},
};

/// This process's share of the series, and its connections to the other processes. `None` in a process that is done
/// because one of them can't take part.
pub(super) fn agreed_share(
    settings: Result<RecordingSettings, Failure>,
    together: &Together<'_>,
) -> Result<Option<(RecordingSettings, SeriesRelay)>, Failure> {
    let (settings, lanes) = match settings {
        Ok(settings) => {
            let lanes = settings.wishes().to.len() as u32;
            (Some(settings), Ok(lanes))
        }
        Err(failure) => (None, Err(failure)),
    };
    let (Some(lanes), Some(settings)) = (together.lanes(lanes)?, settings) else { return Ok(None) };
    let (opened, at) = match opened(settings, together) {
        Ok((settings, relay, at)) => (Some((settings, relay)), Ok(at)),
        Err(failure) => (None, Err(failure)),
    };
    let (Some(ends), Some((settings, mut relay))) = (together.relays(at)?, opened) else { return Ok(None) };
    let others = (0..).zip(ends).filter(|(rank, _)| *rank != together.rank());
    relay.connect(others.map(|(_, end)| end));
    let (clock, start) = together.clock();
    let share = SeriesShare {
        id: together.shared.id,
        directory: together.directory(),
        first_lane: lanes.first,
        lanes: lanes.all,
        clock,
        start,
    };
    Ok(Some((settings.of_series_share(share), relay)))
}

/// The settings under the name of the recording, the end for the other processes, and its address.
fn opened(
    settings: RecordingSettings,
    together: &Together<'_>,
) -> Result<(RecordingSettings, SeriesRelay, SocketAddr), Failure> {
    let settings = settings.named(together.shared.name.clone())?;
    let relay = settings.open_relay(own_end(together)?, together.shared.key)?;
    let at = relay.address().run()?;
    Ok((settings, relay, at))
}

/// The address of this machine at which the other processes reach this one.
fn own_end(together: &Together<'_>) -> Result<IpAddr, Failure> {
    if launched_here() == together.size() {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    own_address(None).map_err(|why| Failure::Input(anyhow!(why)))
}

/// The line about the frames of all parts, and the fault if some are missing.
pub(super) fn frames_of_all(parts: &[StoredPart]) -> (String, Option<String>) {
    let came: u64 = parts.iter().map(|part| part.delivered).sum();
    let due = parts.iter().map(|part| part.due).max().unwrap_or(0);
    let missing = due.saturating_sub(came);
    let line = match missing {
        0 => format!("received    {came} frames of all parts, none is missing"),
        _ => format!("received    {came} of {due} frames of all parts, {missing} missing"),
    };
    let fault = match (came, missing) {
        (0, _) => Some("no frame came".to_owned()),
        (_, 0) => None,
        _ => Some(format!("{missing} of {due} frames did not come")),
    };
    (line, fault)
}

/// The line about the file over the files of all processes, or the reason why there is none.
pub(super) fn over_series(
    prepared: &PreparedRecording,
    parts: &[StoredPart],
    at_most: Nanos,
) -> Result<String, MasterError> {
    if let Some(part) = parts.iter().find(|part| part.hung) {
        return Ok(format!(
            "no file over all: writes of {} hang; run `nilometer repair` with all directories when they have ended",
            part.node
        ));
    }
    let others = directories_of(&parts[1..]);
    if let Some(unseen) = unseen(&others) {
        return Ok(format!(
            "no file over all: this machine does not see {}; run `nilometer repair` with all directories on one that \
             does",
            unseen.display()
        ));
    }
    let master = prepared.put_master_over(others, at_most)?;
    Ok(master.map_or_else(|| "in one file".into(), |path| path.display().to_string()))
}

/// The command that checks the recording of all processes.
pub(super) fn verify_all(parts: &[StoredPart]) -> String {
    let paths: Vec<_> = directories_of(parts).iter().map(|path| path.display().to_string()).collect();
    format!("\nnilometer verify {}\n", paths.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_missing_only_if_no_process_got_them() {
        let of = |frames: [u64; 2], due| {
            let parts = frames.map(|delivered| StoredPart { delivered, due, ..StoredPart::default() });
            frames_of_all(&parts)
        };
        assert_eq!(of([3, 5], 8), ("received    8 frames of all parts, none is missing".into(), None));
        assert_eq!(of([0, 8], 8).1, None, "a process may get none");
        let (line, fault) = of([3, 4], 8);
        assert_eq!(line, "received    7 of 8 frames of all parts, 1 missing");
        assert_eq!(fault.as_deref(), Some("1 of 8 frames did not come"));
        assert_eq!(of([0, 0], 8).1.as_deref(), Some("no frame came"));
    }
}
