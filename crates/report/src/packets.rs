//! Packets received over loopback: their figures by the names used in every report for programs, and a table of
//! their cost by size and rate.

use std::ops::RangeInclusive;

use nilometer_model::{ByteRate, Bytes, PacketTotals};
use serde_json::Value as Json;

use nilometer_analysis::{AtRate, Curve, LossBegins, letter};

/// A figure's name, and the function that computes it.
pub(super) type Figure = (&'static str, fn(&PacketTotals) -> Json);

/// All figures. Counts are counts of packets.
pub(super) const FIGURES: [Figure; 19] = [
    ("packet_bytes", |p| p.size.0.into()),
    ("packets_due", |p| p.due.into()),
    ("packets_unsent", |p| p.unsent.into()),
    ("packets_came", |p| p.came.into()),
    ("packets_stored", |p| p.stored.into()),
    ("packets_lost", |p| p.lost().into()),
    ("packets_lost_in_kernel", |p| p.in_kernel().into()),
    ("packets_lost_in_ring", |p| p.ring.into()),
    ("messages_dropped_by_kernel", |p| p.dropped.into()),
    ("loss_periods", |p| p.losses.into()),
    ("longest_loss_packets", |p| p.longest_loss.into()),
    ("packets_reordered", |p| p.reordered.into()),
    ("reordering_extent_packets", |p| p.extent.into()),
    ("overtaken_packets", |p| p.overtaken.into()),
    ("packets_twice", |p| p.duplicates.into()),
    ("socket_buffer_bytes", |p| p.room.0.into()),
    ("packet_latest_sent_s", |p| p.late.seconds().into()),
    ("sending_cpu_s", |p| p.sending.seconds().into()),
    ("receiving_cpu_s", |p| p.receiving.seconds().into()),
];

/// The explanation of the table.
pub(super) const LEGEND: &str = "processor time of the recorder for each packet, by packet size and rate; \
                                 after it the share of lost packets";

/// Rates within this factor are one row, because headers add more to the rate of small packets.
const ALIKE: f64 = 1.04;

/// Names the target of the recordings.
pub(super) fn heading(curve: &Curve) -> String {
    let onto = if curve.onto_nothing { "nothing".into() } else { letter(curve.target) };
    format!("packets over loopback onto {onto}")
}

/// The sizes, a column each.
pub(super) fn columns(curves: &[Curve]) -> Vec<String> {
    curves.iter().map(|curve| bytes(curve.size)).collect()
}

/// Makes a row for each rate, with the rate and a figure for each size.
pub(super) fn rows(curves: &[Curve]) -> Vec<Vec<String>> {
    let row = |rates: RangeInclusive<f64>| {
        let at = |curve: &Curve| curve.rates.iter().find(|at| rates.contains(&at.rate.0)).map(figure);
        let figures = curves.iter().map(|curve| at(curve).unwrap_or_default());
        std::iter::once(ByteRate(*rates.start()).bits()).chain(figures).collect()
    };
    rate_ranges(curves).into_iter().map(row).collect()
}

/// Returns ranges of rates that form one row. Sizes have different headers, so their rates differ slightly.
fn rate_ranges(curves: &[Curve]) -> Vec<RangeInclusive<f64>> {
    let mut rates: Vec<f64> = curves.iter().flat_map(|curve| &curve.rates).map(|at| at.rate.0).collect();
    rates.sort_by(f64::total_cmp);
    let mut rows: Vec<RangeInclusive<f64>> = Vec::new();
    for rate in rates {
        match rows.last() {
            Some(row) if row.contains(&rate) => {}
            _ => rows.push(rate..=rate * ALIKE),
        }
    }
    rows
}

/// A time, and a share if some were lost.
fn figure(at: &AtRate) -> String {
    let Some(cost) = at.cost else { return if at.valid == 0 { "INVALID".into() } else { "-".into() } };
    let lost = if at.lossy > 0 { format!(" {:.2} %", at.lost * 100.0) } else { String::new() };
    format!("{cost}{lost}")
}

/// Formats a packet size exactly, to the byte.
pub(super) fn bytes(size: Bytes) -> String {
    format!("{} B", size.0)
}

/// Describes where loss begins.
pub(super) fn begins(curve: &Curve) -> String {
    let size = bytes(curve.size);
    let clean = curve.rates.iter().take_while(|at| at.lossy == 0);
    let highest = clean.filter(|at| at.valid > 0).last();
    match (curve.loss_begins(), highest) {
        (Some(LossBegins { carried: Some(carried), lost }), _) => {
            format!("packets of {size}: loss begins between {} and {}", carried.bits(), lost.bits())
        }
        (Some(LossBegins { lost, .. }), _) => {
            format!("packets of {size}: at {} some are lost already", lost.bits())
        }
        (None, Some(at)) => {
            let rest = beyond(curve, at.rate);
            format!("packets of {size}: none was lost up to {}{rest}", at.rate.bits())
        }
        (None, None) => format!("packets of {size}: not decided{}", beyond(curve, ByteRate(0.0))),
    }
}

/// Describes the results at higher rates, which do not show where loss begins.
fn beyond(curve: &Curve, rate: ByteRate) -> String {
    let mut above = curve.rates.iter().filter(|at| at.rate.0 > rate.0);
    let told = above.find_map(|at| match &at.invalid {
        _ if at.lossy > 0 => {
            Some(format!(": at {} {} of {} repeats lost some", at.rate.bits(), at.lossy, at.valid))
        }
        Some(invalid) if at.valid == 0 => Some(format!(": at {} {invalid}", at.rate.bits())),
        _ => None,
    });
    told.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_analysis::{curves, made_up::packets as tests};
    use nilometer_model::Invalid;

    #[test]
    fn a_rate_at_which_one_of_many_lost_is_none_at_which_none_was_lost() {
        let lost = |rate, lost: [u64; 2]| lost.map(|lost| tests::measured(0, 8000, rate, lost, None));
        let samples = [lost(1e8, [0, 0]), lost(2e8, [0, 7]), lost(3e8, [0, 0])].concat();
        let told = begins(&curves(&tests::results(samples))[0]);
        assert!(
            told.ends_with("none was lost up to 800 Mbit/s: at 1.6 Gbit/s 1 of 2 repeats lost some"),
            "{told}"
        );
        let slow = Some(Invalid::Slow(None));
        let samples = vec![tests::measured(0, 8000, 1e8, 0, slow), tests::measured(0, 8000, 2e8, 0, None)];
        let told = begins(&curves(&tests::results(samples))[0]);
        assert!(told.ends_with("none was lost up to 1.6 Gbit/s"), "what is below says nothing: {told}");
    }

    #[test]
    fn a_row_a_rate_and_a_column_a_size() {
        let samples = vec![
            tests::measured(0, 8040, 5.02e7, 0, None),
            tests::measured(0, 8040, 1.004e8, 100, None),
            tests::measured(0, 1040, 5.16e7, 0, None),
            tests::measured(0, 1040, 1.032e8, 0, Some(Invalid::Slow(None))),
        ];
        let curves = curves(&tests::results(samples));
        assert_eq!(columns(&curves), ["1040 B", "8040 B"]);
        let expected = [["402 Mbit/s", "2 us", "2 us"], ["803 Mbit/s", "INVALID", "2 us 0.80 %"]];
        assert_eq!(rows(&curves), expected);
        let told: Vec<String> = curves.iter().map(begins).collect();
        assert!(
            told[0].contains("none was lost up to 413 Mbit/s: at 826 Mbit/s the simulated"),
            "{}",
            told[0]
        );
        assert!(told[1].contains("between 402 Mbit/s and 803 Mbit/s"), "{}", told[1]);
    }
}
