//! `testbed/`: real storage systems are started, say what they are, keep what is written to them, are broken on purpose, and
//! leave nothing behind, whatever became of the start.

use std::{
    fs::{self, File},
    io::{Read, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use nilometer_tests::{Testbed, await_some, python, root, tool};
use rustix::fs::Advice;
use serde_json::Value;

const FILE_BYTES: u64 = 8 << 20;

/// Bytes that no system finds a hole or a pattern in: `MooseFS` does not write zeros.
pub(crate) fn random_bytes() -> Vec<u8> {
    let mut bytes = Vec::new();
    let random = File::open("/dev/urandom").expect("a source of random bytes");
    random.take(FILE_BYTES).read_to_end(&mut bytes).expect("random bytes");
    bytes
}

/// Writes a file durably, and lets the page cache forget it.
fn write(path: &Path, bytes: &[u8]) {
    let mut file = File::create(path).expect("a file");
    file.write_all(bytes).expect("room");
    file.sync_all().expect("durable");
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).expect("advice");
}

/// Writes a file with random bytes and reads it again.
fn keeps_a_file(directory: &Path) {
    let (path, bytes) = (directory.join("file"), random_bytes());
    write(&path, &bytes);
    assert!(fs::read(&path).expect("the file") == bytes, "{} has other bytes", path.display());
}

/// A mount as `status` says it: name, type and source.
fn mount<'a>(system: &'a Value, name: &str) -> [&'a str; 2] {
    let mounts = system["mounts"].as_array().expect("a list");
    let mount = mounts.iter().find(|mount| mount["name"] == name).expect("a mount of this name");
    assert!(mount["free_bytes"].as_u64().expect("a number") > FILE_BYTES, "{mount}");
    ["type", "source"].map(|key| mount[key].as_str().expect("text"))
}

#[test]
fn local_file_systems_and_xrootd_keep_a_file() {
    let systems = ["ext4", "xfs", "btrfs-raid0", "xrootd"];
    let Some(testbed) = Testbed::of(&systems) else { return };
    for name in systems {
        let system = testbed.system(name);
        assert_eq!(system["state"], "up", "{system}");
        assert!(!system["version"].as_str().expect("text").is_empty());
        for mount in testbed.mounts(name) {
            keeps_a_file(&mount);
        }
    }
    assert_eq!(mount(&testbed.system("ext4"), "ext4")[0], "ext4");
    assert_eq!(mount(&testbed.system("xfs"), "xfs")[0], "xfs");
    assert_eq!(mount(&testbed.system("btrfs-raid0"), "btrfs-raid0")[0], "btrfs");
    assert_eq!(mount(&testbed.system("xrootd"), "xrootd"), ["fuse", "xrootdfs"]);
    assert_eq!(testbed.system("gluster")["state"], "down");

    let said = testbed.must("up", &["ext4"]);
    let suggested = said.lines().last().expect("a line");
    assert!(suggested.contains("nilometer evaluate "), "{said}");
    assert!(suggested.contains(testbed.mounts("xfs")[0].to_str().expect("plain letters")), "{said}");
}

#[test]
fn gluster_keeps_files_when_a_brick_is_lost() {
    let Some(testbed) = Testbed::of(&["gluster"]) else { return };
    let system = testbed.system("gluster");
    let [kind, source] = mount(&system, "gluster-replicated");
    assert_eq!(kind, "fuse.glusterfs");
    assert!(source.starts_with("10.77.") && source.ends_with(":/replicated"), "{source}");
    let mounts = testbed.mounts("gluster");
    assert_eq!(mounts.len(), 4);
    for mount in &mounts {
        keeps_a_file(mount);
    }

    let replicated = mounts.iter().find(|mount| mount.ends_with("replicated")).expect("a volume");
    survives(&testbed, "gluster", "replicated-1", &FileBefore::of(replicated));
    let dispersed = mounts.iter().find(|mount| mount.ends_with("dispersed")).expect("a volume");
    survives(&testbed, "gluster", "dispersed-3", &FileBefore::of(dispersed));
}

