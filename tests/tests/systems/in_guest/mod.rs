//! Storage that the kernel of this machine may lack, in the testbed's guest: arrays of md, GFS2, and NFS, SMB and `CephFS`
//! by the kernel. The real program describes, measures and records there.

use std::fs;

use nilometer_model::{EngineKind, FileSystemKind, TargetDescription};
use nilometer_plan::Results;
use nilometer_tests::{Ended, Testbed, nilometer, run};

use crate::testbed::random_bytes;

use self::{
    folded::file_systems_that_fold_case_and_have_no_hard_links_are_measured,
    stale::a_stale_handle_of_nfs_is_a_fault_in_the_record,
};

mod folded;
mod stale;

/// A directory of the guest, with its file system and the protection of its data in words.
type Place = (&'static str, FileSystemKind, &'static str);

const PLACES: [Place; 7] = [
    ("md-raid0", FileSystemKind::Xfs, "none (md raid0 of 2)"),
    ("md-raid5", FileSystemKind::Xfs, "md raid5 of 3"),
    ("md-raid6", FileSystemKind::Xfs, "md raid6 of 4"),
    ("gfs2", FileSystemKind::Gfs2, ""),
    ("nfs-v3", FileSystemKind::Nfs, ""),
    ("nfs-v4.2", FileSystemKind::Nfs, ""),
    ("smb", FileSystemKind::Smb, ""),
];

/// Little is written: each system call costs the guest 25 us, and its network is slow.
const PLAN: &str = "title = \"a look at each\"\nrepeats = 1\nreserve = \"0 B\"\n[[stage]]\nname = \"files\"\n\
                    time_limit = \"1 s\"\n[stage.workload.stream]\nfile_size = \"4 MiB\"\nblock_size = \"1 MiB\"\n\
                    access = \"buffered\"\n";

/// Runs the program in the guest.
fn in_guest(testbed: &Testbed, arguments: &[&str]) -> Ended {
    let program = nilometer().to_str().expect("plain letters");
    testbed.verb("guest", &[&[program], arguments].concat())
}

fn described(testbed: &Testbed, place: &str) -> TargetDescription {
    let ended = in_guest(testbed, &["describe", "--exchange", "--", place]);
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{place}: {error}: {ended:?}"))
}

/// One campaign over all of them; its record comes back through the exchange.
fn evaluated(testbed: &Testbed, places: &[Place]) -> Results {
    let exchange = testbed.folder().join("uml/exchange");
    fs::write(exchange.join("plan.toml"), PLAN).expect("space");
    let places: Vec<_> = places.iter().map(|(name, ..)| format!("/mnt/{name}")).collect();
    let mut arguments = vec!["evaluate", "--plan", "/exchange/plan.toml", "--record", "/tmp/r.sqlite"];
    arguments.extend(places.iter().map(String::as_str));
    let ended = in_guest(testbed, &arguments);
    assert!(ended.has_answered(), "{ended:?}");
    let record = exchange.join("r.sqlite");
    testbed.must("guest", &["cp", "/tmp/r.sqlite", "/exchange/r.sqlite"]);
    nilometer_record::read(&record).expect("a record")
}

/// The report of the campaign on SMB tells the engine, with the figures of the trial.
fn the_report_tells_the_engine(testbed: &Testbed) {
    let record = testbed.folder().join("uml/exchange/r.sqlite");
    let all = ["--format", "markdown", "--all"].map(AsRef::as_ref);
    let report = run(&[&["report".as_ref(), record.as_os_str()][..], &all].concat());
    let row = report.stdout.lines().find(|line| line.contains("engine of recordings"));
    assert!(row.is_some_and(|row| row.contains("G: pool: io")), "{row:?}: {report:?}");
}

fn each_is_known_and_measured(testbed: &Testbed, places: &[Place]) {
    let results = evaluated(testbed, places);
    for (number, &(name, kind, redundancy)) in places.iter().enumerate() {
        let target = &results.targets[number];
        let profile = &target.description.as_ref().expect("it was described").profile;
        assert_eq!(profile.kind, kind, "{name}");
        assert_eq!(profile.redundancy.as_deref().unwrap_or_default(), redundancy, "{name}");
        assert_eq!(target.left_out, None, "{name}");
        let samples: Vec<_> =
            results.samples.iter().filter(|measured| measured.key.target == number).collect();
        assert!(samples.iter().any(|measured| measured.sample.bytes > 0), "{name}: {samples:?}");
        assert!(samples.iter().all(|measured| measured.sample.errors.is_empty()), "{name}: {samples:?}");
    }
}

