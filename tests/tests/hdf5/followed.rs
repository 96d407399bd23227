//! h5py reads a file with `swmr=True` while it grows, and each frame is right when it comes.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    process::Stdio,
};

use rustix::process::Signal;

use crate::lab::{LIMIT, Lab, h5py, number};

/// More than are recorded before the end: it is interrupted when the reader has seen enough.
const FRAMES: u64 = 20_000;
const ENOUGH: u64 = 1500;

/// The reader's last word, and how often it found more before that.
fn followed(compression: &str) {
    let lab = Lab::new("32, 64", "uint16", "500 Hz", "");
    let (truth, over) = (lab.truth(FRAMES), lab.home.path().join("over"));
    let Some(mut follow) = h5py("follow") else { return };
    let frames = FRAMES.to_string();
    let running = lab.start(compression, &["--frames", &frames]);
    lab.await_file("scan.h5");
    let said = lab.home.path().join("said");
    follow
        .args([&truth, &lab.file(), &over])
        .stdout(Stdio::piped())
        .stderr(File::create(&said).expect("space"));
    let mut reader = follow.spawn().expect("it starts");
    let mut ended = None;
    let (mut running, mut looks, mut last) = (Some(running), 0, 0);
    let mut flags = None;
    for line in BufReader::new(reader.stdout.take().expect("it is piped")).lines() {
        let line = line.expect("text");
        if let Some(said) = line.strip_prefix("end ") {
            flags = serde_json::from_str::<Vec<u8>>(said).ok();
            break;
        }
        last = line.parse().expect("a number");
        looks += u64::from(running.is_some());
        if last >= ENOUGH
            && let Some(running) = running.take()
        {
            running.signal(Signal::INT);
            ended = Some(running.end(LIMIT));
            fs::write(&over, "").expect("space");
        }
    }
    let status = reader.wait().expect("a child of ours");
    assert!(status.success(), "{compression}: {}", fs::read_to_string(&said).unwrap_or_default());
    let ended = ended.expect("enough came");
    assert!(ended.stderr.contains("interrupted"), "{ended:?}");
    assert_eq!(last, number(&ended, "stored"), "{compression}: {ended:?}");
    let flags = flags.expect("its last word");
    assert!(flags.len() as u64 >= last && flags.iter().all(|flag| *flag <= 1), "{flags:?}");
    assert!(looks > 20, "it was read while it grew: {looks} looks found more");
}

#[test]
fn a_reader_of_a_file_that_grows_gets_no_wrong_frame() {
    followed("none");
}

#[test]
fn a_reader_of_a_file_of_compressed_frames_that_grows_gets_no_wrong_frame() {
    followed("bslz4");
}
