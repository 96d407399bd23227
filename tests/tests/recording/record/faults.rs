//! What goes wrong outside while packets are recorded: foreign ones at full rate, an instrument that is set anew in the
//! middle, clocks that jump, disks that are full.

mod senders;
mod starved;
mod starved_senders;
mod thrown_away;

use std::{
    net::{SocketAddr, UdpSocket},
    ops::Range,
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use nilometer_intake::transport::{StreamCourse, faults::Faults};
use nilometer_model::{Moment, Nanos};
use nilometer_tests::{FileSystem, address, await_some, may_mount, run, status, undamaged};
use nilometer_wire::{EPOCH, vdif::VdifHeader};
use rustix::process::Signal;

use crate::record::{FRAME, LIMIT, Lab, RATE, assert_frames, count, ended_after};

/// Sends packets to a recording from an address of this machine.
pub(super) struct Gun {
    socket: UdpSocket,
    to: SocketAddr,
}

impl Gun {
    pub(super) fn new(from: [u8; 4], lab: &Lab) -> Self {
        let socket =
            UdpSocket::bind(SocketAddr::from((from, 0))).expect("all of 127.0.0.0/8 is this machine");
        Gun { socket, to: ([127, 0, 0, 1], lab.port).into() }
    }

    pub(super) fn send(&self, packet: &[u8]) {
        self.socket.send_to(packet, self.to).expect("loopback takes it");
    }
}

/// Serial number and frame of a stream's packet.
pub(super) fn packet(lab: &Lab, number: u64) -> Vec<u8> {
    let mut flow = lab.flow(StreamCourse::default(), 1);
    let made = flow.make(number);
    let packet = flow.packet(made);
    [packet.prefix, packet.body].concat()
}

/// Changes the header of a packet's frame.
fn change(packet: &mut [u8], change: impl FnOnce(&mut VdifHeader)) {
    let mut header = VdifHeader::parse(&packet[8..]).expect("a VDIF header");
    change(&mut header);
    header.write(&mut packet[8..]);
}

/// Sends these frames, each as it is changed, slowly enough for any recorder.
pub(crate) fn send_each(lab: &Lab, numbers: Range<u64>, changed: impl Fn(u64, &mut Vec<u8>)) {
    send_from(&Gun::new([127, 0, 0, 1], lab), lab, numbers, changed);
}

/// The same from an address that has sent some of the stream before.
pub(super) fn send_from(
    gun: &Gun,
    lab: &Lab,
    numbers: Range<u64>,
    mut changed: impl FnMut(u64, &mut Vec<u8>),
) {
    let mut flow = lab.flow(StreamCourse::default(), 1);
    for number in numbers {
        let made = flow.make(number);
        let packet = flow.packet(made);
        let mut packet = [packet.prefix, packet.body].concat();
        changed(number, &mut packet);
        gun.send(&packet);
        thread::sleep(Duration::from_micros(20));
    }
}

/// A flood ends with that, whatever becomes of the test.
const FLOOD_MOST: u64 = 20_000_000;

/// Sends as fast as it can until it is over: packets of a stranger that would fit into the stream, and packets of an allowed
/// sender that are as long as the stream's and none of it. Counts how many of each.
fn flood(lab: &Lab, over: &AtomicBool, sent: &AtomicU64) {
    let (stranger, neighbour) = (Gun::new([127, 0, 0, 2], lab), Gun::new([127, 0, 0, 1], lab));
    // Were it taken in, the stream would jump there.
    let fitting = packet(lab, 5_000_000);
    let mut foreign = packet(lab, 0);
    change(&mut foreign, |header| header.length = 4000);
    while !over.load(Ordering::Relaxed) && sent.load(Ordering::Relaxed) < FLOOD_MOST {
        stranger.send(&fitting);
        neighbour.send(&foreign);
        sent.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_flood_of_foreign_packets_is_counted_apart_and_disturbs_nothing() {
    let lab = Lab::new();
    // Other programs may hold up the recorder for longer than its usual memory lasts in a flood.
    let running = lab.record(&["--allow", "127.0.0.1", "--receive-buffer", "512 MiB"]);
    let (over, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let stream = Gun::new([127, 0, 0, 1], &lab);
    let mut packets = 20_000;
    thread::scope(|scope| {
        scope.spawn(|| flood(&lab, &over, &sent));
        // The first packets of all are foreign, and there are more of them than of the stream.
        await_some("a flood", || (sent.load(Ordering::Relaxed) > packets).then_some(()));
        send_from(&stream, &lab, 0..packets, |_, _| {});
        over.store(true, Ordering::Relaxed);
    });
    // The kernel may have dropped the last of the stream: packets behind them say so, unless it drops these too.
    let mut before = None;
    await_some("all packets of the stream", || {
        let recording = &status(address(&running, "http"))["recording"];
        let [received, missing] = [&recording["received_packets"], &recording["lost"]["packets"]];
        let known = received.as_u64()? + missing.as_u64()?;
        if known < packets && before.replace(known) == Some(known) {
            send_from(&stream, &lab, packets..packets + 10, |_, _| {});
            packets += 10;
        }
        (known == packets).then_some(())
    });
    running.signal(Signal::TERM);
    let ended = running.end(LIMIT);
    let sent = sent.into_inner();
    let (recorded, missing) = (count(&ended, "recorded", "packets"), count(&ended, "missing", "packets"));
    assert_eq!(recorded + missing, packets, "{ended:?}");
    assert_eq!(count(&ended, "discarded", "twice"), 0, "{ended:?}");
    let dropped = (count(&ended, "discarded", "senders"), count(&ended, "discarded", "foreign"));
    if ended.stdout.contains("found no room in the socket buffer") {
        // Where the kernel gives less memory, it drops of all alike, and that is said.
        assert!(dropped.0 <= sent && dropped.1 <= sent && dropped.0 > 0, "{ended:?}");
        return;
    }
    assert_eq!((ended.code, missing, dropped), (Some(0), 0, (sent, sent)), "{ended:?}");
    assert_frames(&lab, &lab.file(), packets, &[].into());
}

#[test]
fn a_signal_that_comes_twice_at_once_ends_it_in_order() {
    let lab = Lab::new();
    let running = lab.record(&[]);
    lab.send(500, 20_000.0, Faults::default(), StreamCourse::default());
    // timeout(1) signals a process and then its group.
    running.signal(Signal::TERM);
    running.signal(Signal::INT);
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(count(&ended, "recorded", "packets"), 500, "{ended:?}");
}

#[test]
fn a_duration_beyond_the_room_is_warned_of_before_the_recording_begins() {
    if !may_mount() {
        return;
    }
    let disk = FileSystem::tmpfs("size=64m");
    let lab = Lab::onto(tempfile::tempdir().expect("a temporary directory"), disk.path().to_owned());
    let running = lab.record(&["--reserve", "0 B", "--duration", "20 h"]);
    running.signal(Signal::TERM);
    let ended = running.end(LIMIT);
    let [warned, begun] = ["does NOT fit: room for ", "listening"].map(|words| ended.stderr.find(words));
    assert!(warned.is_some() && warned < begun, "{ended:?}");
}

#[test]
fn a_stream_that_changes_its_frame_length_is_recorded_where_it_has_its_own() {
    let lab = Lab::new();
    let running = lab.record(&[]);
    let other = 1000..2000;
    send_each(&lab, 0..3000, |number, packet| {
        if other.contains(&number) {
            change(packet, |header| header.length = 4032);
            packet.truncate(8 + 4032);
        }
    });
    let ended = ended_after(running, 3000);
    assert_eq!(ended.code, Some(1), "packets are missing: {ended:?}");
    assert_eq!(count(&ended, "discarded", "odd-sized"), 1000, "{ended:?}");
    assert_eq!(count(&ended, "recorded", "packets"), 2000, "{ended:?}");
    assert_eq!(count(&ended, "missing", "packets"), 1000, "{ended:?}");
    assert_frames(&lab, &lab.file(), 3000, &other.collect());
}

/// The seconds since 2000 in which a half-year begins.
fn half_year(text: &str) -> u64 {
    text.parse::<Moment>().expect("a time").0.0 / 1_000_000_000 - EPOCH
}

#[test]
fn a_second_before_the_epoch_is_a_second_like_any_other() {
    // Its first second is the last one before July.
    let lab = Lab { begins: half_year("2026-07-01T00:00:00Z") - 1, ..Lab::new() };
    let running = lab.record(&[]);
    let (july, lost, wrong) = (RATE, RATE - 3..RATE + 3, RATE + 500);
    send_each(&lab, 0..2 * RATE, |number, packet| {
        change(packet, |header| {
            // From July on it counts seconds from there.
            if number >= july {
                (header.epoch, header.second) = (header.epoch + 1, 0);
            }
            // One says a time before its epoch: all bits of the second are set, which is -1.
            if number == wrong {
                header.second = (1 << 30) - 1;
            }
        });
        if lost.contains(&number) {
            packet.truncate(100);
        }
    });
    let ended = ended_after(running, 2 * RATE);
    assert_eq!(ended.code, Some(1), "packets are missing: {ended:?}");
    assert_eq!(count(&ended, "missing", "packets"), 6, "{ended:?}");
    assert_eq!(count(&ended, "recorded", "packets"), 2 * RATE - 6, "{ended:?}");
    let mut file = lab.file();
    let frame = &mut file[wrong as usize * FRAME..][..FRAME];
    let mut header = VdifHeader::parse(frame).expect("a header");
    assert_eq!(header.second, (1 << 30) - 1, "what came is kept as it came");
    header.second = 0;
    header.write(frame);
    let times: Vec<_> =
        file.chunks_exact(FRAME).map(|frame| VdifHeader::parse(frame).expect("a header")).collect();
    for (number, header) in (0..).zip(&times) {
        let expected = (lab.begins + number / RATE, number % RATE, lost.contains(&number));
        let found = (header.since_2000(), u64::from(header.frame), header.invalid);
        assert_eq!(found, expected, "frame {number}");
    }
    assert_eq!(times.len() as u64, 2 * RATE);
}

#[test]
fn a_clock_of_the_instrument_that_jumps_loses_nothing() {
    for seconds in [-3, 3, 40_000_000] {
        let lab = Lab { begins: crate::record::BEGINS + 100, ..Lab::new() };
        let running = lab.record(&[]);
        let course =
            StreamCourse { jump: Some((1500, seconds * RATE.cast_signed())), ..StreamCourse::default() };
        lab.send(3000, 20_000.0, Faults::default(), course);
        let ended = ended_after(running, 3000);
        assert_eq!(
            (ended.code, count(&ended, "recorded", "packets")),
            (Some(0), 3000),
            "{seconds}: {ended:?}"
        );
        let (file, mut flow) = (lab.file(), lab.flow(course, 1));
        assert_eq!(file.len(), 3000 * FRAME);
        for (number, frame) in (0..).zip(file.chunks_exact(FRAME)) {
            let made = flow.make(number);
            assert!(flow.packet(made).body == frame, "{seconds}: frame {number} differs");
        }
    }
}

/// Records more than fits onto file systems of 24 MiB, and what was said.
fn fill_up(disks: &[FileSystem], more: &[&str]) -> (Lab, Vec<PathBuf>) {
    let [first, others @ ..] = disks else { panic!("a disk at least") };
    let lab = Lab::onto(tempfile::tempdir().expect("a temporary directory"), first.path().to_owned());
    let others: Vec<_> = others.iter().map(|disk| disk.path().to_str().expect("plain names")).collect();
    let more: Vec<_> = others.iter().flat_map(|disk| ["--to", disk]).chain(more.iter().copied()).collect();
    let running = lab.record(&more);
    // Much more than fits: 240 MB.
    lab.send(30_000, 20_000.0, Faults::default(), StreamCourse::default());
    let ended = running.end(LIMIT);
    let (count_of, all) = (disks.len(), &ended.stdout);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for words in [format!("{count_of} of {count_of} directories dropped out"), "no directory was left".into()]
    {
        assert!(ended.stderr.contains(&words), "{ended:?}");
    }
    assert_eq!(all.matches("full up to the reserve after").count(), disks.len(), "{ended:?}");
    for disk in disks {
        let event = format!("DISK FULL {}", disk.path().display());
        assert!(ended.stderr.contains(&event), "{ended:?}");
    }
    let lanes = disks.iter().map(|disk| disk.path().join("scan")).collect();
    (lab, lanes)
}

/// The blocks that a recording still has are right, and no frame is damaged.
fn assert_right(lanes: &[PathBuf], blocks: std::ops::RangeInclusive<u64>) {
    let verified = run(&[&[PathBuf::from("verify")][..], lanes].concat());
    let right = undamaged(&verified);
    assert!(blocks.contains(&right) && !verified.stdout.contains("damaged"), "{right}: {verified:?}");
}

#[test]
fn when_the_only_disk_is_full_it_says_so_and_what_was_recorded_is_right() {
    if !may_mount() {
        return;
    }
    let disks = [FileSystem::tmpfs("size=24m")];
    let (lab, lanes) = fill_up(&disks, &["--reserve", "2 MiB", "--checksums"]);
    let file = lab.file();
    let frames = (file.len() / FRAME) as u64;
    assert!(file.len() > 18 << 20, "{}", file.len());
    assert_frames(&lab, &file[..frames as usize * FRAME], frames, &[].into());
    // A block has 128 frames, about 1 MB.
    assert_right(&lanes, 17..=22);
}

#[test]
fn when_all_disks_are_full_it_says_so_and_what_was_recorded_is_right() {
    if !may_mount() {
        return;
    }
    let disks = [FileSystem::tmpfs("size=24m"), FileSystem::ext4(32)];
    let (_, lanes) = fill_up(&disks, &["--chunk-size", "4 MB", "--reserve", "0 B", "--checksums"]);
    assert_right(&lanes, 36..=54);
}

/// What the receiver does by the clock it does by one that nobody can set. The calendar is looked at for the times of a
/// schedule, and to say when something was.
#[test]
fn no_part_of_the_recorder_looks_at_a_clock_that_can_be_set() {
    let crates = nilometer_tests::root().join("crates");
    let recorder = ["ring", "intake", "hdf5-recording", "acquisition"];
    let looks = |text: &str| ["Calendar", "SystemTime", "ClockId"].iter().any(|word| text.contains(word));
    let sources: Vec<_> = recorder.iter().flat_map(|name| files(&crates.join(name).join("src"))).collect();
    assert!(sources.len() > 150, "{} files", sources.len());
    let mut found: Vec<_> =
        sources.into_iter().filter(|(_, text)| looks(text)).map(|(path, _)| path).collect();
    found.sort();
    // Who sends keeps in step with it, as instruments do.
    assert_eq!(
        found,
        ["replay.rs", "series/sender/course.rs", "transport/sender.rs"]
            .map(|name| crates.join("intake/src").join(name))
    );
    assert!(Moment(Nanos(5)).0.since(Nanos(9)) == Nanos(0), "a clock that went back is no time that passed");
}

fn files(directory: &std::path::Path) -> Vec<(PathBuf, String)> {
    let entries =
        std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut found = Vec::new();
    for path in entries {
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), std::fs::read_to_string(path).expect("text")));
        }
    }
    found
}
