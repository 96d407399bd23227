//! Samples of a record by the ids of their rows: the rows of other tables refer to these.

use std::collections::HashMap;

use nilometer_model::Sample;
use nilometer_plan::Measured;
use rusqlite::{Connection, Row};

/// A sample with its row's id.
pub(super) type Numbered = (i64, Measured);

/// Positions of samples by their ids.
pub(super) struct Places(HashMap<i64, usize>);

impl Places {
    pub(super) fn of(samples: &[Numbered]) -> Self {
        Places(samples.iter().enumerate().map(|(at, (id, _))| (*id, at)).collect())
    }
}

/// Hands every row of a query to its sample. The first column is the id of the sample.
pub(super) fn each(
    connection: &Connection,
    query: &str,
    samples: &mut [Numbered],
    places: &Places,
    mut put: impl FnMut(&Row<'_>, &mut Sample) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(&at) = places.0.get(&row.get(0)?) {
            put(row, &mut samples[at].1.sample)?;
        }
    }
    Ok(())
}
