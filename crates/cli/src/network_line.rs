//! A line for each measurement of the network, in the progress of a campaign and of `nilometer network`.

use nilometer_model::NetworkResults;

/// The latest measurement of the network, on one line.
pub(crate) fn last_measured(results: &NetworkResults) -> Option<String> {
    let sample = results.samples.last()?;
    let what = results.cells[sample.cell].words(&results.names());
    let asked =
        sample.asked.map(|_| format!(", {} sent, {} packets lost", sample.offered().bits(), sample.lost()));
    let came = sample.failed().map_or_else(|| sample.rate().bits(), |why| format!("failed: {why}"));
    Some(format!("{what}{}: {came}", asked.unwrap_or_default()))
}
