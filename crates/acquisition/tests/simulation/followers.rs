//! Readers that follow a recording on the same virtual clock as the recorder.

use std::sync::{Arc, atomic::AtomicBool};

use nilometer_acquisition::{
    Follower, Following, Purpose, Writer, ring_of,
    sink::{Gauge, LaneFiles},
};
use nilometer_intake::Expected;
use nilometer_model::{ByteRate, Format, Nanos, Seed, Storing};
use nilometer_recording::{
    instrument::{Content, Pattern},
    reader::Trust,
};
use nilometer_ring::{Chronicle, FrameTurn};
use nilometer_storage::{
    Arena, Completion, Engine, Errno, OpKind, Step, Wait, Workload,
    clock::VirtualClock,
    testing::wrap::{FaultEffect, Faulty, Rule, When},
    testing::{Cost, Device, Simulated},
};

use crate::lab::{Beside, Lab, PAGE, Run};

/// Pages are read and written at 4 GB/s, one at a time.
fn device() -> Device {
    let cost = Cost { base: Nanos(100), picoseconds_per_byte: 250 };
    Device { write: cost, read: cost, ..Device::default() }
}

fn lab() -> Lab {
    let devices = vec![device()];
    Lab { frames: 2000, period: Nanos(10_000), frames_per_file: 100, devices, ..Lab::default() }
}

#[test]
fn one_file_and_compressed_ones_are_followed_too() {
    let many = lab().frames_per_file;
    for (storing, format, writers, frames_per_file) in [
        (Storing::Growing, Format::Raw, 1, many),
        (Storing::Shared, Format::Raw, 2, many),
        (Storing::Files, Format::Cbf, 2, 1),
        (Storing::Positions, Format::Cbf, 2, 1),
    ] {
        let lab = Lab { frames_per_file, storing, format, writers, ..lab() };
        let clock = VirtualClock::default();
        let targets = lab.targets(&clock);
        let mut follower = follower(
            &lab,
            Purpose::Check(Expected::Frames(Content::Pattern(lab.pattern()))),
            Following::default(),
        );
        let mut engine = targets[0].attach(1, Follower::slots(writers as u32));
        let run = lab.run_beside(&clock, targets, Nanos::MAX, &mut [(&mut follower, &mut engine)]);
        let totals = follower.totals();
        assert_eq!((run.ring.books().lost(), totals.frames), (0, 2000), "{storing:?} {format:?}: {totals:?}");
        assert_eq!(
            (totals.wrong, totals.missed, totals.failed),
            (0, 0, 0),
            "{storing:?} {format:?}: {totals:?}"
        );
    }
}

/// A disk with five writers of chunks, of which two fail.
fn failing_writers() -> Lab {
    fn wrap(inner: Box<dyn Engine>) -> Box<dyn Engine> {
        use std::sync::atomic::{AtomicU64, Ordering};
        static MADE: AtomicU64 = AtomicU64::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let rule = Rule {
            on: Some(OpKind::Write),
            when: When::FromNth(if made % 5 < 2 { 50 + made % 97 } else { u64::MAX }),
            effect: FaultEffect::Error(Errno::EIO),
        };
        Box::new(Faulty::new(inner, &[rule], Seed(1)))
    }
    let device = Device { parallel: 3, metadata: Cost::fixed(Nanos(20_000)), ..device() };
    Lab {
        storing: Storing::Scattered,
        writers: 5,
        frames_per_file: 7,
        period: Nanos(1000),
        frames: 1000,
        devices: vec![device],
        wrap,
        ..lab()
    }
}

