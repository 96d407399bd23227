//! Small frames through the recorder's ring to a lane that stores nothing, beside a bare copy of the same frames:
//! what the ring costs.
//!
//! Our source copies each frame from memory into a slot, as a receiver would; the lane gives it back. The bare loop
//! copies the same frame into as many slots in turn, which all fit into the processor's cache: nothing is easier.

use std::{
    hint::black_box,
    sync::{Arc, atomic::AtomicBool},
    thread,
};

use anyhow::Context;
use nilometer_model::Nanos;
use nilometer_ring::{Chronicle, Delivery, Pace, Ring, Source};
use nilometer_storage::{Arena, Buffer, Clock, Drive, Engine, engine::Null};

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    discarded::DiscardingLane,
    measure,
};

const FRAME: usize = 16 << 10;
const SLOTS: usize = 64;
/// How long frames come in a round.
const DURATION: Nanos = Nanos::from_millis(300);

const BARE: &str = "bare copy, one thread";
const OURS: &str = "nilometer, source and lane on threads";

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let frame: Vec<u8> = (0..FRAME).map(|index| (index * 7) as u8).collect();
    let contest = Contest {
        title: "ring: frames of 16 KiB that a lane discards".into(),
        quantity: Quantity::WallPerFrame,
        phases: &["record"],
        rounds: 21,
        contestants: vec![Contestant::new(BARE, || bare(&frame)), Contestant::new(OURS, || recorded(&frame))],
        // 80 % of the rate is 1.25 times the time.
        bounds: vec![Bound { subject: OURS, peer: BARE, limit: Limit::Times(1.25) }],
    };
    contest.run(stop)
}

/// Slots whose pages are there.
fn slots() -> Vec<Buffer> {
    let mut slots = Arena::shared_out(SLOTS, FRAME).1;
    for slot in &mut slots {
        slot.fill(1);
    }
    slots
}

fn bare(frame: &[u8]) -> anyhow::Result<Vec<Cost>> {
    let (mut slots, mut count) = (slots(), 0_u64);
    let clock = Clock::start();
    let mut cost = measure::here(1.0, || {
        while clock.now() < DURATION {
            for slot in &mut slots {
                slot.copy_from_slice(black_box(frame));
                black_box(&slot);
            }
            count += SLOTS as u64;
        }
        Ok(())
    })?;
    cost.amount = count as f64;
    Ok(vec![cost])
}

fn recorded(frame: &[u8]) -> anyhow::Result<Vec<Cost>> {
    let (ring, clock, frame) = (
        Ring::new(slots(), 1, Chronicle::new(FRAME as u64, Nanos::from_millis(10))),
        Clock::start(),
        frame.to_vec(),
    );
    let mut stored = 0;
    let mut cost = measure::here(1.0, || {
        let taking = thread::spawn({
            let ring = ring.clone();
            move || take(&ring, clock)
        });
        let mut engine = Null::new(1, clock);
        ring.seat_source(engine.waker());
        let fill = Box::new(move |_, slot: &mut [u8]| slot.copy_from_slice(&frame));
        let delivery = Delivery::lasting(Pace::AsTaken, DURATION);
        let mut source = Source::new(ring.clone(), delivery, Arc::new(AtomicBool::new(false)), fill);
        Drive::new(&mut source, &mut engine).run(|_| {});
        stored = taking.join().ok().context("the lane panicked")?;
        anyhow::ensure!(stored == source.due(), "{stored} of {} frames came back", source.due());
        Ok(())
    })?;
    cost.amount = stored as f64;
    Ok(vec![cost])
}

fn take(ring: &Arc<Ring>, clock: Clock) -> u64 {
    let mut engine = Null::new(1, clock);
    ring.seat_writer(0, engine.waker());
    let mut lane = DiscardingLane::new(ring.clone(), clock);
    Drive::new(&mut lane, &mut engine).run(|_| {});
    lane.count
}
