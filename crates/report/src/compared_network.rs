//! What the network between machines carried, in several records beside each other.

use nilometer_model::{ByteRate, statistics::Summary};

use nilometer_analysis::{
    AlignedNetwork, AlignedTraffic, LossFreeRate, NetworkRates, RecordsCompared, effect::Effect, letter,
};

use super::{
    compared::{FigureColumns, against_first, lone, pair},
    render::{BOLD, DIM, Page, RED, YELLOW, clipped},
    words::NONE,
};

/// What stands above the figures.
pub(super) const NOTE: &str = "measured once for all targets of a record, here under the first of them; what came, of all flows \
                               together; of UDP the highest rate at which no packet was lost, searched for once";

/// `BETWEEN: THE NETWORK BETWEEN MACHINES`, in a report's letters.
pub(super) fn heading(network: &AlignedNetwork) -> String {
    format!("{}: the network between machines", network.stage)
}

/// Of those that are compared in pairs, the ones that measured it.
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

/// Why repeats of a subject can't be used, if some can't.
pub(super) fn failed(row: &AlignedTraffic, subject: usize) -> Option<String> {
    let NetworkRates { failed, .. } = row.of(subject)?;
    failed.as_ref().map(|why| format!("FAILED: {why}"))
}

/// What a row says of the second of two that are shown, against the first.
pub(super) fn row_effect(network: &AlignedNetwork, row: usize, shown: &[usize]) -> Option<Effect> {
    let [first, second] = shown[..] else { return None };
    network.effect(row, first, second)
}

pub(super) fn network_table(page: &mut Page, compared: &RecordsCompared<'_>, network: &AlignedNetwork) {
    page.line("", "");
    let name = clipped(&heading(network).to_uppercase(), page.width());
    page.line(BOLD, &name);
    page.paragraph(DIM, "  ", NOTE);
    let shown = shown(compared, network);
    for columns in FigureColumns::all(page, &shown) {
        columns.head(page);
        for (number, row) in network.rows.iter().enumerate() {
            let figures = columns.shown.iter().map(|subject| figure(row, *subject));
            let effect = row_effect(network, number, &shown);
            let effect = effect.map(|effect| against_first(&effect, compared.margin));
            columns.row(page, &row.words, figures, effect);
            write_failed(page, row, &columns.shown);
        }
    }
    for of in &network.lone {
        page.paragraph(YELLOW, "  ", &lone(of));
    }
}

fn write_failed(page: &mut Page, row: &AlignedTraffic, shown: &[usize]) {
    for &subject in shown {
        if let Some(why) = failed(row, subject) {
            page.paragraph(RED, &format!("      {} ", letter(subject)), &why);
        }
    }
}

/// The sentences of its pairs.
pub(super) fn network_answers(page: &mut Page, network: &AlignedNetwork, margin: f64) {
    if network.pairs.is_empty() {
        return;
    }
    page.paragraph("", "  ", &network.stage);
    let mut first = "    network  ".to_owned();
    for of in &network.pairs {
        page.paragraph("", &first, &pair(of, margin));
        first = " ".repeat(first.len());
    }
}
