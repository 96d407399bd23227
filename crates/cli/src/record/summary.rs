//! What became of a recording of packets, in words.

use std::sync::Arc;

use anyhow::ensure;
use nilometer_acquisition::{Outcome as Recorded, Traffic, format::Ignored};
use nilometer_model::{ByteRate, Bytes};
use nilometer_storage::target::Directory;

use crate::recorded::{early_ends, lanes, stalls};

/// What became of the packets, a line each.
pub(crate) fn summary(outcome: &Recorded, targets: &[Arc<Directory>]) -> String {
    let traffic = outcome.traffic.clone().unwrap_or_default();
    let Traffic { tally, counted, .. } = &traffic;
    let books = outcome.books;
    let longest = outcome.lanes.iter().flatten().map(|lane| lane.totals.longest).max().unwrap_or_default();
    let mut lines = vec![
        format!(
            "came        {} packets, {}, {}",
            counted.packets,
            Bytes(counted.bytes),
            ByteRate::of(counted.bytes, outcome.wall)
        ),
        format!("recorded    {} packets, {}", tally.placed, Bytes(tally.bytes)),
        format!("missing     {}", missing(&traffic)),
        format!("reordered   {}", reordered(&traffic)),
        format!("dropped     {}", dropped(&traffic)),
    ];
    if tally.restarts > 0 {
        lines.push(format!("anew        the numbers of packets began anew {} times", tally.restarts));
    }
    if tally.jumps > 0 {
        let (jumps, over) = (tally.jumps, tally.jumped);
        lines.push(format!("jumped      ahead {jumps} times, over {over} packets that are not filled"));
    }
    lines.extend([
        format!("latest      {longest} from complete until acknowledged"),
        format!("stalls      {}", stalls(&outcome.chronicle)),
        format!("buffer      {} of {} blocks in use at the most", books.high, books.slots),
    ]);
    lines.extend(lanes(outcome, targets, "blocks"));
    lines.join("\n") + "\n"
}

/// Which packets should be there and are not.
fn missing(Traffic { tally, counted, .. }: &Traffic) -> String {
    if tally.missing == 0 && tally.jumped == 0 && counted.dropped == 0 {
        return "none".into();
    }
    let share = tally.missing as f64 / (tally.missing + tally.placed) as f64 * 100.0;
    let mut causes = Vec::new();
    let mut cause = |count: u64, why: &str| {
        if count > 0 {
            causes.push(format!("{count} {why}"));
        }
    };
    cause(counted.dropped, "messages found no room in the kernel");
    cause(tally.refused, "found the buffer full");
    cause(tally.late, "came too late");
    let causes = if causes.is_empty() { String::new() } else { format!("; {}", causes.join(", ")) };
    format!(
        "{} packets, {share:.4} %, in {} gaps, the longest of {}{causes}",
        tally.missing, tally.losses, tally.longest_loss
    )
}

/// Which packets came out of order.
fn reordered(Traffic { tally, .. }: &Traffic) -> String {
    match tally.reordered {
        0 => "none".into(),
        count => format!("{count} packets, overtaken by {} others at the most", tally.extents.max()),
    }
}

/// Which packets were none of the stream.
fn dropped(Traffic { tally, counted, .. }: &Traffic) -> String {
    let ignored = Ignored::ALL.into_iter().map(|why| (tally.ignored[why as usize], why.name()));
    let others = [
        (counted.strangers, "of senders that are not allowed"),
        (tally.duplicates, "twice"),
        (tally.late, "too late"),
        (tally.stray, "with a number far from all others"),
    ];
    let all: Vec<_> = ignored
        .chain(others)
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if all.is_empty() { "none".into() } else { format!("packets: {}", all.join(", ")) }
}

/// Losses and storage that failed become the exit code.
pub(crate) fn went_well(outcome: &Recorded) -> anyhow::Result<()> {
    let traffic = outcome.traffic.clone().unwrap_or_default();
    let mut faults = Vec::new();
    let missing = traffic.tally.missing + traffic.tally.jumped;
    if missing > 0 {
        faults.push(format!("{missing} packets are missing"));
    }
    let lost = outcome.due.saturating_sub(outcome.stored());
    if lost > 0 {
        faults.push(format!("{lost} of {} blocks were not stored", outcome.due));
    }
    faults.extend(traffic.fault.map(|why| format!("the network: {why}")));
    faults.extend(early_ends(outcome, "directories", false));
    ensure!(faults.is_empty(), "{}", faults.join("; "));
    Ok(())
}