/// A file that was written before something is lost.
struct FileBefore {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl FileBefore {
    fn of(directory: &Path) -> Self {
        let before = FileBefore { path: directory.join("before"), bytes: random_bytes() };
        write(&before.path, &before.bytes);
        before
    }
}

/// What is there is read, and more is written, while a server is lost; then the server is started again.
fn survives(testbed: &Testbed, system: &str, server: &str, before: &FileBefore) {
    testbed.must("harm", &[system, "kill-server", server]);
    // A mount that stands still for a moment is broken too, before its server is known to be dead.
    let expected = serde_json::json!([format!("the process of {server} is dead")]);
    await_some("the server's death in the status", || {
        let broken = testbed.system(system);
        (broken["state"] == "broken" && broken["complaints"] == expected).then_some(())
    });
    let read = fs::read(&before.path).expect("the file");
    assert!(read == before.bytes, "{system} without {server} has other bytes");
    keeps_a_file(before.path.parent().expect("a directory"));
    testbed.must("harm", &[system, "restart-server", server]);
    becomes_whole(testbed, system);
}

/// The server is there at once. A mount may stand still until its client has found it again, on a busy machine for
/// longer than `status` waits for it; a server that ended again never becomes one that runs.
fn becomes_whole(testbed: &Testbed, system: &str) {
    let mut now = testbed.system(system);
    for _ in 0..120 {
        if now["state"] == "up" {
            return;
        }
        std::thread::sleep(Duration::from_secs(1));
        now = testbed.system(system);
    }
    panic!("{system} is not whole again after its server was started: {now}");
}

#[test]
fn moosefs_keeps_files_when_a_chunk_server_is_lost() {
    let Some(testbed) = Testbed::of(&["moosefs"]) else { return };
    let system = testbed.system("moosefs");
    let [kind, source] = mount(&system, "moosefs-goal-2");
    assert_eq!(kind, "fuse");
    assert!(source.starts_with("mfs\\04310.77.") || source.starts_with("mfs#10.77."), "{source}");
    let mounts = testbed.mounts("moosefs");
    for mount in &mounts {
        keeps_a_file(mount);
    }

    let twice = mounts.iter().find(|mount| mount.ends_with("goal-2")).expect("a directory");
    let before = FileBefore::of(twice);
    let server = holder_of(&testbed, &before.path);
    survives(&testbed, "moosefs", &server, &before);
}

/// A chunk server that has a copy of a file. They listen on 9422 and the ports that follow.
fn holder_of(testbed: &Testbed, file: &Path) -> String {
    let said = testbed.must("enter", &["mfsfileinfo", file.to_str().expect("plain letters")]);
    let copy = said.lines().find(|line| line.contains("copy 1:")).expect("a copy");
    let port = copy.split(['(', ' ']).find_map(|word| word.rsplit_once(":942")).expect("a port").1;
    let number = port.parse::<u32>().expect("a digit") - 1;
    format!("chunkserver-{number}")
}

#[test]
fn nfs_keeps_a_file_that_libnfs_copies() {
    let Some(testbed) = Testbed::of(&["nfs"]) else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (sent, back) = (directory.path().join("sent"), directory.path().join("back"));
    fs::write(&sent, random_bytes()).expect("room");
    let url = testbed.url("nfs").replacen("/export?", "/export/file?", 1);
    let text = |path: &PathBuf| path.to_str().expect("plain letters").to_owned();
    testbed.must("enter", &["nfs-cp", &text(&sent), &url]);
    testbed.must("harm", &["nfs", "kill-server", "1"]);
    testbed.must("harm", &["nfs", "restart-server", "1"]);
    testbed.must("enter", &["nfs-cp", &url, &text(&back)]);
    assert!(fs::read(&sent).expect("a file") == fs::read(&back).expect("a file"), "other bytes came back");
}

#[test]
fn s3_keeps_an_object() {
    let Some(testbed) = Testbed::of(&["s3"]) else { return };
    assert_eq!(testbed.url("s3"), "s3://nilometer");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (sent, back) = (directory.path().join("sent"), directory.path().join("back"));
    fs::write(&sent, random_bytes()).expect("room");
    assert!(s3(&testbed, &["--upload-file", sent.to_str().expect("plain letters")]), "it is not taken");
    testbed.must("harm", &["s3", "kill-server", "volumes-2"]);
    testbed.must("harm", &["s3", "restart-server", "volumes-2"]);
    await_some("the object after the restart", || {
        s3(&testbed, &["--output", back.to_str().expect("plain letters")]).then_some(())
    });
    assert!(fs::read(&sent).expect("a file") == fs::read(&back).expect("a file"), "other bytes came back");
    let stranger = testbed.verb("enter", &["curl", "--fail", "--silent", &object(&testbed)]);
    assert_eq!(stranger.code, Some(22), "who has no key is refused: {}", stranger.stdout);
}

fn object(testbed: &Testbed) -> String {
    format!("{}/nilometer/object", credential(testbed, "AWS_ENDPOINT_URL"))
}

/// One of the variables that clients of S3 know.
fn credential(testbed: &Testbed, name: &str) -> String {
    let text = fs::read_to_string(testbed.folder().join("s3/environment")).expect("credentials");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.expect("a variable").to_owned()
}

/// A request for the object, signed by the credentials: whether it went well.
fn s3(testbed: &Testbed, arguments: &[&str]) -> bool {
    let user = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| credential(testbed, name)).join(":");
    let object = object(testbed);
    let mut all =
        vec!["curl", "--fail", "--silent", "--max-time", "60", "--aws-sigv4", "aws:amz:us-east-1:s3"];
    all.extend(["--user", &user, "--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]);
    all.extend(["--header", "content-type: application/octet-stream", &object]);
    all.extend(arguments);
    testbed.verb("enter", &all).code == Some(0)
}

#[test]
fn cephfs_keeps_files_when_an_osd_is_lost() {
    let Some(testbed) = Testbed::of_extended(&["cephfs"]) else { return };
    let system = testbed.system("cephfs");
    assert_eq!(mount(&system, "cephfs-striped"), ["fuse.ceph-fuse", "ceph-fuse"]);
    let mounts = testbed.mounts("cephfs");
    for mount in &mounts {
        keeps_a_file(mount);
    }
    survives(&testbed, "cephfs", "osd-1", &FileBefore::of(&mounts[0]));
}

#[test]
fn hdfs_keeps_a_file_when_a_data_node_is_lost() {
    let Some(testbed) = Testbed::of_extended(&["hdfs"]) else { return };
    let urls = testbed.system("hdfs")["urls"].clone();
    let url = urls[2]["url"].as_str().expect("a URL of WebHDFS");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (sent, back) = (directory.path().join("sent"), directory.path().join("back"));
    fs::write(&sent, random_bytes()).expect("room");
    let curl = |arguments: &[&str]| {
        testbed.must("enter", &[&["curl", "--fail", "--silent", "--location"], arguments].concat())
    };
    let create = format!("{url}/file?op=CREATE&user.name=root");
    curl(&["--upload-file", sent.to_str().expect("plain letters"), &create]);
    testbed.must("harm", &["hdfs", "kill-server", "data-1"]);
    let open = format!("{url}/file?op=OPEN&user.name=root");
    await_some("a copy that is left", || {
        let arguments = ["curl", "--fail", "--silent", "--location", "--output", back.to_str()?, &open];
        (testbed.verb("enter", &arguments).code == Some(0)).then_some(())
    });
    assert!(fs::read(&sent).expect("a file") == fs::read(&back).expect("a file"), "other bytes came back");
    testbed.must("harm", &["hdfs", "restart-server", "data-1"]);
    assert_eq!(testbed.system("hdfs")["state"], "up");
}

#[test]
fn a_mount_that_is_gone_or_dead_is_said_to_be() {
    let Some(testbed) = Testbed::of(&["xrootd", "ext4"]) else { return };
    testbed.must("harm", &["xrootd", "kill-client"]);
    testbed.must("harm", &["ext4", "unmount"]);
    let ended = testbed.verb("status", &[]);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    let point = testbed.folder().join("xrootd/mount");
    for complaint in [
        "BROKEN: the process of client-mount is dead".to_owned(),
        format!("BROKEN: {} does not answer", point.display()),
        format!("BROKEN: ext4 is not mounted at {}", testbed.folder().join("ext4/mount").display()),
    ] {
        assert!(ended.stdout.contains(&complaint), "{complaint}: {}", ended.stdout);
    }
    let ext4 = testbed.system("ext4");
    assert_eq!(
        ext4["mounts"][0]["free_bytes"],
        Value::Null,
        "the free room of what lies below is not its own"
    );
    assert_eq!(testbed.verb("up", &["ext4"]).code, Some(2));
    testbed.must("down", &["ext4"]);
    testbed.must("up", &["ext4"]);
    assert_eq!(testbed.system("ext4")["state"], "up");
}

#[test]
fn down_leaves_nothing_of_an_up_that_was_killed() {
    let Some(testbed) = Testbed::empty() else { return };
    let namespace = testbed.status()["namespace"].as_str().expect("a name").to_owned();
    for (systems, begun) in [
        (["btrfs-raid0", "gluster"].as_slice(), "btrfs-raid0/data/image-2"),
        (&["ext4", "gluster"], "gluster/run/glusterd.pid"),
        (&["gluster"], "gluster/run/client-distributed.pid"),
        (&["moosefs", "gluster"], "moosefs/run/chunkserver-2.pid"),
        (&["nfs", "gluster"], "nfs/run/server.pid"),
    ] {
        let Some(mut up) = testbed.start_up_to(systems, begun) else { return };
        up.kill().expect("it is ours");
        up.wait().expect("it is ours");
        assert!(!testbed.left(&namespace).is_empty(), "it was killed in the middle of {systems:?}");
        testbed.must("down", &[]);
        assert_eq!(testbed.left(&namespace), [""; 0], "after {begun}");
        testbed.must("down", &[]);
    }
}

#[test]
fn down_leaves_nothing_of_servers_that_were_killed() {
    let Some(testbed) = Testbed::of(&["gluster", "moosefs", "xrootd"]) else { return };
    let namespace = testbed.status()["namespace"].as_str().expect("a name").to_owned();
    for [system, server] in [["gluster", "1"], ["gluster", "4"], ["moosefs", "3"], ["xrootd", "1"]] {
        testbed.must("harm", &[system, "kill-server", server]);
    }
    // Who works in a mount does not keep it.
    let mut user = Command::new("sleep");
    user.arg("60").current_dir(&testbed.mounts("moosefs")[0]);
    let mut user = user.spawn().expect("it starts");
    testbed.must("down", &[]);
    user.kill().expect("it is ours");
    user.wait().expect("it is ours");
    assert_eq!(testbed.left(&namespace), [""; 0]);
}

#[test]
fn a_start_that_fails_takes_down_what_it_started() {
    let Some(testbed) = Testbed::of(&["ext4"]) else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join("mkfs.xfs");
    fs::write(&program, "#!/bin/sh\necho this disk is not one >&2\nexit 1\n").expect("room");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
    let path = std::env::var("PATH").expect("a path");
    let mut up = testbed.command("up", &["xfs"]);
    up.env("PATH", format!("{}:{path}", directory.path().display()));
    let output = up.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for words in ["this disk is not one", "failed: mkfs.xfs", "has been taken down again"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!testbed.folder().join("xfs").exists());
    assert_eq!(testbed.system("xfs")["state"], "down");
    assert_eq!(testbed.system("ext4")["state"], "up", "what was there stays");
}

#[test]
fn testbeds_in_two_folders_do_not_meet() {
    let Some(first) = Testbed::of(&["moosefs"]) else { return };
    let Some(second) = Testbed::of(&["moosefs"]) else { return };
    assert_ne!(first.status()["namespace"], second.status()["namespace"]);
    assert_ne!(first.status()["address"], second.status()["address"]);
    keeps_a_file(&first.mounts("moosefs")[0]);
    first.must("down", &[]);
    keeps_a_file(&second.mounts("moosefs")[0]);
    assert_eq!(second.system("moosefs")["state"], "up");
}

/// What is asked wrongly ends with 2, one message, and nothing started.
fn refused(testbed: &Testbed, verb: &str, arguments: &[&str], words: &str) {
    let ended = testbed.verb(verb, arguments);
    assert_eq!(ended.code, Some(2), "{verb} {arguments:?}: {}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let Some(testbed) = Testbed::empty() else { return };
    refused(&testbed, "up", &[], "which systems? testbed/up SYSTEM...: ext4 xfs");
    refused(&testbed, "up", &["ext4", "lustre"], "unknown system 'lustre': valid are ext4 xfs");
    refused(&testbed, "up", &["../up"], "unknown system '../up'");
    refused(&testbed, "down", &["lustre"], "unknown system 'lustre'");
    refused(&testbed, "status", &["--xml"], "valid are --json");
    refused(&testbed, "harm", &["ext4", "unmount"], "ext4 is down: testbed/up ext4");
    refused(&testbed, "enter", &["true"], "no testbed in");
    assert!(!testbed.folder().exists());
    assert_eq!(testbed.must("down", &[]), format!("no testbed in {}\n", testbed.folder().display()));

    fs::create_dir(testbed.folder()).expect("room");
    fs::write(testbed.folder().join("thesis.tex"), "precious").expect("room");
    refused(&testbed, "up", &["ext4"], "has files in it that are not a testbed's");
    refused(&testbed, "down", &[], "has files in it that are not a testbed's");
    assert!(testbed.folder().join("thesis.tex").exists());
    fs::remove_dir_all(testbed.folder()).expect("ours");
}

#[test]
fn what_is_in_the_way_of_a_start_is_named() {
    let Some(testbed) = Testbed::of(&["ext4"]) else { return };
    refused(&testbed, "harm", &["ext4", "break"], "testbed/harm SYSTEM kill-server N");
    refused(&testbed, "harm", &["ext4", "kill-server", "1"], "ext4 has no server '1'");
    let mut up = Command::new("unshare");
    up.args(["--mount", "sh", "-c", "mount --bind /dev/null \"$(command -v mfscli)\"; exec \"$0\" moosefs"]);
    up.arg(root().join("testbed/up")).env("NILOMETER_TESTBED", testbed.folder());
    let output = up.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("mfscli (package moosefs-cli)"), "{said}");
    assert!(said.contains("scripts/bootstrap testbed"), "{said}");

    let Some(interpreter) = python(&["http.server"]) else { return };
    let program = interpreter.get_program().to_str().expect("plain letters").to_owned();
    let mut server = testbed.command("enter", &[&program, "-m", "http.server", "1094"]);
    let mut server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    await_some("a server on port 1094", || {
        testbed.must("enter", &["ss", "-ltn"]).contains(":1094 ").then_some(())
    });
    let ended = testbed.verb("up", &["xrootd"]);
    server.kill().expect("it is ours");
    server.wait().expect("it is ours");
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("port 1094 is in use in the network namespace"), "{}", ended.stderr);
}

#[test]
fn only_root_may() {
    let Some(testbed) = Testbed::empty() else { return };
    // Where others may read it, wherever the sources are.
    let copied = tempfile::tempdir().expect("a temporary directory");
    fs::set_permissions(copied.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let mut copy = Command::new("cp");
    copy.arg("--recursive").arg(root().join("testbed")).arg(copied.path());
    assert!(copy.status().expect("it starts").success());
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--clear-groups"]).arg(copied.path().join("testbed/up")).arg("ext4");
    let output = command.env("NILOMETER_TESTBED", testbed.folder()).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("needs root"), "{said}");
}

/// The scripts of the testbed, the one that installs what they need, and those that check, build and run tests.
fn scripts() -> Vec<PathBuf> {
    let ours = [
        "scripts/book",
        "scripts/bootstrap",
        "scripts/check",
        "scripts/run-tests",
        "scripts/steps",
        "scripts/test",
        ".ci/run",
        "contrib/weekly/nilometer-weekly",
    ];
    let mut scripts: Vec<_> = ours.iter().map(|name| root().join(name)).collect();
    for folder in ["testbed", "testbed/systems", "testbed/uml"] {
        let entries = fs::read_dir(root().join(folder)).expect("a directory");
        scripts.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    scripts.retain(|path| path.is_file() && path.extension().is_none_or(|extension| extension == "sh"));
    scripts.sort();
    scripts
}

#[test]
fn scripts_are_short_and_shellcheck_has_no_complaint() {
    for script in scripts() {
        let lines = fs::read_to_string(&script).expect("text").lines().count();
        assert!(lines <= 500, "{} has {lines} lines", script.display());
    }
    let Some(mut shellcheck) = tool("shellcheck") else { return };
    let output =
        shellcheck.arg("--external-sources").args(scripts()).current_dir(root()).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