#[test]
fn chunks_are_followed_while_they_are_renamed() {
    let mut renamed = 0;
    for _ in 0..40 {
        let lab = failing_writers();
        let clock = VirtualClock::default();
        let targets = lab.targets(&clock);
        let content = Purpose::Check(Expected::Frames(Content::Pattern(lab.pattern())));
        let over = Arc::new(AtomicBool::new(false));
        let lanes = (0..5).map(|lane| lab.layout(lane)).collect();
        let mut follower = Follower::new(lanes, content, Following::default(), over.clone());
        let mut engine = targets[0].attach(1, Follower::slots(5));
        // Lanes that failed have no end in their journals.
        let mut clockwork = Until(Nanos(20_000_000), over);
        let mut idle = targets[0].attach(1, 1);
        let mut beside: [Beside<'_>; 2] = [(&mut follower, &mut engine), (&mut clockwork, &mut idle)];
        let run = lab.run_beside(&clock, targets, Nanos::MAX, &mut beside);
        let (index, totals) = (run.index(Trust::Acknowledged), follower.totals());
        renamed += index.chunks.values().filter(|names| names.before.is_some()).count();
        assert_eq!((run.ring.books().lost(), totals.frames), (0, 1000), "{totals:?}");
        assert_eq!((totals.wrong, totals.missed, totals.failed), (0, 0, 0), "{totals:?}");
    }
    assert!(renamed > 20, "only {renamed} chunks were renamed");
}

/// Ends others at a time.
struct Until(Nanos, Arc<AtomicBool>);

impl Workload for Until {
    fn next(&mut self, now: Nanos) -> Step {
        if now < self.0 {
            return Step::Wait(Wait::Until(self.0));
        }
        self.1.store(true, std::sync::atomic::Ordering::Relaxed);
        Step::Done
    }

    fn completed(&mut self, _: Completion) {
        unreachable!("it does nothing");
    }
}

fn follower(lab: &Lab, purpose: Purpose, following: Following) -> Follower {
    let lanes = (0..(lab.devices.len() * lab.writers) as u32).map(|lane| lab.layout(lane)).collect();
    Follower::new(lanes, purpose, following, Arc::new(AtomicBool::new(false)))
}

/// Records, with a follower that checks against these frames.
fn followed(lab: &Lab, content: Pattern, following: Following) -> (Run, Follower) {
    let clock = VirtualClock::default();
    let targets = lab.targets(&clock);
    let mut follower = follower(lab, Purpose::Check(Expected::Frames(Content::Pattern(content))), following);
    let mut engine = targets[0].attach(1, Follower::slots(1));
    let run = lab.run_beside(&clock, targets, Nanos::MAX, &mut [(&mut follower, &mut engine)]);
    (run, follower)
}

#[test]
fn a_follower_reads_every_frame_at_its_distance() {
    for distance in [0, 3_000_000] {
        let lab = lab();
        let following = Following { distance: Nanos(distance), ..Following::default() };
        let (run, follower) = followed(&lab, lab.pattern(), following);
        let totals = follower.totals();
        assert_eq!((run.ring.books().lost(), totals.frames, totals.wrong, totals.missed), (0, 2000, 0, 0));
        assert_eq!((totals.bytes, totals.failed), (2000 * PAGE, 0));
        let (least, most) = (follower.late().quantile(0.0), follower.late().quantile(1.0));
        // Journals are looked at every 2 ms.
        assert!(least >= distance * 31 / 32, "{least} ns after it was due");
        assert!(most < distance + 3_000_000, "{most} ns after it was due");
    }
}

#[test]
fn what_the_instrument_did_not_deliver_is_wrong() {
    let lab = lab();
    let (_, follower) = followed(&lab, Pattern::new(Seed(6), PAGE as usize), Following::default());
    assert_eq!((follower.totals().frames, follower.totals().wrong), (0, 2000));
}

#[test]
fn a_follower_that_is_too_slow_misses_what_is_removed() {
    let lab = Lab { keep: Some(2), ..lab() };
    let rate = ByteRate(PAGE as f64 / 40e-6);
    let (run, follower) = followed(&lab, lab.pattern(), Following::default().at_most(rate, PAGE));
    let totals = follower.totals();
    assert_eq!((run.ring.books().lost(), totals.wrong, totals.failed), (0, 0, 0));
    assert_eq!(totals.frames + totals.missed, 2000, "{totals:?}");
    // At a fourth of the pace it reads a fourth while the recording goes on, and what is kept after it.
    assert!((500..=700).contains(&totals.frames), "{totals:?}");
}

#[test]
fn a_follower_costs_the_writer_what_the_device_gives_it() {
    let lab = lab();
    let longest = |run: &Run| run.lanes[0].longest;
    let alone = longest(&lab.run(Nanos::MAX));
    let (run, follower) = followed(&lab, lab.pattern(), Following::default());
    assert_eq!(follower.totals().frames, 2000);
    assert!(longest(&run) > alone, "{} beside a reader, {alone} alone", longest(&run));
}

#[test]
fn a_copy_is_a_recording_with_every_frame() {
    for storing in [Storing::Files, Storing::Growing, Storing::Shared, Storing::Scattered] {
        copied(&Lab { storing, ..lab() });
    }
}

/// Records on one target, and copies it to another meanwhile.
fn copied(lab: &Lab) {
    let clock = VirtualClock::default();
    let (targets, second) = (lab.targets(&clock), Simulated::new(device(), clock.clone()));
    let (_, slots) = Arena::shared_out(8, PAGE as usize);
    let sink = LaneFiles::new(lab.layout(0), Gauge::with_reserve(0));
    let ring = ring_of(sink.needs(), slots, 1, Chronicle::new(PAGE, Nanos::from_millis(10)), FrameTurn::ALL);
    let mut follower = follower(lab, Purpose::Copy(ring.clone()), Following::default());
    let mut reading = targets[0].attach(1, Follower::slots(1));
    ring.seat_source(reading.waker());
    let mut writing = second.attach(2, 8);
    ring.seat_writer(0, writing.waker());
    let mut writer = Writer::new(ring.clone(), 0, sink);
    let mut beside: [Beside<'_>; 2] = [(&mut follower, &mut reading), (&mut writer, &mut writing)];
    let run = lab.run_beside(&clock, targets, Nanos::MAX, &mut beside);
    let copy = Run { targets: vec![second], ..run };
    let index = copy.index(Trust::Durable);
    let whole = (index.frames.len(), index.missing(), index.due);
    assert_eq!(whole, (2000, vec![], Some(2000)), "{:?}", lab.storing);
    assert_eq!(copy.wrong(&index, &lab.pattern()), Vec::<u64>::new(), "{:?}", lab.storing);
    assert!(follower.totals().copies);
}
