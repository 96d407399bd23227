//! Several senders at one port, each with serial numbers of its own, and threads of one sender: all that came is recorded,
//! and what is missing is said of whom.

use std::{
    collections::BTreeMap,
    fs,
    net::{SocketAddr, UdpSocket},
};

use nilometer_intake::transport::StreamCourse;
use nilometer_tests::{Ended, address, ask, await_some, free_port, run, status};
use nilometer_wire::vdif::VdifHeader;
use serde_json::Value;

use crate::record::{BEGINS, FRAME, Lab, ended_after};

/// A board: where it sends from, its first serial number, and its thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Board {
    pub(super) address: u8,
    pub(super) first: u64,
    pub(super) thread: u16,
}

/// A board and its socket.
pub(super) struct Sending {
    board: Board,
    socket: UdpSocket,
    to: (&'static str, u16),
    frame: Vec<u8>,
}

impl Sending {
    fn new(board: Board, lab: &Lab) -> Self {
        let from = SocketAddr::from(([127, 0, 0, board.address], 0));
        let socket = UdpSocket::bind(from).expect("all of 127.0.0.0/8 is this machine");
        let mut flow = lab.flow(StreamCourse::default(), 1);
        let made = flow.make(0);
        let frame = flow.packet(made).body.to_vec();
        Sending { board, socket, to: ("127.0.0.1", lab.port), frame }
    }

    /// Its frame of this number, 1000 a second.
    pub(super) fn send(&mut self, number: u64) {
        let mut header = VdifHeader::parse(&self.frame).expect("a VDIF header");
        let begun = header.since_2000().saturating_sub(u64::from(header.second));
        header.second = (BEGINS + number / 1000 - begun) as u32;
        header.frame = (number % 1000) as u32;
        header.thread = self.board.thread;
        header.write(&mut self.frame);
        let packet = [&(self.board.first + number).to_le_bytes()[..], &self.frame].concat();
        self.socket.send_to(&packet, self.to).expect("loopback takes it");
    }

