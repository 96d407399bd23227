//! Chunks as of `FlexBuff`, which jive5ab writes.

use std::fs;

use nilometer_wire::vdif::VdifHeader;

use super::{FRAME, Station, about, assert_read_by_all, json, text};

/// Frames of a chunk.
const FRAMES: usize = 70;

fn written(station: &Station, disks: &[std::path::PathBuf]) -> Vec<u8> {
    let (path, bytes) = station.vdif("1000", &[]);
    let size = (FRAMES * FRAME).to_string();
    let disks: Vec<_> = disks.iter().map(|disk| text(disk)).collect();
    station.write(&[&["vbs", "all.vdif", "exp_ef_no0001", &size], &disks[..]].concat());
    fs::remove_file(path).expect("it is ours");
    bytes
}

#[test]
fn chunks_on_several_disks_are_one_recording() {
    let station = Station::new();
    let disks: [_; 3] = station.disks();
    let bytes = written(&station, &disks);
    assert_read_by_all(&disks, "exp_ef_no0001.vdif", &bytes, &station);
    let directories = disks.each_ref().map(|disk| disk.join("exp_ef_no0001"));
    let scanned = json("scan", &directories, &["--all"]);
    assert_eq!((&scanned["name"], &scanned["frames"]), (&"exp_ef_no0001".into(), &1000.into()));
    assert_eq!(
        (&scanned["without_journal"]["kind"], &scanned["without_journal"]["files"]),
        (&"vbs".into(), &15.into())
    );
    assert_eq!(scanned["frames_per_second"], 50);
}

#[test]
fn a_missing_chunk_is_named_and_filled_with_frames_of_its_time() {
    let station = Station::new();
    let disks: [_; 3] = station.disks();
    let bytes = written(&station, &disks);
    fs::remove_file(disks[1].join("exp_ef_no0001/exp_ef_no0001.00000004")).expect("it was written");
    let verified = about("verify", &disks, &[]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(verified.stdout.contains("fault       chunk 4 is not here"), "{verified:?}");
    assert!(verified.stdout.contains("70 frames are in files or blocks that are not here"), "{verified:?}");
    assert!(
        verified.stdout.contains("gaps by numbering: none"),
        "the missing chunk explains the gap: {verified:?}"
    );
    let copy = station.path("copy");
    let exported = about("export", &disks, &["--to", text(&copy)]);
    assert!(
        exported.code == Some(1) && exported.stdout.contains("are not here and are marked as invalid"),
        "{exported:?}"
    );
    let copy = fs::read(copy).expect("it was written");
    assert_eq!(copy.len(), bytes.len());
    for (number, (frame, sent)) in copy.chunks(FRAME).zip(bytes.chunks(FRAME)).enumerate() {
        if (4 * FRAMES..5 * FRAMES).contains(&number) {
            let header = VdifHeader::parse(frame).expect("it is whole");
            let expected = VdifHeader::parse(sent).expect("it is whole");
            assert_eq!(header, VdifHeader { invalid: true, ..expected }, "frame {number}");
        } else {
            assert!(frame == sent, "frame {number}");
        }
    }
}

#[test]
fn a_chunk_that_is_there_twice_counts_once() {
    let station = Station::new();
    let disks: [_; 2] = station.disks();
    let bytes = written(&station, &disks);
    let chunk = "exp_ef_no0001/exp_ef_no0001.00000003";
    fs::copy(disks[1].join(chunk), disks[0].join(chunk)).expect("space");
    let verified = about("verify", &disks, &[]);
    assert!(verified.code == Some(1) && verified.stdout.contains("chunk 3 is here twice"), "{verified:?}");
    let copy = station.path("copy");
    assert_eq!(about("export", &disks, &["--to", text(&copy)]).code, Some(0));
    assert!(fs::read(copy).expect("it was written") == bytes);
}

#[test]
fn several_recordings_below_the_disks_are_listed_and_one_must_be_named() {
    let station = Station::new();
    let disks: [_; 2] = station.disks();
    written(&station, &disks);
    let names: Vec<_> = disks.iter().map(|disk| text(disk)).collect();
    station.write(&["vdif", "all.vdif", "200"]);
    station.write(&[&["vbs", "all.vdif", "exp_ef_no0002", "51600"], &names[..]].concat());
    let scan = about("scan", &disks, &[]);
    assert_eq!(scan.stdout.matches("recording   exp_ef_no000").count(), 2, "{scan:?}");
    let exported = about("export", &disks, &["--to", text(&station.path("copy"))]);
    assert!(exported.code == Some(2) && exported.stderr.contains("different recordings"), "{exported:?}");
}
