//! `nilometer replay`: what was recorded is sent again.

use std::{fs, io::Read, net::TcpListener, path::PathBuf, thread};

use nilometer_tests::{Ended, address, await_packets, await_some, run, start};

use super::lab::{FRAME, FRAMES_OF_BLOCK, LIMIT, Lab, open};

/// Sends what is in these directories again.
fn replay(directories: &[PathBuf], to: &str, more: &[&str]) -> Ended {
    let directories = directories.iter().map(|path| path.to_str().expect("plain names"));
    let arguments: Vec<_> =
        ["replay"].into_iter().chain(directories).chain(["--to", to]).chain(more.iter().copied()).collect();
    start(&std::env::temp_dir(), &arguments).end(LIMIT)
}

/// Where a second recorder listens, which says of itself what the first does.
fn second(rate: u64) -> (Lab, String) {
    let second = Lab::new(rate, 1);
    let to = format!("udp://127.0.0.1:{}", second.port);
    (second, to)
}

#[test]
fn a_second_recorder_gets_the_same_bytes() {
    let (lab, frames) = (Lab::new(2000, 3), 4500);
    lab.recorded(frames);
    for more in [&[][..], &["--rate", "120 MB/s", "--serial", "123456789"]] {
        let (other, to) = second(2000);
        let running = other.record(&["--packets", &frames.to_string()]);
        let replayed = replay(&lab.lanes(), &to, more);
        assert_eq!(replayed.code, Some(0), "{replayed:?}");
        assert!(replayed.stdout.contains("4500 packets"), "{replayed:?}");
        let ended = running.end(LIMIT);
        assert!(ended.code == Some(0) && ended.stdout.contains("missing     none"), "{ended:?}");
        other.assert_sent(open(&other.lanes()[0].join("scan.vdif")), frames);
    }
}

#[test]
fn it_goes_on_while_the_recording_does() {
    // Whole blocks: all of a part is recorded before the next one comes.
    let part = 32 * FRAMES_OF_BLOCK as u64;
    let (lab, frames) = (Lab::new(4000, 2), 3 * part);
    let (other, to) = second(4000);
    let packets = ["--packets", &frames.to_string()];
    let first = lab.record(&packets);
    let copy = other.record(&[&packets[..], &["--http", "127.0.0.1:0"]].concat());
    let mut stream = lab.in_parts();
    stream.send_up_to(part);
    let scan = || run(&[&["scan".into()], &lab.lanes()[..]].concat());
    await_some("the first frames", || scan().stdout.contains("2025-05-08").then_some(()));
    thread::scope(|scope| {
        let replaying = scope.spawn(|| replay(&lab.lanes(), &to, &["--rate", "100 MB/s"]));
        for sent in [part, 2 * part] {
            await_packets(address(&copy, "http"), sent);
            stream.send_up_to(sent + part);
        }
        let ended = first.end(LIMIT);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let replayed = replaying.join().expect("it does not panic");
        let all = format!("{frames} packets");
        assert!(replayed.code == Some(0) && replayed.stdout.contains(&all), "{replayed:?}");
        assert!(replayed.stdout.contains("waited  "), "it was faster than the recording: {replayed:?}");
    });
    let ended = copy.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    other.assert_sent(open(&other.lanes()[0].join("scan.vdif")), frames);
}

/// The bytes that a replay with these options sends over TCP.
fn over_tcp(lab: &Lab, more: &[&str]) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = format!("tcp://{}", listener.local_addr().expect("it is bound"));
    let taking = thread::spawn(move || {
        let mut all = Vec::new();
        listener.accept().and_then(|(mut stream, _)| stream.read_to_end(&mut all)).map(|_| all)
    });
    let replayed = replay(&lab.lanes(), &to, &[&["--rate", "200 MB/s"], more].concat());
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    taking.join().expect("it does not panic").expect("it comes")
}

#[test]
fn over_tcp_go_the_bytes_of_the_file() {
    let (lab, frames) = (Lab::new(2000, 2), 2000);
    lab.recorded(frames);
    let taken = over_tcp(&lab, &[]);
    assert_eq!(taken.len(), frames as usize * FRAME);
    assert!(taken == lab.sent(frames));
    let part = over_tcp(&lab, &["--begin", "2025-05-08T06:13:20.25", "--end", "1777"]);
    assert!(part == taken[500 * FRAME..1777 * FRAME], "{} bytes", part.len());
}

#[test]
fn what_can_t_be_sent_again_is_refused() {
    let lab = Lab::new(2000, 1);
    lab.recorded(300);
    let camera = lab.path().join("camera");
    fs::create_dir(&camera).expect("space");
    let simulated = run(&[
        "simulate",
        "pco-edge",
        "--frames",
        "2",
        "--name",
        "c",
        "--to",
        camera.to_str().expect("plain"),
    ]);
    assert_eq!(simulated.code, Some(0), "{simulated:?}");
    let to = format!("udp://127.0.0.1:{}", lab.port);
    for (directories, to, more, part) in [
        (lab.lanes(), "udp://127.0.0.1", &[][..], "udp://HOST:PORT or tcp://HOST:PORT"),
        (lab.lanes(), "/tmp", &[], "udp://HOST:PORT or tcp://HOST:PORT"),
        (lab.lanes(), &to, &["--rate", "0 B/s"], "--rate 0"),
        (lab.lanes(), &to, &["--interface", "no-such-one"], "no-such-one"),
        (vec![camera.join("c")], &to, &[], "not of packets"),
        (vec![lab.path().join("missing")], &to, &[], "missing"),
    ] {
        let ended = replay(&directories, to, more);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert_eq!(ended.stderr.matches("nilometer: ").count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(part), "`{part}` is missing in: {}", ended.stderr);
    }
}
