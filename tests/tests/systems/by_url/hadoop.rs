//! The file system of Hadoop: files grow at their ends and are changed nowhere else; data nodes are led to, and may be lost. Its
//! servers are of the extended set of `testbed/`, so these tests are of `make test-long`.

use std::{collections::BTreeSet, fs, path::Path};

use nilometer_model::{Capability, FileSystemKind};
use nilometer_tests::{Testbed, await_some, root};
use serde_json::Value;

use crate::by_url::{
    LASTING, MeasuredByUrl, Server, again_inside, begun, cleaned_behind, kill_maker, measured,
    pass_the_suites, program, recorded,
};

const SYSTEM: &str = "hdfs";

fn testbed() -> Option<Testbed> {
    Testbed::of_extended_client(SYSTEM, SYSTEM)
}

#[test]
fn hdfs_does_what_engines_and_targets_must_do() {
    if let Some(server) = Server::here() {
        return pass_the_suites(&server);
    }
    let Some(testbed) = testbed() else { return };
    again_inside(&testbed, "hadoop::hdfs_does_what_engines_and_targets_must_do", &testbed.url(SYSTEM));
}

const PLAN: &str = "title = \"files of Hadoop\"\nrepeats = 1\nreserve = \"0 B\"\n\
                    [[stage]]\nname = \"files\"\nworkers = 2\nengine = \"pool\"\ndepth = 4\ntime_limit = \"2 s\"\n\
                    replicas = [1, 3]\nstripe_size = \"1 MiB\"\n[stage.workload.stream]\nfile_size = \"8 MiB\"\n\
                    block_size = \"1 MiB\"\naccess = \"buffered\"\n\
                    [[stage]]\nname = \"set\"\nworkers = 2\n[stage.workload.stream]\ntotal_files = 5\nfile_size = \"1 MiB\"\n\
                    block_size = \"256 KiB\"\naccess = \"buffered\"\n\
                    [[stage]]\nname = \"synced\"\n[stage.workload.stream]\nfile_size = \"1 MiB\"\n\
                    block_size = \"64 KiB\"\naccess = \"buffered\"\nsync = { every = 4 }\n\
                    [[stage]]\nname = \"random\"\n[stage.workload.random]\nfile_size = \"4 MiB\"\nblock_size = \"64 KiB\"\n\
                    access = \"buffered\"\noperations = 20\n\
                    [[stage]]\nname = \"names\"\n[stage.workload.tree]\nlevels = 1\nbranching = 2\nitems = 5\n\
                    [[stage]]\nname = \"overwritten\"\n[stage.workload.random]\nfile_size = \"1 MiB\"\n\
                    block_size = \"64 KiB\"\naccess = \"buffered\"\noperations = 10\nmode = \"write\"\n";

#[test]
fn hdfs_is_measured_with_its_layouts() {
    let Some(testbed) = testbed() else { return };
    let url = testbed.url(SYSTEM);
    let MeasuredByUrl { ended, stages, .. } = measured(&testbed, &url, PLAN, FileSystemKind::Hdfs);
    let expected = ["files", "names", "random", "set", "synced"];
    assert_eq!(stages, expected, "{ended:?}");
    assert!(
        ended.stdout.contains(Capability::WriteAnywhere.name()),
        "what is not supported is said: {ended:?}"
    );
    assert!(!ended.stdout.contains(" requested, "), "the layout is as requested: {ended:?}");
    let described = program(&testbed, &["describe", &url]);
    for part in ["HDFS 3.", "3 live, 0 dead", "2 copies", "64 MiB"] {
        assert!(described.code == Some(0) && described.stdout.contains(part), "{part}: {described:?}");
    }
}

/// A layout that the name node refuses is one message in the record, and nothing of that cell is measured.
#[test]
fn a_layout_that_is_refused_is_told() {
    let Some(testbed) = testbed() else { return };
    let place = tempfile::tempdir().expect("a temporary directory");
    let [plan, record] = ["plan.toml", "record.sqlite"]
        .map(|name| place.path().join(name).to_str().expect("plain letters").to_owned());
    let text = "title = \"too many\"\nrepeats = 1\nreserve = \"0 B\"\n[[stage]]\nname = \"files\"\nreplicas = 600\n\
                [stage.workload.stream]\nfile_size = \"1 MiB\"\nblock_size = \"1 MiB\"\naccess = \"buffered\"\n";
    fs::write(&plan, text).expect("room");
    let ended = program(&testbed, &["evaluate", &testbed.url(SYSTEM), "--plan", &plan, "--record", &record]);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(said.contains("dfs.namenode.replication.max"), "{ended:?}");
    let results = nilometer_record::read(Path::new(&record)).expect("a record");
    let there =
        |sample: &&nilometer_plan::Measured| results.targets[sample.key.target].path.starts_with("hdfs:");
    assert!(results.samples.iter().filter(there).all(|measured| measured.sample.invalid.is_some()));
}

/// A command of Hadoop's own.
fn administer(testbed: &Testbed, arguments: &[&str]) {
    let classes =
        format!("{}/hdfs/etc/name:{}/target/hdfs/lib/*", testbed.folder().display(), root().display());
    let command = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", &classes];
    testbed.must("enter", &[&command[..], &["org.apache.hadoop.hdfs.tools.DFSAdmin"], arguments].concat());
}

