//! The network rates between machines in several records.

use nilometer_model::{ByteRate, statistics::Summary};

use nilometer_analysis::{
    AlignedNetwork, AlignedTraffic, LossFreeRate, NetworkRates, RecordsCompared, effect::Effect,
};

use super::words::NONE;

/// The note above the figures.
pub(super) const NOTE: &str = "measured once for all targets of a record, shown under the first. Rates are \
                               as received, all flows together; for UDP the highest rate without a lost \
                               packet, searched once";

/// `BETWEEN: THE NETWORK BETWEEN MACHINES`, in a report's letters.
pub(super) fn heading(network: &AlignedNetwork) -> String {
    format!("{}: the network between machines", network.stage)
}

/// Returns the records compared in pairs that measured this network.
pub(super) fn shown(compared: &RecordsCompared<'_>, network: &AlignedNetwork) -> Vec<usize> {
    let having = network.subjects();
    compared.shown.iter().copied().filter(|subject| having.contains(subject)).collect()
}

/// `9.4 Gbit/s ± 1 %`, or why there is none.
pub(super) fn figure(row: &AlignedTraffic, subject: usize) -> String {
    let Some(rates) = row.of(subject) else { return NONE.into() };
    match (rates.summary(), rates.loss_free) {
        (Some(rate), _) => rate_words(&rate),
        (None, Some(LossFreeRate { whole: Some(whole), .. })) => whole.bits(),
        (None, Some(LossFreeRate { lossy: Some(lossy), .. })) => format!("< {}", lossy.bits()),
        (None, _) if rates.failed.is_some() => "FAILED".into(),
        (None, _) => NONE.into(),
    }
}

fn rate_words(rate: &Summary) -> String {
    let width = rate.half_width().map(|half| format!(" ± {:.0} %", 100.0 * half / rate.mean));
    format!("{}{}", ByteRate(rate.mean).bits(), width.unwrap_or_default())
}

/// Returns the reasons why repeats of a subject can't be used, if there are any.
pub(super) fn failed(row: &AlignedTraffic, subject: usize) -> Option<String> {
    let NetworkRates { failed, .. } = row.of(subject)?;
    failed.as_ref().map(|why| format!("FAILED: {why}"))
}

/// Compares the second of two records shown with the first in a row.
pub(super) fn row_effect(network: &AlignedNetwork, row: usize, shown: &[usize]) -> Option<Effect> {
    let [first, second] = shown[..] else { return None };
    network.effect(row, first, second)
}
