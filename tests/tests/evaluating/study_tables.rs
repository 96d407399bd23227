//! The tables of published studies beside one's own figures: a campaign of each study's plan at a small scale makes the
//! table of its paper, with the paper's lines, columns and units.

use std::{path::Path, time::Duration};

use nilometer_tests::{Ended, root, start};

/// Runs the program to its end in a directory.
pub(crate) fn run_in(home: &Path, arguments: &[&str]) -> Ended {
    start(home, arguments).end(Duration::from_mins(2))
}

/// The fields of a line of CSV, of which some have quotes.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            _ => fields.last_mut().expect("there is one").push(letter),
        }
    }
    fields
}

/// A decimal number with its point moved to the right by `places`; no zeros lead or end its fraction.
fn with_point(value: &str, places: i32) -> String {
    let number: f64 = value.parse().unwrap_or_else(|error| panic!("{value}: {error}"));
    format!("{:.6}", number * 10_f64.powi(places)).trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A table in Markdown.
#[derive(Debug, Default)]
pub(crate) struct MarkdownTable {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// The tables below the heading of a study in a report, each with the name in its own heading.
pub(crate) fn tables_of(report: &str, study: &str) -> Vec<(String, MarkdownTable)> {
    // Markdown escapes the brackets around units.
    let report = report.replace('\\', "");
    let heading = format!("## Published study: {study}");
    let start = report.find(&heading).unwrap_or_else(|| panic!("no {heading} in {report}"));
    let mut tables: Vec<(String, MarkdownTable)> = Vec::new();
    for line in report[start..].lines().skip(1) {
        if line.starts_with("## ") {
            break;
        }
        if let Some(name) =
            line.trim_start_matches(['#', ' ']).strip_prefix("Table ").filter(|_| line.starts_with('#'))
        {
            tables.push((name.to_owned(), MarkdownTable::default()));
        } else if let Some((_, table)) = tables.last_mut().filter(|_| line.starts_with('|')) {
            table.add(line);
        }
    }
    tables
}

/// One of them.
pub(crate) fn table_of<'a>(tables: &'a [(String, MarkdownTable)], name: &str) -> &'a MarkdownTable {
    let found = tables.iter().find(|(known, _)| known == name);
    &found.unwrap_or_else(|| panic!("no table {name} in {tables:?}")).1
}

impl MarkdownTable {
    fn add(&mut self, line: &str) {
        let cells = line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
        let cells: Vec<String> = cells.collect();
        if self.columns.is_empty() {
            self.columns = cells;
        } else if !cells.iter().all(|cell| cell.chars().all(|letter| "-: ".contains(letter))) {
            self.rows.push(cells);
        }
    }

    /// Returns true if a line has this figure of a system, with or without an error.
    fn shows(&self, row: &[String], system: &str, value: &str) -> bool {
        let is_figure = |cell: &String| cell.split(" ±").next() == Some(value);
        let of_system = |at: usize| row[1].starts_with(system) || self.columns[at].starts_with(system);
        row.iter().enumerate().any(|(at, cell)| is_figure(cell) && of_system(at))
    }

    /// Every published figure of a table stands in a line with its system's name, in the table's unit.
    pub(crate) fn assert_has_published(&self, study: &str, table: &str, test: &str) {
        let path = root().join("reference").join(format!("{study}.csv"));
        let published = std::fs::read_to_string(&path).expect("it is in the repository");
        let mut count = 0;
        for line in published.lines().map(fields) {
            let is_of_it = line[1] == table && line[3].starts_with(test);
            if !is_of_it || line.last().is_some_and(|note| note.contains("count it once")) {
                continue;
            }
            let system = &line[2];
            let value = self.in_own_unit(&line[6], &line[11]);
            assert!(
                self.rows.iter().any(|row| self.shows(row, system, &value)),
                "{system} {value}: {self:#?}"
            );
            count += 1;
        }
        assert!(count > 0, "{study}.csv has no row of table {table}");
    }
}

impl MarkdownTable {
    /// A published figure as a table of `[MB/s]` shows it.
    fn in_own_unit(&self, value: &str, unit: &str) -> String {
        let is_in_megabytes = self.columns.iter().any(|column| column.ends_with("[MB/s]"));
        match unit {
            "GB/s" if is_in_megabytes => with_point(value, 3),
            "KB/s" if is_in_megabytes => with_point(value, -3),
            _ => value.to_owned(),
        }
    }

    /// Returns true if a line is of this target, alone or with further words.
    pub(crate) fn has_line_on(&self, on: &str) -> bool {
        self.rows.iter().any(|row| row[1] == on)
    }
}

