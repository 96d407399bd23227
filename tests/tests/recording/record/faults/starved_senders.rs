//! Several senders at one port of a recorder that gets little processor time, or none for a while: each packet is
//! recorded or counted as missing for its own sender, with its true cause, and memory stays in its account.

use std::{ops::Range, thread};

use nilometer_tests::{Ended, ProcessorQuota, Running, address, await_packets};
use rustix::process::{Signal, kill_process};

use crate::record::{
    LIMIT, Lab, count, ended_after,
    faults::{
        senders::{Board, Sending, boards, line},
        starved::{BURST, EVERY, GROWTH, TAIL, assert_accounted, resident_bytes},
    },
};

/// Packets of all senders together, before those that show what is missing.
const PACKETS: u64 = 48_000;
/// Packets of each sender before the overload: the recorder knows all senders then.
const BEFORE: u64 = 200;

/// A recorder and its senders, each with numbers of its own.
struct CrowdedPort {
    lab: Lab,
    boards: Vec<Sending>,
}

impl CrowdedPort {
    fn new(senders: u8) -> Self {
        let lab = Lab::new();
        let board = |at: u8| Board { address: 2 + at, first: 1_000_000 * u64::from(at), thread: at.into() };
        let boards = boards(&lab, &(0..senders).map(board).collect::<Vec<_>>());
        CrowdedPort { lab, boards }
    }

    fn record(&self, options: &[&str]) -> Running {
        self.lab.record(&[&["--receive-buffer", "4 MiB"], options].concat())
    }

    fn senders(&self) -> u64 {
        self.boards.len() as u64
    }

    /// Packets of each sender up to its tail.
    fn each(&self) -> u64 {
        PACKETS / self.senders()
    }

    /// Packets of each sender behind an overload. All of them fit into the socket buffer.
    fn tail(&self) -> u64 {
        TAIL / self.senders()
    }

    /// Sends these packets of all senders in turn.
    fn send(&mut self, numbers: Range<u64>) {
        let senders = self.senders();
        for number in numbers {
            for board in &mut self.boards {
                board.send(number);
            }
            if number % (BURST / senders) == 0 {
                thread::sleep(EVERY);
            }
        }
    }

    /// Asserts that the packets of each sender are recorded or counted as missing, and that no sender's numbers
    /// were taken for forged or restarted ones.
    fn assert_each_accounted(&self, ended: &Ended, packets: u64) {
        assert_accounted(ended, self.senders() * packets);
        let mut missing = 0;
        for board in &self.boards {
            let said = line(ended, &format!("sender      {}: ", board.name()));
            let counts: Vec<u64> = said.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
            let lost = if said.contains("none missing") { 0 } else { counts[1] };
            assert_eq!(counts[0] + lost, packets, "{said}: {ended:?}");
            assert!(!said.contains("restarts"), "{ended:?}");
            missing += lost;
        }
        assert_eq!(missing, count(ended, "missing", "packets"), "{ended:?}");
    }
}

/// Starves a recorder of some senders to this share of a processor.
fn starves(senders: u8, share: u64, options: &[&str]) {
    let mut port = CrowdedPort::new(senders);
    let running = port.record(options);
    let http = address(&running, "http");
    port.send(0..BEFORE);
    let before = resident_bytes(&running);
    let processes = [running.process(), running.worker().as_raw_nonzero().get().cast_unsigned()];
    let Some(quota) = ProcessorQuota::percent(share, &processes) else { return };
    port.send(BEFORE..port.each());
    quota.lift();
    await_packets(http, port.each() * port.senders());
    let packets = port.each() + port.tail();
    port.send(port.each()..packets);
    await_packets(http, packets * port.senders());
    let after = resident_bytes(&running);
    running.signal(Signal::TERM);
    let ended = running.end(LIMIT);
    port.assert_each_accounted(&ended, packets);
    assert!(after <= before + GROWTH + (64 << 20), "{before} bytes before, {after} after");
    if share == 2 {
        assert!(count(&ended, "missing", "packets") > 1000, "the test starves it: {ended:?}");
        assert_eq!(ended.code, Some(1), "{ended:?}");
    }
    drop(quota);
}

#[test]
fn a_recorder_without_processor_time_counts_the_losses_of_each_sender() {
    for (senders, share) in [(2, 2), (2, 20), (4, 5), (8, 2), (8, 5)] {
        starves(senders, share, &[]);
    }
}

#[test]
fn so_does_one_with_several_threads_that_receive() {
    for senders in [2, 8] {
        starves(senders, 2, &["--receive-threads", "2"]);
    }
}

#[test]
fn a_recorder_of_several_senders_that_was_stopped_counts_the_losses_of_each() {
    for senders in [2, 8] {
        let mut port = CrowdedPort::new(senders);
        let running = port.record(&[]);
        let http = address(&running, "http");
        port.send(0..BEFORE);
        let worker = running.worker();
        let half = port.each() / 2;
        let quiet = half / 10;
        for (from, to) in [(BEFORE, half), (half, 2 * half)] {
            kill_process(worker, Signal::STOP).expect("it runs");
            port.send(from..to - quiet);
            kill_process(worker, Signal::CONT).expect("it is there");
            port.send(to - quiet..to);
        }
        await_packets(http, port.each() * port.senders());
        let packets = port.each() + port.tail();
        port.send(port.each()..packets);
        let ended = ended_after(running, packets * port.senders());
        port.assert_each_accounted(&ended, packets);
        assert!(count(&ended, "missing", "packets") > 1000, "{ended:?}");
        assert!(ended.stdout.contains("the recorder itself did not run"), "{ended:?}");
        assert_eq!(ended.code, Some(1), "{ended:?}");
    }
}
