//! Faults between an instrument and its recorder: the same options for packets and for images over TCP.

use clap::{Args, value_parser};
use nilometer_intake::transport::faults::{FaultCounts, Faults};

use super::asked::{Share, part};

/// The kinds of faults, and their shares.
#[derive(Debug, Args)]
#[command(next_help_heading = "Faults on the way")]
pub(super) struct FaultOptions {
    /// Lose this share of packets, or of images over TCP, such as "0.1 %"
    #[arg(long, value_name = "SHARE", value_parser = part)]
    loss: Option<Share>,
    /// Lose COUNT at a time [default: 1]
    #[arg(long, value_name = "COUNT", requires = "loss", value_parser = value_parser!(u64).range(1..))]
    loss_burst: Option<u64>,
    /// Let others overtake this share of packets, or of images
    #[arg(long, value_name = "SHARE", value_parser = part)]
    reorder: Option<Share>,
    /// Let COUNT others overtake each of those; at most 1000 images [default: 10]
    #[arg(long, value_name = "COUNT", requires = "reorder", value_parser = value_parser!(u64).range(1..=1_000_000))]
    reorder_distance: Option<u64>,
    /// Send this share of packets, or of images, twice
    #[arg(long, value_name = "SHARE", value_parser = part)]
    duplicate: Option<Share>,
}

const DISTANCE: u64 = 10;

impl FaultOptions {
    /// The first of these options on the command line.
    pub(super) fn given(&self) -> Option<&'static str> {
        let options = [
            ("--loss", self.loss.is_some()),
            ("--reorder", self.reorder.is_some()),
            ("--duplicate", self.duplicate.is_some()),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }

    /// The number of others that may overtake one.
    pub(super) fn distance(&self) -> u64 {
        self.reorder_distance.unwrap_or(DISTANCE)
    }

    /// The faults of the options.
    pub(super) fn faults(&self) -> Faults {
        let share = |share: Option<Share>| share.map_or(0.0, |share| share.0);
        Faults {
            loss: share(self.loss),
            loss_burst: self.loss_burst.unwrap_or(1),
            reorder: share(self.reorder),
            distance: self.distance(),
            duplicate: share(self.duplicate),
            ..Faults::default()
        }
    }
}

/// One line for each kind of these faults that the options set, for packets or images.
pub(super) fn fault_lines(faults: &Faults, counts: &FaultCounts, what: &str) -> Vec<String> {
    let times = match counts.losses {
        1 => "once".into(),
        many => format!("{many} times"),
    };
    let kinds = [
        (faults.loss, format!("lost        {} {what}, {times}", counts.lost)),
        (
            faults.reorder,
            format!("reordered   {} {what}, overtaken by {}", counts.reordered, faults.distance),
        ),
        (faults.duplicate, format!("duplicated  {} {what}", counts.duplicated)),
    ];
    kinds.into_iter().filter(|(asked, _)| *asked > 0.0).map(|(_, line)| line).collect()
}
