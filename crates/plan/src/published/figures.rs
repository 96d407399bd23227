//! The published figures of a study, from its tidy CSV.

use csv::ReaderBuilder;
use serde::Deserialize;

/// A row of published figures, with the words of the publication. An empty text was not published.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PublishedFigure {
    /// The number or name of its table.
    pub table: String,
    /// The system that was measured.
    pub system: String,
    /// The test.
    pub test: String,
    /// The parameters of the test.
    pub params: String,
    /// The name of the figure.
    pub metric: String,
    /// The figure.
    pub value: String,
    /// The lower end of a range, if it is one.
    pub value_min: String,
    /// The upper end of a range.
    pub value_max: String,
    /// The standard error of the figure.
    pub sem: String,
    /// The unit of the figure, of its range and of its error.
    pub unit: String,
    /// The load average before the test.
    pub load_avg: String,
    /// The standard error of that load.
    pub load_sem: String,
    /// Input and output before the test, without a unit.
    pub background_io: String,
    /// The standard error of that.
    pub background_sem: String,
    /// A remark.
    pub note: String,
}

impl PublishedFigure {
    /// Returns true if the publication prints the row a second time.
    pub(super) fn is_printed_twice(&self) -> bool {
        self.note.contains("count it once")
    }
}

/// Reads the figures of a study. The file is part of the program: a test reads it.
pub(super) fn read(name: &str, text: &str) -> Vec<PublishedFigure> {
    let mut reader = ReaderBuilder::new().from_reader(text.as_bytes());
    let rows = reader.deserialize().collect::<Result<_, _>>();
    rows.unwrap_or_else(|error| panic!("reference/{name}.csv: {error}"))
}