/// A finished campaign of these plans on a directory, or on several.
fn measured(home: &Path, plan: &str, scale: &str) -> Ended {
    std::fs::create_dir_all(home.join("target")).expect("space");
    std::fs::create_dir_all(home.join("source")).expect("space");
    let arguments =
        ["evaluate", "target", "--plan", plan, "--scale", scale, "--repeats", "1", "--record", "own.sqlite"];
    let mut arguments: Vec<&str> = arguments.to_vec();
    if plan == "nus" {
        arguments.extend(["--source", "source"]);
    }
    let ended = start(home, &arguments).end(Duration::from_mins(10));
    assert!(ended.has_answered(), "{}\n{}", ended.stdout, ended.stderr);
    ended
}

fn imported(home: &Path, study: &str) {
    let path = root().join("reference").join(format!("{study}.csv"));
    let path = path.display().to_string();
    let ended = run_in(home, &["import", &path, "--record", "published.sqlite"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn compare_lays_own_figures_beside_those_of_the_published_record() {
    let home = tempfile::tempdir().expect("a temporary directory");
    measured(home.path(), "nus", "1/20000");
    imported(home.path(), "nus-gpfs");
    let compared =
        run_in(home.path(), &["compare", "own.sqlite", "published.sqlite", "--format", "markdown"]);
    assert_eq!(compared.code, Some(0), "{compared:?}");
    let tables = tables_of(&compared.stdout, "NUS: dd copies");
    let table = table_of(&tables, "2");
    assert_eq!(table.columns, ["size", "figure", "GPFS (InfiniBand)", "local disk", "NFS (1 GbE)", "A"]);
    assert_eq!(table.rows.len(), 16, "4 sizes, each with real, user, sys and wait: {table:#?}");
    table.assert_has_published("nus-gpfs", "2", "dd copy");
    assert!(compared.stdout.contains("A: own figures, at scale 1/20000"), "{}", compared.stdout);
    assert!(!compared.stdout.contains("not said"), "an imported table states few facts: {}", compared.stdout);
    let study = run_in(home.path(), &["report", "own.sqlite", "--format", "study"]);
    assert_eq!(study.code, Some(0), "{study:?}");
    for words in
        ["PUBLISHED STUDY: NUS: dd copies", "at scale 1/20000", "670.42", "own `4 GB` is 200 kB by 512 B"]
    {
        assert!(study.stdout.contains(words), "{words}: {}", study.stdout);
    }
}

#[test]
fn the_file_sets_of_wa105_are_copied_one_way_and_have_their_table() {
    let home = tempfile::tempdir().expect("a temporary directory");
    measured(home.path(), "wa105-files", "1/1000");
    let report = run_in(home.path(), &["report", "own.sqlite", "--all", "--format", "markdown"]);
    let tables = tables_of(&report.stdout, "WA105: storage for protoDUNE");
    let table = table_of(&tables, "files");
    assert_eq!(table.columns, ["files copied", "on", "rate [MB/s]", "CPU [%]", "CPU of the machine [%]"]);
    let sets = ["300 x 100 MB", "300 x 1 GB", "30 x 10 GB", "15 x 20 GB"];
    let expected: Vec<[&str; 2]> =
        sets.iter().flat_map(|set| ["A, workers 1", "A, workers 6"].map(|on| [*set, on])).collect();
    let names: Vec<[&str; 2]> = table.rows.iter().map(|row| [row[0].as_str(), row[1].as_str()]).collect();
    assert_eq!(names, expected);
    let results = nilometer_record::read(&home.path().join("own.sqlite")).expect("a record");
    let phases: Vec<_> = results.samples.iter().map(|measured| measured.key.phase.name()).collect();
    assert_eq!(phases, ["write"; 8], "the study copied to the storage only");
    assert!(
        report.stdout.contains("300 x 100 MB\\`, \\`300 x 1 GB\\` are 300 files of 1 MB by 1 MB"),
        "{}",
        report.stdout
    );
}

#[test]
fn a_record_without_a_published_study_is_refused_with_the_plans_that_have_one() {
    let home = tempfile::tempdir().expect("a temporary directory");
    std::fs::create_dir(home.path().join("target")).expect("space");
    let plan = "title = \"mine\"\nrepeats = 1\nreserve = \"0 B\"\n[[stage]]\nname = \"copies\"\n\
                [stage.workload.stream]\nfile_size = \"1 MiB\"\nblock_size = \"64 KiB\"\naccess = \"buffered\"\n";
    std::fs::write(home.path().join("plan.toml"), plan).expect("space");
    let ended = run_in(home.path(), &["evaluate", "target", "--plan", "plan.toml", "--record", "own.sqlite"]);
    assert!(ended.has_answered(), "{ended:?}");
    let refused = run_in(home.path(), &["report", "own.sqlite", "--format", "study"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
    let words = "no published study has such a table: measure one of the plans elements, evlbi, nus, pandata, uci, wa105, \
                 wa105-files, wa105-network, or import";
    assert!(refused.stderr.contains(words), "{refused:?}");
}
