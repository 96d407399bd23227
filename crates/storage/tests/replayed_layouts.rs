//! Replays: layouts are set and read back through programs that have the names of the systems' tools and say what was recorded
//! of these (Lustre 2.17, `BeeGFS` 7.4.7), errors and exit codes included, or is documented of them (EOS, `XtreemFS`). None of
//! these systems runs here.
//!
//! The tools are found in PATH, which a process has one of: each test runs itself again with another.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use nilometer_model::{Bytes, StripeControl, StripeLayout};
use nilometer_storage::{
    Target,
    target::{Directory, KeptDirectory, Posix, probe},
};

/// `lfs` of a file system with four targets: a directory says what was asked for, a file what it has.
const LFS: &str = r#"#!/bin/sh
said="$(dirname "$0")/asked"
for last; do :; done
case "$1" in
setstripe) case "$*" in
    *"-S 1000 "*) echo "lfs setstripe setstripe: invalid stripe size '1000'" >&2; echo "Usage: setstripe" >&2; exit 4;;
    *"-p there"*) echo "lfs setstripe: setstripe error for '$last': stripe already set" >&2; exit 17;;
    *"-p other"*) echo "lfs setstripe: setstripe error for '$last': Inappropriate ioctl for device" >&2; exit 25;;
    *"-p slow"*) sleep 1000;;
    esac
    echo "$*" | sed 's/.*-c \([0-9]*\).*/\1/' > "$said";;
getstripe)
    count=$(cat "$said" 2>/dev/null || echo 1)
    if [ -d "$last" ]; then
        printf '\033[1mstripe_count:  %s stripe_size:   1048576 pattern:       raid0 stripe_offset: -1\033[0m\n' "$count"
    else
        [ "$count" -gt 4 ] && count=4
        printf '%s\nlmm_stripe_count:  %s\nlmm_stripe_size:   1048576\nlmm_pattern:       raid0\n' "$last" "$count"
    fi;;
esac
"#;

/// `beegfs-ctl` of a file system with four targets, with a licence before its answer.
const BEEGFS: &str = r#"#!/bin/sh
said="$(dirname "$0")/asked"
for last; do :; done
case "$1" in
--setpattern) case "$*" in
    *--chunksize=1000*) echo "Chunksize --chunksize out of bounds, must be between 65536 and 4294967295" >&2; exit 3;;
    esac
    echo "$*" | sed 's/.*--numtargets=\([0-9]*\).*/\1/' > "$said";;
--getentryinfo)
    count=$(cat "$said" 2>/dev/null || echo 4)
    printf '%080d\n' 0 | tr 0 -; echo '| BeeGFS Enterprise Feature |'; printf '%080d\n' 0 | tr 0 -
    echo "+ Type: RAID0"; echo "+ Chunksize: 1M"
    if [ -d "$last" ]; then echo "+ Number of storage targets: desired: $count"
    else actual=$count; [ "$actual" -gt 4 ] && actual=4
        echo "+ Number of storage targets: desired: $count; actual: $actual"; fi;;
esac
"#;

/// `eos` of an instance that keeps three copies at the most: attributes of a directory say what is forced, a file what it has.
const EOS: &str = r#"#!/bin/sh
said="$(dirname "$0")/asked"
case "$1 $2" in
"attr set") case "$3" in
    sys.forced.space=none) echo "error: no such space (errno=2)" >&2; exit 2;;
    esac
    echo "$3" | sed 's/=\(.*\)/="\1"/' >> "$said";;
"attr ls") cat "$said" 2>/dev/null || true;;
"file info")
    value() { sed -n "s/^sys.forced.$1=\"\(.*\)\"/\1/p" "$said" | tail -n 1; }
    touch "$said"; layout=$(value layout); count=$(value nstripes); size=$(value blocksize)
    [ "$layout" = replica ] && [ "$count" -gt 3 ] && count=3
    echo "  File: '$3'  Flags: 0644"
    echo "Layout: ${layout:-plain} Stripes: ${count:-1} Blocksize: ${size:-4k} LayoutId: 00100112 Redundancy: d2::t0";;
esac
"#;

/// `xtfsutil` of a volume with four servers.
const XTFSUTIL: &str = r#"#!/bin/sh
said="$(dirname "$0")/asked"
for last; do :; done
case "$1" in
--set-dsp) echo "$3 $5" > "$said"; echo "Updated default striping policy to: STRIPING_POLICY_RAID0 / $3 / $5kB";;
--set-drp) echo "Updated default replication policy";;
*) set -- $(cat "$said" 2>/dev/null || echo 1 128)
    if [ -d "$last" ]; then
        printf 'Type                 directory\nDefault Striping p.  STRIPING_POLICY_RAID0 / %s / %skB\n' "$1" "$2"
        echo "Default Repl. p.     not set"
    else
        width=$1; [ "$width" -gt 4 ] && width=4
        printf 'Type                 file\nReplication policy   none (not replicated)\nReplicas:\n  Replica 1\n'
        printf '     Striping policy     STRIPING_POLICY_RAID0 / %s / %skB\n' "$width" "$2"
    fi;;
