//! What someone did to the files of a recording is named by `nilometer verify`.

use std::{fs, os::unix::fs::FileExt, path::Path};

use crate::hdf5::lab::{Lab, assert_verified, found_in, undamaged};

fn change(path: &Path, at: u64, length: usize, how: impl Fn(&mut [u8])) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).expect("it is there");
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, at).expect("it is there");
    how(&mut bytes);
    file.write_all_at(&bytes, at).expect("it can be written");
}

#[test]
fn a_chunk_that_was_changed_is_named() {
    for compression in ["none", "bslz4", "bszstd", "lz4", "zstd"] {
        let lab = Lab::small("data = \"diffraction\"\n");
        lab.record(compression, &["--frames", "60"]);
        assert_verified(&lab, 60);
        let Some(found) = found_in(&lab.truth(60), &lab.file()) else { return };
        let middle = |frame: u64| found.chunk(frame).0 + found.chunk(frame).1 / 2;
        change(&lab.file(), middle(7), 1, |byte| byte[0] ^= 2);
        let (begin, length) = found.chunk(31);
        change(&lab.file(), begin, length as usize, |bytes| bytes.fill(0x5a));
        let verified = lab.about("verify");
        assert_eq!((verified.code, undamaged(&verified)), (Some(1), 58), "{compression}: {verified:?}");
        let damaged: Vec<_> = verified.stdout.lines().filter(|line| line.starts_with("damaged")).collect();
        assert_eq!(damaged.len(), 2, "{compression}: {verified:?}");
        for (line, frame) in damaged.iter().zip([7, 31]) {
            let place = format!("byte {} of {}", found.chunk(frame).0, lab.file().display());
            assert!(
                line.contains(&format!("frame {frame} ")) && line.contains(&place),
                "{compression}: {line}"
            );
        }
    }
}

#[test]
fn a_file_that_is_gone_or_cut_takes_its_frames_only() {
    let lab = Lab::small("recording.frames_per_file = 20\n");
    lab.record("bslz4", &["--frames", "60"]);
    let file = |number: u64| lab.lanes()[0].join(format!("scan.{number:08}.h5"));
    fs::remove_file(file(0)).expect("it is there");
    fs::OpenOptions::new()
        .write(true)
        .open(file(2))
        .and_then(|file| file.set_len(512))
        .expect("it can be cut");
    let verified = lab.about("verify");
    assert_eq!((verified.code, undamaged(&verified)), (Some(1), 20), "{verified:?}");
}

#[test]
fn without_its_journal_a_recording_is_not_found_and_its_file_is_whole() {
    let lab = Lab::small("");
    lab.record("bslz4", &["--frames", "60"]);
    fs::remove_file(lab.lanes()[0].join("scan.0.journal")).expect("it is there");
    let verified = lab.about("verify");
    assert_eq!(verified.code, Some(2), "{verified:?}");
    let said = format!(
        "nilometer: no recording in {}: name the directories in which the files *.journal are\n",
        lab.lanes()[0].display()
    );
    assert_eq!(verified.stderr, said);
    let Some(found) = found_in(&lab.truth(60), &lab.file()) else { return };
    found.assert_whole(60);
}
