//! Directories that take no more of a recording, as an event and as the first words of the line that shows how it goes.

use std::fmt;

use nilometer_acquisition::LaneStatus;

/// A directory that the recorder no longer writes to, although the recording goes on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DiskFailure<'a> {
    lane: &'a LaneStatus,
}

impl DiskFailure<'_> {
    fn kind(&self) -> &'static str {
        match self.lane.state {
            "full" => "DISK FULL",
            "hung" => "DISK HANGS",
            _ => "DISK FAILED",
        }
    }
}

impl fmt::Display for DiskFailure<'_> {
    /// `DISK FAILED /disk2: writing failed with EIO (Input/output error)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.kind(), self.lane.path.display())?;
        match (self.lane.state, &self.lane.fault) {
            ("full", _) => f.write_str("full up to the reserve"),
            ("hung", _) => f.write_str("it does not answer"),
            (_, Some(fault)) => write!(f, "writing failed with {fault}"),
            (state, None) => f.write_str(state),
        }
    }
}

/// All directories that take no more.
pub(super) fn failures(lanes: &[LaneStatus]) -> Vec<DiskFailure<'_>> {
    let failed = lanes.iter().filter(|lane| lane.has_dropped_out());
    failed.map(|lane| DiskFailure { lane }).collect()
}

/// Each of them in a few words. A longer path keeps its last `path_width` letters only.
pub(super) fn failed_disks(lanes: &[LaneStatus], path_width: usize) -> Vec<String> {
    let short = |failure: DiskFailure<'_>| {
        let path = failure.lane.path.display().to_string();
        format!("{} {}", failure.kind(), path_end(&path, path_width))
    };
    failures(lanes).into_iter().map(short).collect()
}

/// The end of a path, with dots for its beginning if it is longer than `width` letters.
fn path_end(path: &str, width: usize) -> String {
    let surplus = path.chars().count().saturating_sub(width);
    if surplus == 0 {
        return path.into();
    }
    let end: String = path.chars().skip(surplus + DOTS.len()).collect();
    format!("{DOTS}{end}")
}

const DOTS: &str = "...";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_stop_is_named_with_its_directory() {
        let lane = |path: &str, state, fault: Option<&str>| LaneStatus {
            path: path.into(),
            state,
            fault: fault.map(str::to_owned),
            ..LaneStatus::default()
        };
        let lanes = [
            lane("/disk1", "writing", None),
            lane("/disk2", "failed", Some("EIO (Input/output error)")),
            lane("/disk3", "full", None),
            lane("/disk4", "hung", None),
            lane("/disk5", "ended", None),
        ];
        let events: Vec<_> = failures(&lanes).iter().map(DiskFailure::to_string).collect();
        assert_eq!(
            events,
            [
                "DISK FAILED /disk2: writing failed with EIO (Input/output error)",
                "DISK FULL /disk3: full up to the reserve",
                "DISK HANGS /disk4: it does not answer"
            ]
        );
        let short = ["DISK FAILED /disk2", "DISK FULL /disk3", "DISK HANGS /disk4"];
        assert_eq!(failed_disks(&lanes, 6), short);
        assert_eq!(failed_disks(&lanes, 5), ["DISK FAILED ...k2", "DISK FULL ...k3", "DISK HANGS ...k4"]);
    }
}