/// Kernel SMB takes a twentieth through `io_uring`, and fails with EINTR or EIO. The trial finds that, and a recording
/// of large frames past the page cache uses the pool, says so, and is whole.
fn smb_is_recorded_onto(testbed: &Testbed) {
    let trial = described(testbed, "/mnt/smb").profile.engines.expect("SMB is tried");
    assert_eq!(trial.suited(), EngineKind::Pool, "{trial}");
    let frames = ["--rate", "1 Hz", "--frames", "3", "--buffer", "150 MB", "--format", "raw"];
    let place = ["simulate", "pco-4000", "--to", "/mnt/smb", "--name", "scan", "--reserve", "0 B"];
    let ended = in_guest(testbed, &[&place[..], &frames].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for said in [&ended.stdout, &ended.stderr] {
        assert!(said.contains("pool: io_uring") && said.contains("in a trial"), "{ended:?}");
    }
    let verified = in_guest(testbed, &["verify", "/mnt/smb/scan"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let whole = "compared with the frames of the simulated instrument";
    assert!(verified.stdout.contains(whole), "{verified:?}");
}

/// The volume below GFS2 is linear over two disks, the one beside it is striped over three.
fn a_linear_volume_is_warned_of(testbed: &Testbed) {
    let facts = |place: &str| described(testbed, place).facts;
    let warnings: Vec<_> = facts("/mnt/gfs2").into_iter().filter(|(name, _)| name == "volume").collect();
    let [(_, warning)] = warnings.as_slice() else { panic!("one volume: {warnings:?}") };
    assert!(warning.starts_with("WARNING: volumes-linear over ubd"), "{warning}");
    assert!(facts("/mnt/lvm-stripes").iter().all(|(name, _)| name != "volume"));
}

/// All in one guest: its start costs a minute of processor time. The last one breaks its arrays.
#[test]
fn storage_of_another_kernel_is_described_measured_and_recorded_onto() {
    let Some(testbed) = Testbed::of(&["uml"]) else { return };
    each_is_known_and_measured(&testbed, &PLACES);
    the_report_tells_the_engine(&testbed);
    smb_is_recorded_onto(&testbed);
    a_linear_volume_is_warned_of(&testbed);
    file_systems_that_fold_case_and_have_no_hard_links_are_measured(&testbed);
    a_stale_handle_of_nfs_is_a_fault_in_the_record(&testbed);
    the_laboratory_has_what_a_kernel_may_lack(&testbed);
}

/// Starting the cluster takes the guest half a minute, and more on a busy machine.
#[test]
fn ceph_by_the_kernel_is_described_and_measured() {
    let Some(testbed) = Testbed::of_extended(&["uml"]) else { return };
    testbed.must("guest", &["bash", "/laboratory/cephfs"]);
    each_is_known_and_measured(&testbed, &[("cephfs", FileSystemKind::CephFs, "")]);
}

fn the_laboratory_has_what_a_kernel_may_lack(testbed: &Testbed) {
    let mounts = testbed.must("guest", &["cat", "/proc/mounts"]);
    let begins = [
        "/dev/md0 /mnt/md-raid5 xfs ",
        "/dev/md1 /mnt/md-raid0 xfs ",
        "/dev/md2 /mnt/md-raid6 xfs ",
        "/dev/mapper/volumes-linear /mnt/gfs2 gfs2 ",
        "//10.9.0.1/share /mnt/smb cifs rw,relatime,vers=3.1.1,",
        "/dev/mapper/volumes-stripes /mnt/lvm-stripes ext4 ",
        "/dev/ubdh /mnt/jfs jfs ",
        "10.9.0.1:/mnt/md-raid5 /mnt/nfs-v3 nfs rw,relatime,vers=3,",
        "10.9.0.1:/ /mnt/nfs-v4.2 nfs4 rw,relatime,vers=4.2,",
    ];
    for begin in begins {
        assert!(mounts.lines().any(|line| line.starts_with(begin)), "{begin}: {mounts}");
    }
    let arrays = testbed.must("guest", &["cat", "/proc/mdstat"]);
    assert!(arrays.contains("level 5, 256k chunk") && arrays.contains("level 6, 256k chunk"), "{arrays}");
    assert!(testbed.must("guest", &["dmsetup", "table", "volumes-stripes"]).contains(" striped 3 512 "));
    assert!(testbed.must("guest", &["cat", "/proc/net/bonding/bond0"]).contains("Slave Interface: link1"));
    testbed.must("guest", &["tc", "qdisc", "add", "dev", "bond0", "root", "netem", "delay", "1ms"]);

    let directory = tempfile::tempdir().expect("a temporary directory");
    let sent = directory.path().join("sent");
    fs::write(&sent, random_bytes()).expect("room");
    let sent = sent.to_str().expect("plain letters");
    for name in ["jfs", "lvm-stripes", "nfs-v3", "md-raid0", "md-raid6", "gfs2", "smb"] {
        testbed.must("guest", &["cp", sent, &format!("/mnt/{name}/file")]);
        testbed.must("guest", &["cmp", sent, &format!("/mnt/{name}/file")]);
    }
    testbed.must("guest", &["mdadm", "--manage", "/dev/md0", "--fail", "/dev/ubdb"]);
    testbed.must("guest", &["mdadm", "--manage", "/dev/md2", "--fail", "/dev/ubdm", "/dev/ubdp"]);
    for name in ["md-raid5", "nfs-v4.2", "md-raid6"] {
        testbed.must("guest", &["cmp", sent, &format!("/mnt/{name}/file")]);
    }
    let ended = testbed.verb("guest", &["sh", "-c", "echo it is so >&2; exit 7"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(7), "it is so\n"));
}
