//! The page of the record's tables, from the comments in the SQL that makes them.

use nilometer_tests::{read, root};

use super::markdown::{code, sentence, table};

const HEAD: &str = "# The tables of a record

A record is one SQLite file. Any SQLite tool may read it, also during the campaign; only Nilometer writes it. Times are in \
nanoseconds and sizes in bytes, unless the meaning names another unit. `nilometer report` and `nilometer compare` read the same \
tables.

";

/// A table or a view of the schema.
#[derive(Debug, Default, PartialEq, Eq)]
struct RecordTable {
    name: String,
    meaning: String,
    columns: Vec<RecordColumn>,
    /// Constraints on several columns, such as `PRIMARY KEY (a, b)`.
    constraints: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct RecordColumn {
    name: String,
    kind: String,
    meaning: String,
}

/// The tables of a schema in its order. A comment above a statement is the meaning of its table. A comment behind a
/// column, and the lines of comment below, are the column's.
fn tables(sql: &str) -> Vec<RecordTable> {
    let mut tables: Vec<RecordTable> = Vec::new();
    let mut above: Vec<&str> = Vec::new();
    let mut is_open = false;
    for line in sql.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("CREATE TABLE ") {
            let name = name.trim_end_matches(" (").to_owned();
            tables.push(RecordTable { name, meaning: above.join(" "), ..RecordTable::default() });
            is_open = true;
        } else if line.starts_with(')') {
            is_open = false;
        } else if is_open && let Some(last) = tables.last_mut() {
            last.add(line);
        }
        match line.strip_prefix("--").filter(|_| !is_open) {
            Some(comment) => above.push(comment.trim()),
            None => above.clear(),
        }
    }
    tables
}

impl RecordTable {
    /// Adds a line between the parentheses of a table.
    fn add(&mut self, line: &str) {
        let (sql, comment) = line.split_once("--").unwrap_or((line, ""));
        let sql = sql.trim().trim_end_matches(',');
        let comment = comment.trim();
        if ["PRIMARY KEY (", "UNIQUE ("].iter().any(|begin| sql.starts_with(begin)) {
            self.constraints.push(sql.to_owned());
        } else if let Some((name, kind)) = sql.split_once(' ') {
            let kind = kind.trim().to_owned();
            self.columns.push(RecordColumn { name: name.to_owned(), kind, meaning: comment.to_owned() });
        } else if let Some(column) = self.columns.last_mut() {
            column.meaning = format!("{} {comment}", column.meaning);
        }
    }

    fn section(&self) -> String {
        let rows = self.columns.iter().map(RecordColumn::row);
        let columns = table(["column", "type", "null", "meaning"], rows);
        let constraints = self.constraints.iter().map(|constraint| format!("{}.\n\n", code(constraint)));
        let meaning = sentence(&self.meaning);
        format!("## `{}`\n\n{meaning}\n\n{columns}{}", self.name, constraints.collect::<String>())
    }
}

impl RecordColumn {
    fn row(&self) -> [String; 4] {
        let must = self.kind.contains("NOT NULL") || self.kind.contains("PRIMARY KEY");
        let kind = self.kind.replace(" NOT NULL", "");
        let null = if must { "" } else { "yes" };
        [code(&self.name), code(&kind), null.to_owned(), capital(&sentence(&self.meaning))]
    }
}

/// The text with an upper-case letter at its beginning.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The views of a schema, as their SQL.
fn views(sql: &str) -> String {
    let begins = sql.find("\nCREATE VIEW ").map_or(sql.len(), |at| at + 1);
    let above = sql[..begins].trim_end();
    let comment: Vec<_> = above.lines().rev().take_while(|line| line.starts_with("--")).collect();
    let comment: Vec<_> = comment.iter().rev().map(|line| line.trim_start_matches("--").trim()).collect();
    format!("## Views\n\n{}\n\n```sql\n{}\n```\n", comment.join(" "), sql[begins..].trim_end())
}

pub(super) fn page() -> String {
    let sql = read(&root().join("crates/record/src/schema.sql"));
    let tables = tables(&sql);
    let statements = sql.matches("CREATE TABLE ").count();
    assert_eq!(tables.len(), statements, "a table of the schema was not read");
    let sections: String = tables.iter().map(RecordTable::section).collect();
    format!("{HEAD}{sections}{}", views(&sql))
}

#[test]
fn comments_belong_to_the_table_or_the_column_before_them() {
    let sql = "-- Of nothing.\n\n-- A table\n-- of two lines.\nCREATE TABLE a (\n    id   INTEGER PRIMARY KEY, -- the first,\n\
               \x20                            -- and more\n    name TEXT,\n    UNIQUE (id, name)\n);\n-- A view.\nCREATE VIEW b AS\nSELECT 1;\n";
    let read = tables(sql);
    let [one] = &read[..] else { panic!("{read:?}") };
    assert_eq!((&*one.name, &*one.meaning), ("a", "A table of two lines."));
    assert_eq!(one.constraints, ["UNIQUE (id, name)"]);
    let rows: Vec<_> = one.columns.iter().map(RecordColumn::row).collect();
    assert_eq!(rows[0], ["`id`", "`INTEGER PRIMARY KEY`", "", "The first, and more."]);
    assert_eq!(rows[1], ["`name`", "`TEXT`", "yes", ""]);
    assert_eq!(views(sql), "## Views\n\nA view.\n\n```sql\nCREATE VIEW b AS\nSELECT 1;\n```\n");
}
