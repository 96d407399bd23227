//! What lies where the program writes and is not its own stays as it is: it is neither overwritten, nor removed, nor written
//! through a link. What others wrote is data: nothing of it is run.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};

use nilometer_tests::{Ended, await_some, run, start};
use tempfile::TempDir;

const PLAN: &str = "title = \"one\"\nrepeats = 1\nreserve = \"0 B\"\n[[stage]]\nname = \"w\"\n[stage.workload.stream]\n\
                    file_size = \"1 MiB\"\nblock_size = \"1 MiB\"\naccess = \"buffered\"\n";
const LIMIT: Duration = Duration::from_mins(2);

/// A directory with a plan, a target, and a file of somebody else's that must not be touched.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(home.path().join("target")).expect("a directory");
        fs::write(home.path().join("plan.toml"), PLAN).expect("space");
        fs::write(home.path().join("authorized_keys"), "ssh-ed25519 KEY\n").expect("space");
        Home(home)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn evaluate(&self, more: &[&str]) -> Ended {
        start(self.0.path(), &[&["evaluate"], more].concat()).end(LIMIT)
    }

    /// A record that is there already.
    fn record(&self) -> PathBuf {
        let made = self.evaluate(&["target", "--plan", "plan.toml", "--record", "r.sqlite"]);
        assert!(made.has_answered(), "{}", made.stderr);
        self.path("r.sqlite")
    }

    /// All files with what is in them, and where links lead.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = fs::read_dir(self.0.path()).expect("a directory").flatten();
        let files = entries.filter(|entry| !entry.path().is_dir());
        let content = |path: &Path| match path.read_link() {
            Ok(to) => to.into_os_string().into_encoded_bytes(),
            Err(_) => fs::read(path).unwrap_or_default(),
        };
        files.map(|entry| (entry.file_name().into(), content(&entry.path()))).collect()
    }

    /// What was there before and is not there any more, or not the same.
    fn touched(&self, before: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<PathBuf> {
        let after = self.files();
        before
            .iter()
            .filter(|(path, content)| after.get(*path) != Some(content))
            .map(|(path, _)| path.clone())
            .collect()
    }
}

#[test]
fn files_beside_a_record_stay_whatever_their_names() {
    for record in ["Cargo", "results", "evaluation.sqlite"] {
        let home = Home::new();
        for suffix in [".lock", ".new", ".tmp"] {
            fs::write(home.path(&format!("{record}{suffix}")), "somebody's\n").expect("space");
        }
        symlink("authorized_keys", home.path(&format!(".{record}.lock"))).expect("a link");
        let before = home.files();
        let ended = home.evaluate(&["target", "--plan", "plan.toml", "--record", record]);
        assert!(ended.has_answered(), "{}", ended.stderr);
        assert_eq!(home.touched(&before), [""; 0].map(PathBuf::from));
        let new: Vec<_> = home.files().into_keys().filter(|path| !before.contains_key(path)).collect();
        let page = PathBuf::from(format!("{}.html", record.trim_end_matches(".sqlite")));
        let mut expected = [PathBuf::from(record), page];
        expected.sort();
        assert_eq!(new, expected, "nothing but the record and its page is left behind");
    }
}

#[test]
fn what_lies_where_a_record_needs_its_place_is_left_alone_and_named() {
    type Put = fn(&Home, &str);
    let file: Put = |home, name| fs::write(home.path(name), "somebody's\n").expect("space");
    let link: Put = |home, name| symlink("authorized_keys", home.path(name)).expect("a link");
    let cases = [
        (".r.sqlite.nilometer-lock", file, "move it away"),
        (".r.sqlite.nilometer-lock", link, "can't lock the record"),
        ("r.sqlite-journal", file, "lies where a part of the record would be"),
        ("r.sqlite-journal", link, "lies where a part of the record would be"),
        ("r.sqlite-wal", file, "lies where a part of the record would be"),
        ("r.sqlite", file, "exists already"),
        ("r.sqlite", link, "exists already"),
        (
            "r.sqlite",
            (|home, name| symlink("nowhere", home.path(name)).expect("a link")) as Put,
            "exists already",
        ),
    ];
    for (name, put, why) in cases {
        let home = Home::new();
        put(&home, name);
        let before = home.files();
        let ended = home.evaluate(&["target", "--plan", "plan.toml", "--record", "r.sqlite"]);
        assert!(
            ended.code == Some(2) && ended.stderr.contains(why),
            "{name}: {:?}: {}",
            ended.code,
            ended.stderr
        );
        assert_eq!(home.files(), before, "{name}");
        assert!(nilometer_tests::run_directories(&home.path("target")).is_empty(), "{name}");
    }
}

