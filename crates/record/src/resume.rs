//! Resumes an unfinished record: reads its content and changes the parts that may change.

use std::{collections::BTreeMap, path::Path};

use nilometer_model::{Invalid, NetworkStage, RunHandle};
use nilometer_plan::{Key, PlannedCampaign};
use rusqlite::{Connection, params};

use super::{
    Record, RecordError,
    connection::{open, to_write},
    lock::Lock,
    network,
    place::Place,
    read::{self, invalid, key},
    unfinished::remove_abandoned,
};

/// The facts that a campaign needs from its own record in order to resume.
#[derive(Debug, Clone, PartialEq)]
pub struct Begun {
    /// The campaign's plan.
    pub campaign: PlannedCampaign,
    /// The samples in the record, each with the reason why it must not be used, if there is one.
    pub done: BTreeMap<Key, Option<Invalid>>,
    /// For each target in the plan's order, the reason why it was left out, if it was.
    pub left_out: Vec<Option<String>>,
    /// All directories and files that the campaign made on its targets or was about to make, each with its
    /// target.
    pub runs: Vec<(usize, RunHandle)>,
    /// Network measurements, including warm-up rounds.
    pub network: Vec<NetworkStage>,
}

impl Record {
    /// Opens an existing record to add to it. It refuses a foreign file, an unknown schema, a record in use, and
    /// results of other programs. The first change brings an older schema to the present one; until then the file
    /// and its seal stay as they are.
    pub fn resume(path: &Path) -> Result<(Self, Begun), RecordError> {
        let place = Place::existing(path)?;
        let lock = Lock::of(&place)?;
        remove_abandoned(&place, None);
        let connection = open(path, to_write)?;
        let failed = |source| RecordError::Sqlite { path: path.into(), action: "read", source };
        let begun = begun(&connection).map_err(failed)?;
        let begun = begun.ok_or_else(|| RecordError::NoCampaign { path: path.into() })?;
        Ok((Record::held(path, connection, lock), begun))
    }

    /// Stores the names that the campaign is about to use on its targets, so that they can be found after a
    /// kill.
    pub fn note_runs(&mut self, runs: &[(usize, RunHandle)]) -> Result<(), RecordError> {
        self.within("add a run directory to", |transaction| {
            for (target, handle) in runs {
                let row = params![target, handle.0];
                transaction.execute("INSERT INTO run (target, directory) VALUES (?1, ?2)", row)?;
            }
            Ok(())
        })
    }

    /// Marks a target as in use again after it was left out.
    pub fn take_back(&mut self, target: usize) -> Result<(), RecordError> {
        self.within("change a target in", |transaction| {
            transaction.execute("UPDATE target SET left_out = NULL WHERE id = ?1", [target]).map(drop)
        })
    }
}

fn begun(connection: &Connection) -> rusqlite::Result<Option<Begun>> {
    let Some(campaign) = read::campaign(connection, &read::cells(connection)?)? else { return Ok(None) };
    let mut done = connection.prepare("SELECT target, cell, repeat, phase, invalid FROM sample")?;
    let mut left_out = connection.prepare("SELECT left_out FROM target ORDER BY id")?;
    let mut runs = connection.prepare("SELECT target, directory FROM run ORDER BY id")?;
    Ok(Some(Begun {
        campaign,
        done: done.query_map([], |row| Ok((key(row)?, invalid(row)?)))?.collect::<rusqlite::Result<_>>()?,
        left_out: left_out.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?,
        runs: runs
            .query_map([], |row| Ok((row.get(0)?, RunHandle(row.get(1)?))))?
            .collect::<rusqlite::Result<_>>()?,
        network: network::stages(connection, 0)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::tests::{campaign, plan};
    use nilometer_model::{Phase, Sample};
    use nilometer_plan::{Results, TargetEntry};

    fn begin(path: &Path) -> Record {
        let target = |path: &str| TargetEntry { path: path.into(), ..TargetEntry::default() };
        let targets = vec![target("/a"), target("/b")];
        let head = Results { campaign: Some(campaign()), cells: plan().cells, targets, ..Results::default() };
        Record::create(path, &head, 1).expect("a new record")
    }

    const KEY: Key = Key { target: 1, cell: 0, repeat: 2, phase: Phase::Write };

    #[test]
    fn what_is_there_is_found_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("r.sqlite");
        let mut record = begin(&path);
        record.add(KEY, &Sample::invalid(Invalid::Hung)).expect("space");
        record.leave_out(1, "gone").expect("space");
        record.note_runs(&[(1, RunHandle("/b/nilometer-1".into()))]).expect("space");
        assert!(matches!(Record::resume(&path), Err(RecordError::InUse { .. })), "one writes");
        drop(record);
        let (mut record, begun) = Record::resume(&path).expect("nobody writes");
        let expected = Begun {
            campaign: campaign(),
            done: BTreeMap::from([(KEY, Some(Invalid::Hung))]),
            left_out: vec![None, Some("gone".into())],
            runs: vec![(1, RunHandle("/b/nilometer-1".into()))],
            network: Vec::new(),
        };
        assert_eq!(begun, expected);
        record.take_back(1).expect("space");
        record.add(Key { repeat: 3, ..KEY }, &Sample::invalid(Invalid::Hung)).expect("space");
        drop(record);
        let (_, begun) = Record::resume(&path).expect("nobody writes");
        assert_eq!((begun.done.len(), begun.left_out), (2, vec![None, None]));
    }

    #[test]
    fn results_of_no_campaign_are_read_and_not_gone_on_with() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("r.sqlite");
        drop(Record::create(&path, &Results::default(), 0).expect("a new record"));
        assert_eq!(crate::read(&path).expect("a record").campaign, None);
        assert!(matches!(Record::resume(&path), Err(RecordError::NoCampaign { .. })));
    }

    #[test]
    fn foreign_files_are_refused_and_stay_as_they_are() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("r.sqlite");
        assert!(matches!(Record::resume(&path), Err(RecordError::Missing { .. })));
        std::fs::write(&path, "a text that is no database, and is long enough to be looked at")
            .expect("a file");
        assert!(matches!(Record::resume(&path), Err(RecordError::Foreign { .. })));
        std::fs::remove_file(&path).expect("a file");
        let connection = Connection::open(&path).expect("a database");
        connection.execute_batch("CREATE TABLE t (x); PRAGMA user_version = 1").expect("space");
        assert!(matches!(Record::resume(&path), Err(RecordError::Foreign { .. })));
        connection
            .execute_batch("CREATE TABLE campaign (nilometer); INSERT INTO campaign VALUES ('9.9')")
            .expect("ok");
        connection.execute_batch("PRAGMA user_version = 99").expect("space");
        let error = Record::resume(&path).expect_err("newer").to_string();
        assert!(error.contains("has schema 99;") && error.ends_with("(nilometer 9.9)"), "{error}");
        let left: Vec<_> = std::fs::read_dir(directory.path()).expect("a directory").flatten().collect();
        assert_eq!(left.len(), 1, "no lock stays: {left:?}");
    }
}