esac
"#;

/// In a process with its own PATH, the test is done there.
const APART: &str = "NILOMETER_REPLAY_APART";

/// Does a test of this file, of this name, in a process of its own: with a tool before all others in PATH, or with no tool at all.
fn replayed(tool: Option<(&str, &str)>, test: &str, work: fn()) {
    if std::env::var_os(APART).is_some() {
        return work();
    }
    let tools = tempfile::tempdir().expect("a temporary directory");
    let before = std::env::var("PATH").expect("a path");
    if let Some((name, script)) = tool {
        let path = tools.path().join(name);
        fs::write(&path, script).expect("space");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", test, "--nocapture"]).env(APART, "1");
    let beyond = if tool.is_some() { before.as_str() } else { "/nowhere" };
    command.env("PATH", format!("{}:{beyond}", tools.path().display()));
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
}

fn target(path: &Path, control: StripeControl) -> Posix {
    let mut description = probe(path).expect("a directory");
    description.striping = Some(control);
    Posix::create(description, 7).expect("space")
}

fn layout(stripe_count: u32, stripe_size: u64) -> StripeLayout {
    StripeLayout {
        stripe_count: Some(stripe_count),
        stripe_size: Some(Bytes(stripe_size)),
        ..StripeLayout::default()
    }
}

#[test]
fn replay_of_lustre() {
    replayed(Some(("lfs", LFS)), "replay_of_lustre", on_lustre);
}

fn on_lustre() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let target = target(place.path(), StripeControl::Lustre);
    let asked = layout(8, 1 << 20);
    let given = target.lay_out(&asked).expect("it is set").expect("it can be chosen");
    assert_eq!(given, layout(4, 1 << 20), "of four targets");
    assert_eq!(asked.not_given(&given), ["stripe count 8 requested, 4 given"]);
    assert_eq!(layout(4, 1 << 20).not_given(&given), Vec::<String>::new());
    let errors = [
        (layout(2, 1000), &["exit status: 4", "takes no such value", "invalid stripe size '1000'"][..]),
        (of_pool("there"), &["exit status: 17", "has a layout already"]),
        (of_pool("other"), &["exit status: 25", "not on Lustre"]),
        (of_pool("slow"), &["no answer within 5 s", "lfs setstripe -c 1"]),
    ];
    for (asked, parts) in errors {
        let error = target.lay_out(&asked).expect_err("it is refused").to_string();
        assert!(parts.iter().all(|part| error.contains(part)) && !error.contains("Usage"), "{error}");
    }
    let back = target.lay_out(&StripeLayout::default()).expect("it is set").expect("it can be chosen");
    assert_eq!(back.stripe_count, Some(1), "as before the first call");
    let left: Vec<_> =
        fs::read_dir(target.directory()).expect("ours").flatten().map(|of| of.file_name()).collect();
    assert!(left.iter().all(|name| name != "n_layout"), "{left:?}");
}

#[test]
fn replay_of_a_recording_on_lustre() {
    replayed(Some(("lfs", LFS)), "replay_of_a_recording_on_lustre", recorded_on_lustre);
}

fn recorded_on_lustre() {
    recorded_in_stripes(StripeControl::Lustre);
}

#[test]
fn replay_of_a_recording_on_beegfs() {
    replayed(Some(("beegfs-ctl", BEEGFS)), "replay_of_a_recording_on_beegfs", recorded_on_beegfs);
}

fn recorded_on_beegfs() {
    recorded_in_stripes(StripeControl::BeeGfs);
}

/// The directory of a recording gets stripes before its first file, and no file is left of reading them back.
fn recorded_in_stripes(control: StripeControl) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut description = probe(place.path()).expect("a directory");
    description.striping = Some(control);
    let directory = Directory::create(description, "scan-1").expect("space");
    assert_eq!(directory.lay_out(&StripeLayout::default()).expect("nothing is asked"), None);
    let asked = layout(8, 1 << 20);
    let given = directory.lay_out(&asked).expect("it is set").expect("it can be chosen");
    assert_eq!((given.stripe_count, given.stripe_size), (Some(4), Some(Bytes(1 << 20))), "of four targets");
    assert_eq!(asked.not_given(&given), ["stripe count 8 requested, 4 given"]);
    let error = directory.lay_out(&layout(2, 1000)).expect_err("it is refused").to_string();
    assert!(error.contains("1000"), "{error}");
    assert_eq!(fs::read_dir(directory.path()).expect("ours").count(), 0, "nothing is left in it");
}

