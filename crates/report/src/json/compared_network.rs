//! The network rates between machines in several records, for programs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    Numbers,
    compared_cells::{Only, Pair, letters, pair_of, unit},
    numbers,
};
use crate::compared::pair;
use nilometer_analysis::{AlignedNetwork, AlignedTraffic, NetworkRates, Quantity, letter};

/// A stage, with the rates and answers of all that measured it.
#[derive(Serialize)]
pub(super) struct ComparedNetwork<'a> {
    stage: &'a str,
    /// `bytes_per_second`, for all figures.
    unit: &'static str,
    /// By the rates of TCP, the fastest first.
    order: Vec<String>,
    pairs: Vec<Pair>,
    cells: Vec<ComparedTraffic<'a>>,
    /// Cells that some records lack, grouped by the records that have them.
    only: Vec<Only<'a>>,
}

#[derive(Serialize)]
struct ComparedTraffic<'a> {
    cell: &'a str,
    /// By the letter of the subject.
    figures: BTreeMap<String, TrafficFigure<'a>>,
}

#[derive(Serialize)]
struct TrafficFigure<'a> {
    /// The rate of TCP; null if a flow failed in every repeat.
    rate: Option<Numbers>,
    repeats: usize,
    /// The reason of the first failure.
    failed: Option<&'a str>,
    /// For a search with UDP: the highest rate without loss, and the lowest with loss.
    loss_free_bytes_per_second: Option<f64>,
    lossy_bytes_per_second: Option<f64>,
}

pub(super) fn compared_network(of: &AlignedNetwork, margin: f64) -> ComparedNetwork<'_> {
    let rows: Vec<usize> = (0..of.rows.len()).collect();
    let only = of.lone.iter().map(|lone| Only { subjects: letters(&lone.subjects), cells: &lone.cells });
    ComparedNetwork {
        stage: &of.stage,
        unit: unit(Quantity::Bytes),
        order: letters(&of.order),
        pairs: of.pairs.iter().map(|two| pair_of(two, &rows, margin, pair(two, margin))).collect(),
        cells: of.rows.iter().map(network_cell).collect(),
        only: only.collect(),
    }
}

fn network_cell(row: &AlignedTraffic) -> ComparedTraffic<'_> {
    let figures = row.rates.iter().enumerate();
    let figures = figures.filter_map(|(of, rates)| Some((letter(of), network_figure(rates.as_ref()?))));
    ComparedTraffic { cell: &row.words, figures: figures.collect() }
}

fn network_figure(rates: &NetworkRates) -> TrafficFigure<'_> {
    let found = rates.loss_free;
    TrafficFigure {
        rate: rates.summary().as_ref().map(numbers),
        repeats: rates.samples,
        failed: rates.failed.as_deref(),
        loss_free_bytes_per_second: found.and_then(|found| found.whole).map(|rate| rate.0),
        lossy_bytes_per_second: found.and_then(|found| found.lossy).map(|rate| rate.0),
    }
}
