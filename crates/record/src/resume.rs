//! Going on with a record that a campaign left unfinished: what is in it already, and what of it may change.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use nilometer_model::{Invalid, Key, plan::Phase};
use rusqlite::{Connection, Row, params, types::Type};

use super::{Record, RecordError, earlier, lock::Lock, place::Place, read::open, write};

/// What a campaign must know of its own record to go on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Begun {
    /// The resolved plan as JSON.
    pub plan: String,
    /// The samples that are there, and why they must not be used, if so.
    pub done: BTreeMap<Key, Option<Invalid>>,
    /// Why each target was left out, if it was; in the order of the plan.
    pub left_out: Vec<Option<String>>,
    /// Every directory that the campaign made or was about to make, with its target.
    pub directories: Vec<(usize, PathBuf)>,
}

impl Record {
    /// Opens an existing record to add to it. Refuses a foreign file, another schema, and a record in use.
    pub fn resume(path: &Path) -> Result<(Self, Begun), RecordError> {
        let lock = Lock::of(&Place::existing(path)?)?;
        let connection = open(path, write::connect)?;
        let begun = begun(&connection).map_err(|source| RecordError::Sqlite {
            path: path.into(),
            action: "read",
            source,
        })?;
        Ok((Record::held(path, connection, lock), begun))
    }

    /// Notes the directories that the campaign is about to make on its targets, so that they are found after a kill.
    pub fn note_directories(&mut self, directories: &[(usize, PathBuf)]) -> Result<(), RecordError> {
        self.within("add a run directory to", |transaction| {
            for (target, directory) in directories {
                let row = params![target, directory.to_string_lossy()];
                transaction.execute("INSERT INTO run (target, directory) VALUES (?1, ?2)", row)?;
            }
            Ok(())
        })
    }

    /// A target that was given up is used again.
    pub fn take_back(&mut self, target: usize) -> Result<(), RecordError> {
        self.within("change a target in", |transaction| {
            transaction.execute("UPDATE target SET left_out = NULL WHERE id = ?1", [target]).map(drop)
        })
    }
}

fn begun(connection: &Connection) -> rusqlite::Result<Begun> {
    let plan = earlier::plan(connection.query_row("SELECT plan FROM campaign", [], |row| row.get(0))?);
    let mut done = connection.prepare("SELECT target, cell, repeat, phase, invalid FROM sample")?;
    let mut left_out = connection.prepare("SELECT left_out FROM target ORDER BY id")?;
    let mut runs = connection.prepare("SELECT target, directory FROM run ORDER BY id")?;
    Ok(Begun {
        plan,
        done: done.query_map([], sample)?.collect::<rusqlite::Result<_>>()?,
        left_out: left_out.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?,
        directories: runs
            .query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?.into())))?
            .collect::<rusqlite::Result<_>>()?,
    })
}

fn sample(row: &Row<'_>) -> rusqlite::Result<(Key, Option<Invalid>)> {
    let phase = row.get_ref(3)?.as_str()?;
    let phase = Phase::from_name(phase).ok_or_else(|| {
        rusqlite::Error::FromSqlConversionFailure(3, Type::Text, format!("unknown phase `{phase}`").into())
    })?;
    let key = Key { target: row.get(0)?, cell: row.get(1)?, repeat: row.get(2)?, phase };
    Ok((key, row.get_ref(4)?.as_str_or_null()?.map(Invalid::from_text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::{CellEntry, Results, Sample, TargetEntry};

    fn begin(path: &Path) -> Record {
        let target = |path: &str| TargetEntry { path: path.into(), ..TargetEntry::default() };
        let (targets, cells) = (vec![target("/a"), target("/b")], vec![CellEntry::default()]);
        let head = Results { plan: "{\"x\":1}".into(), targets, cells, ..Results::default() };
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
        record.note_directories(&[(1, "/b/nilometer-1".into())]).expect("space");
        assert!(matches!(Record::resume(&path), Err(RecordError::InUse { .. })), "one writes");
        drop(record);
        let (mut record, begun) = Record::resume(&path).expect("nobody writes");
        let expected = Begun {
            plan: "{\"x\":1}".into(),
            done: BTreeMap::from([(KEY, Some(Invalid::Hung))]),
            left_out: vec![None, Some("gone".into())],
            directories: vec![(1, "/b/nilometer-1".into())],
        };
        assert_eq!(begun, expected);
        record.take_back(1).expect("space");
        record.add(Key { repeat: 3, ..KEY }, &Sample::invalid(Invalid::Hung)).expect("space");
        drop(record);
        let (_, begun) = Record::resume(&path).expect("nobody writes");
        assert_eq!((begun.done.len(), begun.left_out), (2, vec![None, None]));
    }

    #[test]
    fn an_earlier_plan_is_given_in_todays_form_to_who_reads_and_to_who_goes_on() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("r.sqlite");
        let head = Results { plan: earlier::tests::EARLIER.into(), ..Results::default() };
        drop(Record::create(&path, &head, 0).expect("a new record"));
        let today = earlier::plan(head.plan);
        assert_eq!(crate::read(&path).expect("a record").plan, today);
        assert_eq!(Record::resume(&path).expect("nobody writes").1.plan, today);
        assert!(today.contains("\"stage\":\"pilatus-6m\"") && !today.contains("ingests"), "{today}");
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
        assert!(error.contains("schema 99, written by nilometer 9.9"), "{error}");
        let left: Vec<_> = std::fs::read_dir(directory.path()).expect("a directory").flatten().collect();
        assert_eq!(left.len(), 1, "no lock stays: {left:?}");
    }
}
