//! Files of a Mark 6 group.

use std::fs;

use super::{FRAME, Station, about, assert_read_by_all, json, text};

#[test]
fn blocks_on_several_disks_are_one_recording() {
    let station = Station::new();
    let disks: [_; 4] = station.disks();
    let (path, bytes) = station.vdif("1003", &["2"]);
    let names: Vec<_> = disks.iter().map(|disk| text(disk)).collect();
    let size = (50 * FRAME).to_string();
    station.write(&[&["mark6", "all.vdif", "exp_ef_no0001", &size], &names[..]].concat());
    fs::remove_file(path).expect("it is ours");
    let files = disks.each_ref().map(|disk| disk.join("exp_ef_no0001"));
    for paths in [&disks, &files] {
        assert_read_by_all(paths, "exp_ef_no0001.vdif", &bytes, &station);
    }
    let scanned = json("scan", &files, &[]);
    assert_eq!((&scanned["without_journal"]["kind"], &scanned["frames"]), (&"mark6".into(), &1003.into()));

    // Without a disk, its blocks are missing.
    let verified = about("verify", &disks[1..], &[]);
    assert!(verified.code == Some(1) && verified.stdout.contains("blocks that are not here"), "{verified:?}");
    // A file ends within a block.
    let cut = fs::metadata(&files[2]).expect("it is there").len() - 100;
    fs::File::options().write(true).open(&files[2]).and_then(|file| file.set_len(cut)).expect("it is ours");
    let verified = about("verify", &disks, &[]);
    assert!(
        verified.code == Some(1) && verified.stdout.contains("is cut: 100 B of it are not there"),
        "{verified:?}"
    );
}
