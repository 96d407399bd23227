//! The package of Python in `python/`: its own tests run against this program. They record real series, and use the
//! real Bluesky, Tiled, EPICS and Tango.

use std::time::Duration;

use nilometer_tests::{Running, nilometer, python, root};

/// Modules that no other environment has together.
const MODULES: [&str; 4] = ["pytest", "xdist", "flit_core", "softioc"];
/// Most tests wait for a process, so more of them run at once than there are processors.
const AT_ONCE: &str = "4";
const LIMIT: Duration = Duration::from_mins(10);

#[test]
fn the_client_of_python_passes_its_own_tests() {
    let Some(mut python) = python(&MODULES) else { return };
    let work = tempfile::tempdir().expect("a temporary directory");
    let options = ["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--numprocesses", AT_ONCE];
    python.args(options).arg("--basetemp").arg(work.path().join("tests"));
    python.current_dir(root().join("python"));
    // Notebooks and programs that the tests start find the package too.
    python.env("PYTHONPATH", root().join("python/src"));
    python.env("NILOMETER_PROGRAM", nilometer()).env("PYTHONDONTWRITEBYTECODE", "1");
    let ended = Running::of(python).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
}
