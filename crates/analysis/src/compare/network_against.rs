//! Compares the network between machines with that of a baseline.

use nilometer_model::ByteRate;

use super::{
    AlignedNetwork, AlignedTraffic, NetworkRates, RecordsCompared,
    against::Tested,
    figures::Held,
    figures::LeftFigure,
    pair::{against_runs, unpaired},
};

impl RecordsCompared<'_> {
    /// Tests the rows of each network stage, and each stage over all its rows, of each record against the first.
    pub(super) fn test_networks(&self, tested: &mut Vec<Tested>, left: &mut Vec<LeftFigure>) {
        let of_record = |record| self.subjects.iter().position(|subject| subject.record == record);
        let runs: Vec<usize> = (0..self.baselines).filter_map(of_record).collect();
        let Some(&before) = runs.last() else { return };
        for now in (self.baselines..self.records.len()).filter_map(of_record) {
            for network in &self.networks {
                let held = Held { now, before };
                network.test(held, &runs, tested);
                let gone = network.rows.iter().filter_map(|row| Some((row, row.gone(held)?)));
                let stage = &network.stage;
                let figure = |row: &AlignedTraffic| format!("{}: {stage}, {}", self.name(now), row.words);
                left.extend(gone.map(|(row, why)| LeftFigure { what: figure(row), why }));
            }
        }
    }
}

impl AlignedNetwork {
    fn test(&self, held: Held, runs: &[usize], tested: &mut Vec<Tested>) {
        let found = if runs.len() < 2 {
            unpaired(&self.cells(held.now, held.before))
        } else {
            against_runs(&self.cells_of_runs(held.now, runs))
        };
        let Some(found) = found else { return };
        if found.cells.len() > 1 {
            let what = format!("{}, network over {} cells", self.stage, found.cells.len());
            tested.push(Tested { held, what, is_mean: true, difference: found.overall, rates: None });
        }
        for (row, difference) in found.cells {
            let row = &self.rows[row];
            let rate = |subject| row.of(subject).and_then(NetworkRates::summary);
            let shown = rate(held.now).zip(rate(held.before));
            tested.push(Tested {
                held,
                what: format!("{}, {}", self.stage, row.words),
                is_mean: false,
                difference,
                rates: shown.map(|(now, before)| [now, before].map(|of| ByteRate(of.mean).bits())),
            });
        }
    }
}

impl AlignedTraffic {
    /// The reason why a row of the baseline can't be compared. A search is made once, so that it can't be tested.
    fn gone(&self, held: Held) -> Option<&'static str> {
        let before = self.of(held.before)?;
        if before.is_search {
            return None;
        }
        let now = self.of(held.now);
        match (before.repeats.is_empty(), now) {
            (_, None) => Some("not measured now"),
            (false, Some(now)) => now.repeats.is_empty().then_some("FAILED now"),
            (true, Some(_)) => Some("FAILED in the baseline"),
        }
    }
}