#[test]
fn what_is_no_record_is_refused_before_anything_is_locked_or_opened() {
    let home = Home::new();
    fs::write(home.path("letter.txt"), "hello\n").expect("space");
    fs::write(home.path("letter.txt.lock"), "somebody's\n").expect("space");
    rustix::fs::mkfifoat(rustix::fs::CWD, home.path("fifo"), rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
        .expect("a fifo");
    let before = home.files_but_fifo();
    for name in ["letter.txt", "fifo", "target", "/dev/null"] {
        let ended = home.evaluate(&["--resume", "--record", name]);
        assert!(ended.code == Some(2) && ended.stderr.contains("not a record"), "{name}: {}", ended.stderr);
        let ended = start(home.0.path(), &["report", name]).end(LIMIT);
        assert!(ended.code == Some(2) && ended.stderr.contains("not a record"), "{name}: {}", ended.stderr);
    }
    assert_eq!(home.files_but_fifo(), before);
}

impl Home {
    fn files_but_fifo(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let fifo = self.path("fifo");
        let entries = fs::read_dir(self.0.path()).expect("a directory").flatten();
        let plain = entries.filter(|entry| entry.path() != fifo && !entry.path().is_dir());
        plain.map(|entry| (entry.file_name().into(), fs::read(entry.path()).unwrap_or_default())).collect()
    }
}

/// A rollback journal may name a file, which SQLite opens and, by its name and content, removes. A record is one file, and
/// whoever opens that of somebody else must open no other for them.
#[test]
fn a_journal_that_names_another_file_is_not_replayed() {
    let home = Home::new();
    let record = home.record();
    let victim = home.path("authorized_keys").canonicalize().expect("it is there");
    let journal = home.path("r.sqlite-journal");
    fs::write(&journal, hot_journal(&record, &victim)).expect("space");
    let before = home.files();
    for arguments in [&["report", "r.sqlite"][..], &["evaluate", "--resume", "--record", "r.sqlite"]] {
        let ended = start(home.0.path(), arguments).end(LIMIT);
        assert!(
            ended.code == Some(2) && ended.stderr.contains("not a record"),
            "{arguments:?}: {}",
            ended.stderr
        );
        assert_eq!(home.touched(&before), [""; 0].map(PathBuf::from), "{arguments:?}");
    }
}

/// A journal that says that a transaction over several files was cut short: its header
/// (<https://www.sqlite.org/fileformat.html>, section 3), and behind it the name of another file.
fn hot_journal(record: &Path, names: &Path) -> Vec<u8> {
    let database = fs::read(record).expect("the record");
    let page = u32::from(u16::from_be_bytes([database[16], database[17]]));
    let pages = database.len() as u32 / page;
    let mut journal = vec![0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    for field in [0_u32, 1, pages, 512, page] {
        journal.extend(field.to_be_bytes());
    }
    journal.resize(512, 0);
    let name = names.to_str().expect("a plain name").as_bytes();
    let checksum: u32 = name.iter().map(|byte| u32::from(*byte)).sum();
    // The page that holds the lock: none of the database's.
    journal.extend((0x4000_0000 / page + 1).to_be_bytes());
    journal.extend(name);
    journal.extend((name.len() as u32).to_be_bytes());
    journal.extend(checksum.to_be_bytes());
    journal.extend([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]);
    journal
}

#[test]
fn a_record_in_which_something_acts_is_refused() {
    let home = Home::new();
    let record = home.record();
    let endless = "DROP TABLE event; CREATE VIEW event AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) \
                   SELECT x AS id, x AS at, x AS what FROM n";
    rusqlite::Connection::open(record).and_then(|record| record.execute_batch(endless)).expect("a database");
    for arguments in [&["report", "r.sqlite"][..], &["evaluate", "--resume", "--record", "r.sqlite"]] {
        let ended = start(home.0.path(), arguments).end(LIMIT);
        let said = ended.stderr.contains("the view `event` in it differs from the one that nilometer makes");
        assert!(ended.code == Some(2) && said, "{arguments:?}: {}", ended.stderr);
    }
}

/// The disk of the record is full from some moment on: what was measured is kept, and the target is left as it was.
#[test]
fn a_full_disk_under_the_record_leaves_nothing_on_the_target() {
    if !nilometer_tests::may_mount() {
        return;
    }
    let home = Home::new();
    let disk = nilometer_tests::FileSystem::tmpfs("size=2m");
    fs::write(home.path("plan.toml"), PLAN.replace("repeats = 1", "repeats = 1000")).expect("space");
    let record = disk.path().join("r.sqlite");
    let arguments =
        ["evaluate", "target", "--plan", "plan.toml", "--record", record.to_str().expect("a plain name")];
    let mut campaign = start(home.0.path(), &arguments);
    campaign.await_run_directory(&home.path("target"), &record);
    campaign.await_said("[2/");
    let filled = fs::write(disk.path().join("filler"), vec![0; 4 << 20]);
    assert!(filled.is_err(), "the disk is full");
    let ended = campaign.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("the record"), "{}", ended.stderr);
    assert!(nilometer_tests::run_directories(&home.path("target")).is_empty(), "{}", ended.stderr);
    assert!(nilometer_record::read(&record).expect("it is valid").samples.len() >= 2);
}

/// Whoever may write a record that another user resumes must not have that user run commands.
#[test]
fn a_record_runs_no_command_that_its_reader_has_not_named() {
    let home = Home::new();
    fs::write(home.path("camera.toml"), nilometer_tests::camera(50)).expect("space");
    let condition = "name = \"nice\"\nenter = \"true\"\nleave = \"true\"\n";
    fs::write(home.path("nice.toml"), condition).expect("space");
    let options = ["--for", "./camera.toml", "--duration", "400 ms", "--condition", "./nice.toml"];
    let arguments =
        [&["evaluate", "target", "--plan", "plan.toml", "--record", "r.sqlite"][..], &options].concat();
    let campaign = start(home.0.path(), &arguments);
    await_some("the record", || home.path("r.sqlite").exists().then_some(()));
    campaign.killed();
    let trap = home.path("PWNED");
    let crafted = craft(&home.path("r.sqlite"), &format!("id > {}", trap.display()));
    assert!(crafted > 0, "the plan of the record has conditions");
    for more in [&[][..], &["--condition", "nice.toml"], &options] {
        let ended = home.evaluate(&[&["--resume", "--record", "r.sqlite"][..], more].concat());
        assert_eq!(ended.code, Some(2), "{more:?}: {}", ended.stderr);
        assert!(!trap.exists(), "{more:?}: a command of the record was run");
    }
}

/// Puts another command into the conditions of a record's plan, and an event that says that each was entered; how many.
fn craft(record: &Path, command: &str) -> usize {
    let connection = rusqlite::Connection::open(record).expect("a database");
    let path: String =
        connection.query_row("SELECT path FROM target", [], |row| row.get(0)).expect("a target");
    let query = "UPDATE cell SET measurement = json_set(measurement, '$.recording.condition.leave', ?1)
                 WHERE json_type(measurement, '$.recording.condition') = 'object'";
    let crafted = connection.execute(query, [command]).expect("space");
    let event = format!("condition `nice` on {path}: entered");
    connection.execute("INSERT INTO event (at, what) VALUES (1, ?1)", [event]).expect("space");
    crafted
}

#[test]
fn directories_that_are_only_named_alike_are_none_of_ours_and_no_fault() {
    let home = Home::new();
    fs::create_dir(home.path("nilometer-results")).expect("a directory");
    let ended = start(home.0.path(), &["clean", "."]).end(LIMIT);
    assert!(ended.code == Some(0) && ended.stdout.contains("nothing to clean"), "{ended:?}");
    assert!(home.path("nilometer-results").exists());
}

#[test]
fn the_record_of_an_evaluation_is_no_recording() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let record = home.path().join("evaluation.sqlite");
    let mut bytes = b"SQLite format 3\0".to_vec();
    bytes.resize(64 << 10, 0);
    fs::write(&record, bytes).expect("space");
    let record = record.to_str().expect("a plain name");
    for command in ["verify", "scan"] {
        let refused = run(&[command, record]);
        let sentence = format!("no recording, but the record of an evaluation: nilometer check {record}");
        assert!(refused.code == Some(2) && refused.stderr.contains(&sentence), "{command}: {refused:?}");
    }
}
