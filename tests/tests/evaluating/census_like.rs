//! A tree like one that `nilometer census` counted: the made tree has the same census, in proportion. A campaign goes
//! on without the file, and a file that is no census is refused before anything starts.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::Duration,
};

use nilometer_tests::{await_some, run, run_directories, start};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Long enough for a busy machine.
const LIMIT: Duration = Duration::from_mins(5);

/// 200 files of three sizes at three depths: 20 in the first directory, 10 in each of two directories below it, and
/// 40 in each of four below these.
fn tree(home: &Path) {
    let inner = ["a", "b"];
    let lowest = ["a/x", "a/y", "b/x", "b/y"];
    let all = [("", 20)].into_iter().chain(inner.map(|path| (path, 10))).chain(lowest.map(|path| (path, 40)));
    let sizes = [[100; 5].as_slice(), &[5000; 3], &[300_000; 2]].concat();
    let mut sizes = sizes.into_iter().cycle();
    for (path, files) in all {
        fs::create_dir_all(home.join(path)).expect("space");
        for number in 0..files {
            let file = File::create(home.join(path).join(number.to_string())).expect("space");
            file.set_len(sizes.next().expect("endless")).expect("space");
        }
    }
}

fn census(directory: &Path) -> Value {
    let ended = run(&["census", directory.to_str().expect("plain letters"), "--format", "json"]);
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// A plan whose tree lies on the target most of the time.
fn plan(keys: &str) -> String {
    format!(
        "title = \"t\"\nrepeats = 1000\nreserve = \"0 B\"\n[[stage]]\nname = \"like ours\"\ntime_limit = \"2 s\"\n\
         [stage.workload.open_files]\noperations = 1000000000\ncold = false\n{keys}\n"
    )
}

fn written(home: &Path, keys: &str) -> String {
    let path = home.join("plan.toml");
    fs::write(&path, plan(keys)).expect("space");
    path.to_str().expect("plain letters").to_owned()
}

/// A directory with the census of the tree, and an empty target.
struct CountedHome {
    directory: tempfile::TempDir,
    target: PathBuf,
}

impl CountedHome {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let target = directory.path().join("target");
        fs::create_dir(&target).expect("space");
        tree(&directory.path().join("ours"));
        let counted = census(&directory.path().join("ours"));
        fs::write(directory.path().join("census.json"), counted.to_string()).expect("space");
        CountedHome { directory, target }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Directories of a depth: the range of their number of files, how many they are, and their files.
fn directories(kind: &str, from: u64, count: u64, sum: u64) -> Value {
    let other = if kind == "leaves" { "inner" } else { "leaves" };
    json!({ kind: [{ "from": from, "count": count, "sum": sum }], other: [] })
}

#[test]
fn the_made_tree_has_the_census_of_the_users_tree_in_proportion() {
    let home = CountedHome::new();
    let plan = written(home.path(), "like = \"census.json\"\nfiles = 100");
    let shown = run(&["plan", "show", &plan]);
    let numbers = " MB in 4 directories, like census.json";
    let spread = "(median 64 B to 128 B; largest 256 KiB to 512 KiB; 2 levels deep)";
    assert!(shown.stdout.contains(numbers) && shown.stdout.contains(spread), "{shown:?}");
    let target = home.target.to_str().expect("plain letters");
    let running = start(home.path(), &["evaluate", target, "--plan", &plan, "--record", "r.nilo"]);
    let made = await_some("the tree", || {
        let tree = run_directories(&home.target).first()?.join("n_w0");
        tree.is_dir().then(|| census(&tree)).filter(|made| made["bytes"] == 6_155_000)
    });
    running.signal(Signal::INT);
    let ended = running.end(LIMIT);
    assert_eq!(made["files"], 100, "{made}");
    let size =
        |from: u64, count: u64, bytes: u64| json!({ "from": from, "count": count, "sum": count * bytes });
    assert_eq!(made["sizes"], json!([size(64, 50, 100), size(4096, 30, 5000), size(262_144, 20, 300_000)]));
    let [first, inner] = [1, 1].map(|count| directories("inner", 8, count, 10));
    assert_eq!(made["levels"], json!([first, inner, directories("leaves", 32, 2, 80)]));
    assert!(run_directories(&home.target).is_empty(), "{ended:?}");
    goes_on_without_the_census(&home);
}

/// The record has the distribution. The report names it beside the first figure.
fn goes_on_without_the_census(home: &CountedHome) {
    fs::remove_file(home.path().join("census.json")).expect("it is there");
    let running = start(home.path(), &["evaluate", "--resume", "--record", "r.nilo"]);
    let record = home.path().join("r.nilo");
    let report = || run(&["report", record.to_str().expect("plain letters"), "--all"]).stdout;
    let words = || report().split_whitespace().collect::<Vec<_>>().join(" ");
    await_some("a figure", || words().contains("like census.json").then_some(()));
    running.signal(Signal::INT);
    let ended = running.end(LIMIT);
    assert!(run_directories(&home.target).is_empty(), "{ended:?}");
}

#[test]
fn a_census_that_is_none_and_keys_that_it_replaces_are_refused_with_their_places() {
    let home = CountedHome::new();
    let counted = fs::read_to_string(home.path().join("census.json")).expect("it was written");
    let changed = |key: &str, value: Value| {
        let mut census: Value = serde_json::from_str(&counted).expect("JSON");
        census[key] = value;
        census.to_string()
    };
    let files = [
        ("none.json", String::new(), "it is no census: EOF while parsing a value at line 1 column 0"),
        ("other.json", "{}".to_owned(), "it is no census: it has no census_version"),
        ("new.json", changed("census_version", 99.into()), "census_version = 99: this program reads 1"),
        (
            "part.json",
            changed("unreadable", 3.into()),
            "it lacks a part of its tree (unreadable = 3, too_deep = 0)",
        ),
        (
            "files.json",
            changed("files", 7.into()),
            "its counts don't add up: 7 files, and 200 files of `sizes`",
        ),
        (
            "sizes.json",
            changed("sizes", json!([])),
            "its counts don't add up: 0 files of `sizes`, and 200 files of",
        ),
    ];
    for (name, text, _) in &files {
        fs::write(home.path().join(name), text).expect("space");
    }
    let of_files = files
        .iter()
        .map(|(name, _, why)| (format!("like = \"{name}\""), format!("like = \"{name}\": {why}")));
    let of_keys = [
        ("like = \"gone.json\"", "can't read the census"),
        (
            "like = \"census.json\"\nsize = \"1 GB\"",
            "`like` (line 10) replaces `size` (line 11): leave one of them out",
        ),
        ("files = 3", "`directories` is missing: write it, or like = \"census.json\""),
        ("like = 3", "the path of a census"),
        ("like = \"../census.json\"", "can't read the census"),
    ];
    let of_keys = of_keys.map(|(keys, why)| (keys.to_owned(), why.to_owned()));
    for (keys, why) in of_files.chain(of_keys) {
        let target = home.target.to_str().expect("plain letters");
        let ended = run(&["evaluate", target, "--plan", &written(home.path(), &keys)]);
        assert!(ended.code == Some(2) && ended.stderr.contains(&why), "{why}: {ended:?}");
        assert!(ended.stdout.is_empty() && ended.stderr.contains("plan.toml"), "{ended:?}");
        assert_eq!(fs::read_dir(&home.target).expect("a directory").count(), 0);
    }
}
