//! A recorder that gets little processor time, or none for a while: each packet that came is recorded or counted with its
//! true cause, none is taken for a forged one, and memory stays in its account.

use std::{fs, thread, time::Duration};

use nilometer_intake::transport::StreamCourse;
use nilometer_tests::{ProcessorQuota, Running, address, await_packets, await_some, status};
use rustix::process::{Signal, kill_process};

use crate::record::{FRAME, LIMIT, Lab, count, ended_after, faults::Gun};

/// Packets that leave together, and how often.
pub(super) const BURST: u64 = 50;
pub(super) const EVERY: Duration = Duration::from_millis(2);
/// Packets behind the overload, which show what is missing before them.
pub(super) const TAIL: u64 = 200;
/// Growth of the worker's memory beside its buffer: packets that are kept elsewhere take an eighth of the buffer at most.
pub(super) const GROWTH: u64 = 40 << 20;

/// Sends these packets of the stream, always from the same port.
fn send(lab: &Lab, gun: &Gun, numbers: std::ops::Range<u64>, every: Duration) {
    let mut flow = lab.flow(StreamCourse::default(), 1);
    for number in numbers {
        let made = flow.make(number);
        let packet = flow.packet(made);
        gun.send(&[packet.prefix, packet.body].concat());
        if number % BURST == 0 {
            thread::sleep(every);
        }
    }
}

pub(super) fn resident_bytes(running: &Running) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/status", running.worker().as_raw_nonzero()));
    let text = text.expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// The packets that found no room, in the kernel or in the buffer.
fn found_no_room(ended: &nilometer_tests::Ended) -> u64 {
    let line = ended.stdout.lines().find(|line| line.starts_with("missing")).unwrap_or_default();
    let causes = line.split([',', ';']).filter_map(|cause| cause.trim().split_once(" found "));
    causes.filter_map(|(packets, _)| packets.parse::<u64>().ok()).sum()
}

/// Asserts that all of this many packets are in the recording or counted as lost.
pub(super) fn assert_accounted(ended: &nilometer_tests::Ended, packets: u64) {
    let (recorded, missing) = (count(ended, "recorded", "packets"), count(ended, "missing", "packets"));
    assert_eq!(recorded + missing, packets, "{ended:?}");
    assert!(!ended.stdout.contains("far from all others"), "{ended:?}");
    assert!(!ended.stdout.contains("jumps  ") && !ended.stdout.contains("restarts"), "{ended:?}");
    let known = found_no_room(ended) + count(ended, "missing", "came");
    assert!(known >= missing, "the kernel or the buffer had no room: {ended:?}");
}

#[test]
fn a_recorder_without_processor_time_refuses_no_packet_of_its_only_sender() {
    for share in [2, 5, 20] {
        let lab = Lab::new();
        let running = lab.record(&["--receive-buffer", "4 MiB"]);
        let http = address(&running, "http");
        let gun = Gun::new([127, 0, 0, 1], &lab);
        send(&lab, &gun, 0..500, EVERY);
        let before = resident_bytes(&running);
        let processes = [running.process(), running.worker().as_raw_nonzero().get().cast_unsigned()];
        let Some(quota) = ProcessorQuota::percent(share, &processes) else { return };
        send(&lab, &gun, 500..60_000, EVERY);
        quota.lift();
        await_packets(http, 60_000);
        send(&lab, &gun, 60_000..60_000 + TAIL, EVERY);
        await_packets(http, 60_000 + TAIL);
        let after = resident_bytes(&running);
        running.signal(Signal::TERM);
        let ended = running.end(LIMIT);
        assert_accounted(&ended, 60_000 + TAIL);
        assert!(after <= before + GROWTH + (64 << 20), "{before} bytes before, {after} after");
        if share == 2 {
            assert!(count(&ended, "missing", "packets") > 1000, "the test starves it: {ended:?}");
            assert_eq!(ended.code, Some(1), "{ended:?}");
        }
        drop(quota);
    }
}

#[test]
fn a_recorder_that_was_stopped_says_so_and_counts_what_the_kernel_dropped() {
    let lab = Lab::new();
    let running = lab.record(&["--receive-buffer", "4 MiB"]);
    let http = address(&running, "http");
    let gun = Gun::new([127, 0, 0, 1], &lab);
    send(&lab, &gun, 0..500, EVERY);
    let worker = running.worker();
    for (from, to) in [(500, 20_000), (20_000, 40_000)] {
        kill_process(worker, Signal::STOP).expect("it runs");
        send(&lab, &gun, from..to - 2000, EVERY);
        kill_process(worker, Signal::CONT).expect("it is there");
        send(&lab, &gun, to - 2000..to, EVERY);
    }
    await_packets(http, 40_000);
    send(&lab, &gun, 40_000..40_000 + TAIL, EVERY);
    let said = await_some("a halt", || {
        let said = status(http);
        (said["recording"]["ring"]["halts"].as_u64()? >= 2).then_some(said)
    });
    assert!(said["recording"]["ring"]["longest_halt_seconds"].as_f64().expect("a time") > 0.1, "{said}");
    let ended = ended_after(running, 40_000 + TAIL);
    assert_accounted(&ended, 40_000 + TAIL);
    assert!(count(&ended, "missing", "packets") > 1000, "{ended:?}");
    assert!(ended.stdout.contains("the recorder itself did not run"), "{ended:?}");
    assert_eq!(lab.file().len() % FRAME, 0);
}
