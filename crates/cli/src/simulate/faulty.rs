//! What goes wrong between an instrument and its recorder: the same options of packets and of images over TCP.

use clap::{Args, value_parser};
use nilometer_intake::transport::faults::{FaultCounts, Faults};

use super::asked::{Share, part};

/// Which faults, and how often.
#[derive(Debug, Args)]
#[command(next_help_heading = "What goes wrong on the way")]
pub(super) struct FaultOptions {
    /// Packets, or images over TCP, that are lost on the way, as in "0.1 %"
    #[arg(long, value_name = "SHARE", value_parser = part)]
    loss: Option<Share>,
    /// How many are lost at a time [default: 1]
    #[arg(long, value_name = "COUNT", requires = "loss", value_parser = value_parser!(u64).range(1..))]
    loss_burst: Option<u64>,
    /// Packets, or images, that others overtake
    #[arg(long, value_name = "SHARE", value_parser = part)]
    reorder: Option<Share>,
    /// How many others overtake such a one; of images at most 1000 [default: 10]
    #[arg(long, value_name = "COUNT", requires = "reorder", value_parser = value_parser!(u64).range(1..=1_000_000))]
    reorder_distance: Option<u64>,
    /// Packets, or images, that come twice
    #[arg(long, value_name = "SHARE", value_parser = part)]
    duplicate: Option<Share>,
}

const DISTANCE: u64 = 10;

impl FaultOptions {
    /// The first of these options that is given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let options = [
            ("--loss", self.loss.is_some()),
            ("--reorder", self.reorder.is_some()),
            ("--duplicate", self.duplicate.is_some()),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }

    /// By how many others one may be overtaken.
    pub(super) fn distance(&self) -> u64 {
        self.reorder_distance.unwrap_or(DISTANCE)
    }

    /// As they were asked for.
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

/// A line for each of these faults that was asked for, of packets or of images.
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