fn of_pool(name: &str) -> StripeLayout {
    StripeLayout { pool: Some(name.into()), ..layout(1, 1 << 20) }
}

#[test]
fn replay_of_beegfs() {
    replayed(Some(("beegfs-ctl", BEEGFS)), "replay_of_beegfs", on_beegfs);
}

fn on_beegfs() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let target = target(place.path(), StripeControl::BeeGfs);
    let given = target.lay_out(&layout(9, 1 << 20)).expect("it is set").expect("it can be chosen");
    assert_eq!(given, StripeLayout { replicas: Some(1), ..layout(4, 1 << 20) });
    let error = target.lay_out(&layout(4, 1000)).expect_err("it is refused").to_string();
    assert!(
        error.contains("out of bounds, must be between 65536") && error.contains("exit status: 3"),
        "{error}"
    );
}

#[test]
fn replay_of_eos() {
    replayed(Some(("eos", EOS)), "replay_of_eos", on_eos);
}

fn on_eos() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let target = target(place.path(), StripeControl::Eos);
    let asked =
        StripeLayout { replicas: Some(4), stripe_size: Some(Bytes(1 << 20)), ..StripeLayout::default() };
    let given = target.lay_out(&asked).expect("it is set").expect("it can be chosen");
    assert_eq!(given, StripeLayout { replicas: Some(3), ..asked.clone() }, "of three servers");
    assert_eq!(asked.not_given(&given), ["number of copies 4 requested, 3 given"]);
    let striped = layout(6, 4 << 20);
    assert_eq!(target.lay_out(&striped).expect("it is set"), Some(striped.clone()));
    let refused = StripeLayout { pool: Some("none".into()), ..striped };
    let error = target.lay_out(&refused).expect_err("there is no such space").to_string();
    assert!(error.contains("no such space") && error.contains("eos attr set"), "{error}");
}

#[test]
fn replay_of_xtreemfs() {
    replayed(Some(("xtfsutil", XTFSUTIL)), "replay_of_xtreemfs", on_xtreemfs);
}

fn on_xtreemfs() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let target = target(place.path(), StripeControl::XtreemFs);
    let given = target.lay_out(&layout(8, 256 << 10)).expect("it is set").expect("it can be chosen");
    assert_eq!(given, StripeLayout { replicas: Some(1), ..layout(4, 256 << 10) }, "of four servers");
    let odd = target.lay_out(&layout(2, 1000)).expect_err("no whole KiB").to_string();
    assert!(odd.contains("in KiB"), "{odd}");
    let back = target.lay_out(&StripeLayout::default()).expect("it is set").expect("it can be chosen");
    assert_eq!(back, StripeLayout { replicas: Some(1), ..layout(1, 128 << 10) }, "as before the first call");
}

#[test]
fn a_tool_that_is_missing_is_named() {
    replayed(None, "a_tool_that_is_missing_is_named", without_a_tool);
}

fn without_a_tool() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let target = target(place.path(), StripeControl::Lustre);
    let error = target.lay_out(&layout(4, 1 << 20)).expect_err("there is no lfs").to_string();
    assert!(error.contains("`lfs getstripe -d ") && error.contains("there is no lfs in PATH"), "{error}");
}

/// `lfs` that says which process it is, and never answers.
const HUNG: &str = "#!/bin/sh\necho $$ > \"$(dirname \"$0\")/pid\"\nexec sleep 1000\n";

/// In a process with its own PATH, a tool is asked that never answers.
const ASKING: &str = "NILOMETER_REPLAY_ASKING";

/// One that is asked for a description is killed where it takes too long: what it has asked itself must not go on.
#[test]
fn a_tool_ends_with_the_process_that_asked_it() {
    if std::env::var_os(ASKING).is_some() {
        return on_lustre();
    }
    let tools = tempfile::tempdir().expect("a temporary directory");
    let path = tools.path().join("lfs");
    fs::write(&path, HUNG).expect("space");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let before = std::env::var("PATH").expect("a path");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "a_tool_ends_with_the_process_that_asked_it"]).env(ASKING, "1");
    command.env("PATH", format!("{}:{before}", tools.path().display()));
    let mut asking = command.stdout(std::process::Stdio::null()).spawn().expect("it starts");
    let said = || fs::read_to_string(tools.path().join("pid")).ok()?.trim().parse::<u32>().ok();
    let tool = awaited(said);
    asking.kill().expect("it is ours");
    asking.wait().expect("it is ours");
    awaited(|| (!runs(tool)).then_some(()));
}

/// What is there once a condition is met, which is looked at for half a minute.
fn awaited<T>(condition: impl Fn() -> Option<T>) -> T {
    for _ in 0..3000 {
        if let Some(met) = condition() {
            return met;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("it did not come to that within half a minute");
}

/// Whether a process runs. One that has ended may be left for another to take notice of.
fn runs(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}
