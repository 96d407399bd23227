//! Recordings of other programs, without a journal: files as their formats say, written by Python.

mod captures;
mod chunks;
mod mark6;
mod plain_files;
mod samples;

use std::{
    fs,
    io::Read,
    net::TcpListener,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use nilometer_tests::{Ended, Mounted, may_show, python, root, start};
use tempfile::TempDir;

/// What takes longer waits for something that never comes.
const LIMIT: Duration = Duration::from_mins(2);
/// Bytes of a VDIF frame that Python writes.
const FRAME: usize = 1032;

/// A directory for files of other programs.
struct Station(TempDir);

impl Station {
    fn new() -> Self {
        Station(tempfile::tempdir().expect("a temporary directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Creates empty directories.
    fn disks<const N: usize>(&self) -> [PathBuf; N] {
        std::array::from_fn(|disk| {
            let path = self.path(&format!("disk{disk}"));
            fs::create_dir(&path).expect("space");
            path
        })
    }

    /// Has Python write files, with these arguments.
    fn write(&self, arguments: &[&str]) {
        let script = root().join("tests/tests/recording/other_recorders/written.py");
        let mut python = python(&["struct"]).expect("Python is there, as the other tests need it");
        let output =
            python.arg(script).args(arguments).current_dir(self.0.path()).output().expect("it can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// A file of VDIF frames; its path and bytes.
    fn vdif(&self, frames: &str, more: &[&str]) -> (PathBuf, Vec<u8>) {
        self.write(&[&["vdif", "all.vdif", frames], more].concat());
        let path = self.path("all.vdif");
        let bytes = fs::read(&path).expect("it was written");
        (path, bytes)
    }
}

/// A command about these paths, which ends in time.
fn about<P: AsRef<Path>>(command: &str, paths: &[P], more: &[&str]) -> Ended {
    let mut arguments = vec![PathBuf::from(command)];
    arguments.extend(paths.iter().map(|path| path.as_ref().to_owned()));
    arguments.extend(more.iter().map(PathBuf::from));
    start(&std::env::temp_dir(), &arguments).end(LIMIT)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("plain names")
}

/// The only element that a command prints as JSON.
fn json(command: &str, paths: &[PathBuf], more: &[&str]) -> serde_json::Value {
    let ended = about(command, paths, &[&["--json"], more].concat());
    let mut list: Vec<serde_json::Value> =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
    assert_eq!(list.len(), 1, "{ended:?}");
    list.swap_remove(0)
}

/// Asserts that all five commands read a recording without gaps: it has these bytes.
fn assert_read_by_all(paths: &[PathBuf], name: &str, bytes: &[u8], station: &Station) {
    let scan = about("scan", paths, &["--all"]);
    assert_eq!(scan.code, Some(0), "{scan:?}");
    assert!(scan.stdout.contains("missing     gaps by numbering: none"), "{scan:?}");
    assert!(
        scan.stdout.contains("without a journal") && !scan.stdout.contains("missing     none"),
        "{scan:?}"
    );
    let verified = about("verify", paths, &[]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert!(
        verified.stdout.contains("all of it can be read") && verified.stdout.contains("not known "),
        "{verified:?}"
    );
    let copy = station.path("copy.of");
    let exported = about("export", paths, &["--to", text(&copy), "--verify"]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    assert!(fs::read(&copy).expect("it was written") == bytes, "{exported:?}");
    fs::remove_file(copy).expect("it is ours");
    let (replayed, sent) = over_tcp(paths, &[]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    assert!(sent == bytes, "{replayed:?}");
    if may_show() {
        let mounted = Mounted::of(paths);
        assert!(fs::read(mounted.file(name)).expect("it is shown") == bytes);
    }
}

/// Sends a recording over TCP. Returns the bytes that arrived.
fn over_tcp(paths: &[PathBuf], more: &[&str]) -> (Ended, Vec<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = format!("tcp://{}", listener.local_addr().expect("it is bound"));
    let taking = thread::spawn(move || {
        let mut all = Vec::new();
        listener.accept().and_then(|(mut stream, _)| stream.read_to_end(&mut all)).map(|_| all)
    });
    let ended = about("replay", paths, &[&["--to", &to, "--rate", "50 MB/s"], more].concat());
    (ended, taking.join().expect("it does not panic").expect("it is sent"))
}
