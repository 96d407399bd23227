//! Checks that a file's tables are those of a record. The author of an SQLite file controls SQLite's work on
//! it: a view may compute forever, and a trigger may change writes. Each table must therefore be exactly the one in
//! [`SCHEMA`], with nothing attached to it. Nilometer never reads tables of other names, which users may add.

use rusqlite::Connection;

use super::SCHEMA_VERSION;

/// The statements that make a record, with their documentation.
pub(super) const SCHEMA: &str = include_str!("schema.sql");

/// The first schema with the table `node_start`, which schema 9 does not have.
pub(super) const NODE_START_SINCE: i64 = 10;

/// The first schema with the traffic of machines in intervals.
pub(super) const INTERVALS_SINCE: i64 = 11;

/// The tables that schema 9 does not have, each with its first schema. The schemas have no other difference.
const LATER_TABLES: [(&str, i64); 3] = [
    ("node_start", NODE_START_SINCE),
    ("network_interval", INTERVALS_SINCE),
    ("link_interval", INTERVALS_SINCE),
];

/// Reads the version of a record's schema.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// The statements that make a record of a schema.
fn statements_of(version: i64) -> Vec<String> {
    let mut all = statements(SCHEMA);
    let since = |name: &str| LATER_TABLES.iter().find(|(table, _)| *table == name).map(|(_, since)| *since);
    all.retain(|statement| name_of(statement).and_then(since).is_none_or(|since| version >= since));
    all
}

fn name_of(statement: &str) -> Option<&str> {
    statement.split(' ').nth(2)
}

/// Brings a record of an older schema to the schema that this program writes. The statements become a part of
/// the caller's transaction.
pub(super) fn upgrade(connection: &Connection, from: i64) -> rusqlite::Result<()> {
    let present = statements_of(from);
    for statement in statements(SCHEMA).iter().filter(|statement| !present.contains(statement)) {
        connection.execute_batch(statement)?;
    }
    connection.pragma_update(None, "user_version", SCHEMA_VERSION)
}

/// Names an object that belongs to a table of this version of [`SCHEMA`], but that Nilometer did not make.
/// Returns `None` if the file has all tables and nothing else is attached to them.
pub(super) fn foreign_object(connection: &Connection, version: i64) -> rusqlite::Result<Option<String>> {
    let ours = statements_of(version);
    let names: Vec<&str> = ours.iter().filter_map(|statement| name_of(statement)).collect();
    let mut objects = connection.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema")?;
    let mut rows = objects.query([])?;
    let mut found = 0;
    while let Some(row) = rows.next()? {
        let [kind, name, table]: [String; 3] = [row.get(0)?, row.get(1)?, row.get(2)?];
        let sql: Option<String> = row.get(3)?;
        let is_ours = |known: &&str| known.eq_ignore_ascii_case(&table) || known.eq_ignore_ascii_case(&name);
        if !names.iter().any(is_ours) {
            continue;
        }
        match sql {
            // SQLite made this index for a key.
            None if kind == "index" => {}
            Some(sql) if ours.contains(&normal(&sql)) => found += 1,
            _ => return Ok(Some(format!("the {kind} `{name}`"))),
        }
    }
    Ok((found < ours.len()).then(|| "a table that is missing".into()))
}

fn statements(schema: &str) -> Vec<String> {
    normal(schema).split(';').map(|statement| statement.trim().to_owned()).filter(|s| !s.is_empty()).collect()
}

/// Removes comments and collapses white space. It keeps quotation marks and other starts of comments, so that
/// nothing is hidden here but visible to SQLite. Nilometer's own schema has neither.
fn normal(sql: &str) -> String {
    let code = sql.lines().map(|line| line.split("--").next().unwrap_or(line));
    let words: Vec<&str> = code.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(change: &str) -> Option<String> {
        let connection = Connection::open_in_memory().expect("memory");
        connection.execute_batch(SCHEMA).expect("our own");
        connection.execute_batch(change).expect(change);
        foreign_object(&connection, SCHEMA_VERSION).expect("it can be read")
    }

    #[test]
    fn what_we_made_is_ours_and_other_tables_do_not_matter() {
        let hidden = |statement: &String| statement.contains(['"', '`']) || statement.contains("/*");
        assert!(!statements(SCHEMA).iter().any(hidden), "nothing could hide behind a comment");
        for harmless in ["", "CREATE TABLE notes (x)", "CREATE VIEW mine AS SELECT * FROM sample", "ANALYZE"]
        {
            assert_eq!(foreign(harmless), None, "{harmless}");
        }
    }

    #[test]
    fn anything_else_at_one_of_our_tables_is_found() {
        let endless =
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x AS at, x AS what FROM n";
        for hostile in [
            "DROP TABLE event",
            &format!("DROP TABLE event; CREATE VIEW event AS {endless}"),
            &format!("DROP TABLE event; CREATE VIEW EVENT AS {endless}"),
            "CREATE TRIGGER t AFTER INSERT ON event BEGIN DELETE FROM sample; END",
            "CREATE INDEX i ON event (abs(at))",
            "ALTER TABLE event ADD COLUMN more INTEGER DEFAULT 0",
            "ALTER TABLE event ADD COLUMN more AS (at + 1)",
            "DROP TABLE event; CREATE TABLE event (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, what TEXT NOT NULL) STRICT",
        ] {
            assert!(foreign(hostile).is_some(), "{hostile}");
        }
    }
}
