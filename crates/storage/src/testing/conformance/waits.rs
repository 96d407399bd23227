//! Waiting and waking: the rules for `reap` over time.

use std::{sync::Arc, time::Duration};

use nilometer_model::Nanos;

use super::checked::{Check, Checked};
use crate::{Arena, Engine, OpKind, Operation, ROOT, Wait};

/// The checks, each for an engine with one slot besides the directory's.
pub(super) const ALL: [Check; 5] = [
    (polling_never_waits, &[]),
    (a_wake_is_not_lost, &[]),
    (a_wake_comes_from_any_thread, &[]),
    (waiting_ends_in_time, &[]),
    (memory_can_be_registered, &[]),
];

/// Tries before the test fails: more than any loaded machine needs for an answer.
const PATIENCE: u32 = 1_000_000;

fn reaped(engine: &mut dyn Engine, wait: Wait) -> usize {
    let mut done = Vec::new();
    engine.reap(wait, &mut done);
    done.len()
}

/// Returns true if the engine runs in virtual time. Call it while nothing is in flight, because a wrapper on
/// a real clock may know when it will issue an operation.
fn is_virtual(engine: &dyn Engine) -> bool {
    engine.waker().wake();
    engine.next_event().is_some()
}

fn polling_never_waits(engine: &mut Checked) {
    let engine = engine.engine.as_mut();
    for _ in 0..1000 {
        assert_eq!(reaped(engine, Wait::Poll), 0, "nothing was submitted");
    }
    let is_virtual = is_virtual(engine);
    let mut buffers = Arena::shared_out(engine.depth(), 16).1;
    let mut polls = 0;
    let in_flight = buffers.len();
    for buffer in buffers.drain(..) {
        engine.submit(Operation::on(OpKind::Sync, ROOT, buffer), Nanos(0));
    }
    let mut done = 0;
    let begin = engine.tick();
    while done < in_flight && polls < 100 {
        done += reaped(engine, Wait::Poll);
        polls += 1;
    }
    if is_virtual {
        assert_eq!(engine.tick(), begin, "polling moved the virtual time");
    }
    while done < in_flight {
        done += reaped(engine, Wait::ForOne);
    }
}

fn a_wake_is_not_lost(engine: &mut Checked) {
    let engine = engine.engine.as_mut();
    let waker = engine.waker();
    for _ in 0..10 {
        waker.wake();
        // This would hang, or panic in virtual time, if an earlier wake were lost.
        assert_eq!(reaped(engine, Wait::News), 0, "a wake is no completion");
    }
    waker.wake();
    waker.wake();
    let far = Nanos(engine.tick().0 + Nanos::from_millis(60_000).0);
    assert_eq!(reaped(engine, Wait::Until(far)), 0, "a wake is no completion");
    assert!(engine.tick() < far, "a wake did not end the wait for a time");
}

fn a_wake_comes_from_any_thread(engine: &mut Checked) {
    let engine = engine.engine.as_mut();
    if is_virtual(engine) {
        return;
    }
    reaped(engine, Wait::News);
    let waker = engine.waker();
    let far = Nanos(engine.tick().0 + Nanos::from_millis(60_000).0);
    std::thread::scope(|scope| {
        for wait in [Wait::News, Wait::Until(far)] {
            let waker = Arc::clone(&waker);
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                waker.wake();
            });
            assert_eq!(reaped(engine, wait), 0, "a wake is no completion");
        }
    });
    assert!(engine.tick() < far, "a wake did not end the wait for a time");
}

fn waiting_ends_in_time(engine: &mut Checked) {
    let engine = engine.engine.as_mut();
    let past = engine.tick();
    assert_eq!(reaped(engine, Wait::Until(past)), 0, "waiting for the past");
    let time = past + Nanos::from_millis(3);
    for _ in 0..PATIENCE {
        if engine.now() >= time {
            break;
        }
        assert_eq!(reaped(engine, Wait::Until(time)), 0, "nothing was submitted");
    }
    assert!(engine.now() >= time, "a wait for a time never ends");
    let late = engine.now().since(time);
    assert!(late < Nanos::from_millis(5_000), "a wait for a time ended {late:?} late");
    assert_eq!(reaped(engine, Wait::ForOne), 0, "with nothing in flight there is nothing to wait for");
}

fn memory_can_be_registered(engine: &mut Checked) {
    let (first, mut buffers) = Arena::shared_out(2, 4096);
    let (second, more) = Arena::shared_out(1, 100);
    for arena in [&first, &second] {
        engine.engine.register(arena).expect("memory can be registered, several times");
    }
    buffers.extend(more);
    for buffer in buffers {
        let stat = Operation::named(OpKind::Stat, ROOT, ROOT, b".", buffer);
        engine.run(stat).0.expect("registered memory can be used");
    }
}