    pub(super) fn name(&self) -> String {
        self.socket.local_addr().expect("it is bound").to_string()
    }
}

pub(super) fn boards(lab: &Lab, boards: &[Board]) -> Vec<Sending> {
    boards.iter().map(|board| Sending::new(*board, lab)).collect()
}

/// Sends frames of all boards in turn, without those that are lost by one.
fn send(boards: &mut [Sending], numbers: std::ops::Range<u64>, is_lost: impl Fn(usize, u64) -> bool) {
    for number in numbers {
        for (at, board) in boards.iter_mut().enumerate() {
            if !is_lost(at, number) {
                board.send(number);
            }
        }
        if number % 10 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// Frames of a file by thread, those that are valid and those that are not; of each thread in the order of time.
fn frames(file: &[u8]) -> BTreeMap<u16, [u64; 2]> {
    let mut counts: BTreeMap<u16, [u64; 2]> = BTreeMap::new();
    let mut last = BTreeMap::new();
    for frame in file.chunks_exact(FRAME) {
        let header = VdifHeader::parse(frame).expect("a VDIF header");
        counts.entry(header.thread).or_default()[usize::from(header.invalid)] += 1;
        let time = (header.since_2000(), header.frame);
        let before = last.insert(header.thread, time);
        assert!(before.is_none_or(|before| before < time), "thread {}: {before:?} {time:?}", header.thread);
    }
    counts
}

pub(super) fn line<'a>(ended: &'a Ended, begins: &str) -> &'a str {
    ended.stdout.lines().find(|line| line.starts_with(begins)).unwrap_or_default()
}

#[test]
fn boards_with_numbers_of_their_own_are_all_recorded_and_losses_are_said_of_each() {
    for firsts in [[1000, 900_000], [0, 0]] {
        let lab = Lab::new();
        let running = lab.record(&[]);
        let http = address(&running, "http");
        let board = |at: usize| Board { address: 2 + at as u8, first: firsts[at], thread: at as u16 };
        let mut boards = boards(&lab, &[board(0), board(1)]);
        send(&mut boards, 0..3000, |at, number| at == 1 && (1000..1007).contains(&number));
        let said: Value = await_some("both senders", || {
            let said = status(http);
            let senders = said["recording"]["senders"].as_array()?;
            let all = senders.iter().all(|one| one["received_packets"].as_u64() >= Some(2990));
            (all && senders.len() > 1).then_some(said)
        });
        assert_eq!(said["recording"]["senders"].as_array().map(Vec::len), Some(2), "{said}");
        let metrics = ask(http, "GET", "/metrics", "").1;
        let label = format!("nilometer_sender_received_packets_total{{sender=\"{}\"}}", boards[1].name());
        assert!(metrics.contains(&label), "{metrics}");
        let ended = ended_after(running, 6000 - 7);
        assert_eq!(ended.code, Some(1), "seven are missing: {ended:?}");
        for (at, lost) in [(0, "none missing"), (1, "7 missing in 1 gaps")] {
            let said = line(&ended, &format!("sender      {}", boards[at].name()));
            assert!(said.contains(lost), "{ended:?}");
        }
        let expected = BTreeMap::from([(0, [3000, 0]), (1, [2993, 7])]);
        assert_eq!(frames(&lab.file()), expected, "{ended:?}");
        let scan = run(&["scan".as_ref(), lab.to.join("scan").as_os_str()]);
        let of = format!("from        {}, thread 1 of station", boards[1].name());
        assert!(line(&scan, &of).ends_with(": 7 packets did not come"), "{scan:?}");
        let verified = lab.verify();
        assert!(verified.code == Some(0) && !line(&verified, &of).is_empty(), "{verified:?}");
    }
}

#[test]
fn eight_boards_are_recorded() {
    let lab = Lab::new();
    let running = lab.record(&[]);
    let board = |at: u8| Board { address: 10 + at / 2, first: 7 * u64::from(at), thread: u16::from(at) };
    let mut boards = boards(&lab, &(0..8).map(board).collect::<Vec<_>>());
    send(&mut boards, 0..1500, |_, _| false);
    let ended = ended_after(running, 8 * 1500);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let expected: BTreeMap<_, _> = (0..8).map(|thread| (thread, [1500, 0])).collect();
    assert_eq!(frames(&lab.file()), expected);
    assert_eq!(lab.verify().code, Some(0));
}

#[test]
fn boards_that_send_to_ports_of_their_own_are_one_recording() {
    let lab = Lab::new();
    let other = free_port();
    let [first, second] = [lab.port, other].map(|port| format!("udp://127.0.0.1:{port}"));
    let running = lab.record(&["--listen", &first, "--listen", &second]);
    let board = |at: u8| Board { address: 2 + at, first: 7000 * u64::from(at), thread: u16::from(at) };
    let mut boards = boards(&lab, &[board(0), board(1)]);
    boards[1].to.1 = other;
    send(&mut boards, 0..1500, |at, number| at == 1 && (1000..1005).contains(&number));
    let ended = ended_after(running, 2 * 1500 - 5);
    assert_eq!(ended.code, Some(1), "five are missing: {ended:?}");
    let said = line(&ended, &format!("sender      {}", boards[1].name()));
    assert!(said.contains("5 missing in 1 gaps"), "{ended:?}");
    assert_eq!(frames(&lab.file()), BTreeMap::from([(0, [1500, 0]), (1, [1495, 5])]), "{ended:?}");
    assert_eq!(lab.verify().code, Some(0));
}

#[test]
fn a_board_that_stops_is_silent_and_the_recording_does_not_end_well() {
    let lab = Lab::new();
    let running = lab.record(&[]);
    let board = |at: usize| Board { address: 2 + at as u8, first: 0, thread: at as u16 };
    let mut boards = boards(&lab, &[board(0), board(1)]);
    send(&mut boards, 0..1000, |_, _| false);
    let name = boards[1].name();
    let (mut sent, silent) = (1000, format!("{name} is SILENT"));
    await_some("a line about the silent board", || {
        send(&mut boards, sent..sent + 100, |at, _| at == 1);
        sent += 100;
        running.stderr().contains(&silent).then_some(())
    });
    let ended = ended_after(running, 1000 + sent);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains(&format!("{name} was silent for the last")), "{ended:?}");
    assert!(
        line(&ended, &format!("sender      {name}")).contains("1000 packets, none missing; silent"),
        "{ended:?}"
    );
}

#[test]
fn a_thread_that_never_comes_is_named() {
    let lab = Lab::new();
    let path = lab.directory.path().join("telescope.toml");
    let text = fs::read_to_string(&path).expect("it was written");
    let text =
        text.replace("[packets.format.vdif]", "serial = \"none\"\n[packets.format.vdif]\nthreads = [0, 1]");
    fs::write(&path, text).expect("space");
    let mut running = lab.record(&[]);
    let mut only = Sending::new(Board { address: 2, first: 0, thread: 0 }, &lab);
    // Without a serial number.
    let mut send = |number: u64| {
        let frame = {
            let mut header = VdifHeader::parse(&only.frame).expect("a VDIF header");
            let begun = header.since_2000() - u64::from(header.second);
            header.second = (BEGINS + number / 1000 - begun) as u32;
            header.frame = (number % 1000) as u32;
            header.thread = 0;
            header.write(&mut only.frame);
            only.frame.clone()
        };
        only.socket.send_to(&frame, only.to).expect("loopback takes it");
        std::thread::sleep(std::time::Duration::from_micros(500));
    };
    (0..3000).for_each(&mut send);
    running.await_said("thread 1 of station");
    let ended = ended_after(running, 3000);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(line(&ended, "thread      1 of station").contains("0 frames came"), "{ended:?}");
    assert!(ended.stderr.contains("thread 1 of station") && ended.stderr.contains("never came"), "{ended:?}");
    let scan = run(&["scan".as_ref(), lab.to.join("scan").as_os_str()]);
    assert!(scan.stdout.lines().any(|line| line.starts_with("from        thread 1 of station")), "{scan:?}");
}