/// One message, exit code 2, and nothing on the server.
#[test]
fn what_a_name_node_refuses_is_told() {
    let Some(testbed) = testbed() else { return };
    let url = testbed.url(SYSTEM);
    let somebody = url.replace("hdfs://", "hdfs://somebody@");
    for (arguments, part) in [
        (&["evaluate", &url.replace(":9870", ":1999")][..], "does the name node run"),
        (&["evaluate", &url.replace(":9870", ":8020")], "the port of Hadoop's own protocol"),
        (&["evaluate", &url.replace(":9870", ":x")], "no number as its port"),
        (&["evaluate", &format!("{url}/none")], "there is no such directory"),
        (&["evaluate", &format!("{url}?replication=1")], "set copies and the size of blocks in a plan"),
        (&["evaluate", &somebody], "somebody"),
        (&["describe", "--expect", "nfs", &url], "not on the expected nfs"),
        (&["evaluate", &url, "--for", "dune-readout-unit", "--plan", "none"], "writing at any offset"),
    ] {
        let ended = program(&testbed, arguments);
        let lines = ended.stderr.lines().filter(|line| line.contains(part)).count();
        assert!(ended.code == Some(2) && lines == 1, "{part}: {arguments:?}: {ended:?}");
    }
    administer(&testbed, &["-safemode", "enter"]);
    let ended = program(&testbed, &["evaluate", &url]);
    assert!(ended.code == Some(2) && ended.stderr.to_lowercase().contains("safe mode"), "{ended:?}");
    let described = program(&testbed, &["describe", &url]);
    let words: Vec<&str> = described.stdout.split_whitespace().collect();
    assert!(
        described.code == Some(0) && words.windows(2).any(|pair| pair == ["writable", "no"]),
        "{described:?}"
    );
    administer(&testbed, &["-safemode", "leave"]);
    assert_eq!(runs_there(&testbed), [""; 0]);
}

/// What another client gets of a path below the one that is measured.
fn got(testbed: &Testbed, path: &str, operation: &str) -> String {
    got_if_there(testbed, path, operation).expect("it is there")
}

/// The same, where it may be gone meanwhile: a directory that is only tried out is removed soon.
fn got_if_there(testbed: &Testbed, path: &str, operation: &str) -> Option<String> {
    let page = testbed.url(SYSTEM).replace("hdfs://", "http://").replace(":9870/", ":9870/webhdfs/v1/");
    let url = format!("{page}{path}?op={operation}&user.name=root");
    let curl = ["curl", "--fail", "--silent", "--location", "--max-time", "10", &url];
    let ended = testbed.verb("enter", &curl);
    (ended.code == Some(0)).then_some(ended.stdout)
}

/// Run directories there.
fn runs_there(testbed: &Testbed) -> Vec<String> {
    let listed: Value = serde_json::from_str(&got(testbed, "", "LISTSTATUS")).expect("a listing");
    let statuses = listed["FileStatuses"]["FileStatus"].as_array().expect("a listing").iter();
    let names = statuses.map(|status| status["pathSuffix"].as_str().expect("a name").to_owned());
    names.filter(|name| name.starts_with("nilometer-")).collect()
}

/// Once the file is there with bytes in it, the program is killed; then what it left is removed, and nothing else.
#[test]
fn what_a_killed_campaign_left_on_hdfs_is_removed() {
    let Some(testbed) = testbed() else { return };
    let url = testbed.url(SYSTEM);
    let place = tempfile::tempdir().expect("a temporary directory");
    let running = begun(&testbed, &url, LASTING, place.path());
    let run = await_some("a file of a run", || {
        let run = runs_there(&testbed).pop()?;
        got_if_there(&testbed, &format!("/{run}"), "LISTSTATUS")?.contains("n_w0").then_some(run)
    });
    let marker = got(&testbed, &format!("/{run}/{}", nilometer_tests::MARKER), "OPEN");
    let held = program(&testbed, &["clean", &url]);
    assert!(held.code == Some(1) && held.stderr.contains("in use"), "{held:?}");
    kill_maker(&marker);
    cleaned_behind(&testbed, &url, running);
    assert_eq!(runs_there(&testbed), [""; 0]);
}

/// The servers that hold the data are killed while a file is written: the fault is data, and the campaign ends by itself.
#[test]
fn hdfs_without_its_data_nodes_is_a_fault() {
    let Some(testbed) = testbed() else { return };
    let place = tempfile::tempdir().expect("a temporary directory");
    let running = begun(&testbed, &testbed.url(SYSTEM), LASTING, place.path());
    await_some("a file of a run", || {
        let run = runs_there(&testbed).pop()?;
        got_if_there(&testbed, &format!("/{run}"), "LISTSTATUS")?.contains("n_w0").then_some(())
    });
    for server in ["data-1", "data-2", "data-3"] {
        testbed.must("harm", &[SYSTEM, "kill-server", server]);
    }
    let output = running.wait_with_output().expect("it ends");
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}");
    let results = nilometer_record::read(&place.path().join("record.sqlite")).expect("a record");
    let errors: BTreeSet<_> =
        results.samples.iter().flat_map(|measured| measured.sample.errors.keys()).collect();
    assert!(!errors.is_empty(), "which is recorded by its number: {said}");
}

#[test]
fn hdfs_is_recorded_onto_and_read_back() {
    let Some(testbed) = testbed() else { return };
    let url = testbed.url(SYSTEM);
    recorded::simulated_recordings_come_back(&testbed, &url);
    recorded::what_is_written_in_places_is_refused(&testbed, &url);
    recorded::packets_are_evaluated(&testbed, &url);
}

#[test]
fn nothing_acknowledged_is_lost_on_hdfs() {
    let there = if Server::here().is_some() { None } else { testbed() };
    recorded::nothing_acknowledged_is_lost(there, SYSTEM, "hadoop::nothing_acknowledged_is_lost_on_hdfs");
}
