//! The searches for limits carried out with the recorder on the virtual clock, against what theory says.
//!
//! A lane serves one frame after the other, each in the same time s, and stands still once, from a to a + S. A frame is due
//! each p >= s, frame k at k p. Before the stall a slot is in use for s. Let j be the first frame that is not served at a:
//! the first k with k p + s > a. If it has begun, j p < a, it is done at f = j p + s + S; else at
//! f = max(a + S, j p) + s. Until then no slot comes back, and the frames j, j + 1, ... that are due before f need one each:
//! their number is ceil(f / p) - j. After that a slot comes back each s and at most one frame is due meanwhile, since s <= p,
//! so it never needs more. A frame is lost if and only if that is more than there are slots.

use nilometer_model::{ByteRate, Nanos, Seed};
use nilometer_plan::search::{
    Advice, BufferLimit, BufferSearch, BufferTrial, RateSearch, RateTrial, SearchEnd,
};
use nilometer_storage::testing::{Cost, Device};

use crate::lab::{Lab, PAGE, Run};

/// A frame and its record in the journal, in bytes.
const WRITTEN: u64 = PAGE + nilometer_recording::journal::RECORD as u64;

/// A target that stands still once.
#[derive(Debug, Clone, Copy)]
struct Stalling {
    nanos_per_byte: u64,
    from: u64,
    stall: u64,
    frames: u64,
}

impl Stalling {
    fn random(seed: u64) -> Self {
        let mut stream = Seed(seed).named("limits").stream();
        let nanos_per_byte = 1 + stream.below(3);
        let serving = nanos_per_byte * WRITTEN;
        let from = serving * (50 + stream.below(50)) + stream.below(serving);
        Stalling { nanos_per_byte, from, stall: serving * (5 + stream.below(200)), frames: 1500 }
    }

    /// The time of a frame, s.
    fn serving(&self) -> u64 {
        self.nanos_per_byte * WRITTEN
    }

    /// Slots that are needed with a frame each `period`, which is not shorter than a frame takes.
    fn needs(&self, period: u64) -> u64 {
        let (serving, end) = (self.serving(), self.from + self.stall);
        let first = (self.from + 1).saturating_sub(serving).div_ceil(period);
        let due = first * period;
        let freed = if due < self.from { due + serving + self.stall } else { end.max(due) + serving };
        freed.div_ceil(period) - first
    }

    fn run(&self, period: u64, slots: u64) -> Run {
        let write = Cost { base: Nanos(0), picoseconds_per_byte: 1000 * self.nanos_per_byte };
        let stalls = vec![(Nanos(self.from), Nanos(self.from + self.stall))];
        let device = Device { write, stalls, hollow: true, ..Device::default() };
        let lab = Lab {
            frames: self.frames,
            period: Nanos(period),
            slots: slots as usize,
            devices: vec![device],
            ..Lab::default()
        };
        lab.run(Nanos::MAX)
    }
}

fn ended(run: &Run) -> SearchEnd {
    if run.ring.books().lost() > 0 { SearchEnd::Lost } else { SearchEnd::Carried }
}

/// A frame a period at this rate.
fn period(rate: ByteRate) -> u64 {
    Nanos::from_seconds(PAGE as f64 / rate.0).0
}

fn search_rate(target: &Stalling, slots: u64) -> (ByteRate, ByteRate) {
    let most = ByteRate::of(PAGE, Nanos(target.serving()));
    let search = RateSearch {
        grid: 0.01,
        ..RateSearch::new(most, ByteRate(most.0 / 200.0), ByteRate(most.0 * 2.0), Nanos(1_000_000))
    };
    let mut trials = Vec::new();
    loop {
        match search.advise(&trials) {
            Advice::Next(rate) => {
                trials.push(RateTrial { rate, ended: ended(&target.run(period(rate), slots)) });
            }
            Advice::Found(limit) => {
                return (limit.carried.expect("in bounds"), limit.lost.expect("in bounds"));
            }
        }
    }
}

fn search_buffer(target: &Stalling, period: u64) -> BufferLimit {
    let (search, mut trials) = (BufferSearch { most: 2000, parts: 1 }, Vec::new());
    loop {
        match search.advise(&trials) {
            Advice::Next(slots) => {
                let run = target.run(period, slots);
                let high = run.ring.books().high as u64;
                trials.push(BufferTrial { slots, high, ended: ended(&run) });
            }
            Advice::Found(limit) => return limit,
        }
    }
}

fn seeds() -> u64 {
    if std::env::var_os("NILOMETER_LONG").is_some() { 1000 } else { 20 }
}

#[test]
fn the_highest_rate_is_the_one_that_theory_gives() {
    for seed in 0..seeds() {
        let target = Stalling::random(seed);
        let slots = 3 + Seed(seed).named("slots").stream().below(target.stall / target.serving());
        let (carried, lost) = search_rate(&target, slots);
        let case = format!("seed {seed}: {target:?} with {slots} slots, {carried} to {lost}");
        assert!(
            target.needs(period(carried)) <= slots,
            "{case}: {} are needed",
            target.needs(period(carried))
        );
        // Where the stall needs all slots at the rate of the target itself, frames above that rate pile up and are lost.
        let piles_up = period(lost) < target.serving();
        assert!(
            piles_up || target.needs(period(lost)) > slots,
            "{case}: {} are needed",
            target.needs(period(lost))
        );
        // As long as the buffer is larger than a few frames: slots / (S + s).
        let limit = slots as f64 * PAGE as f64 * 1e9 / (target.stall + target.serving()) as f64;
        assert!(
            carried.0 / limit < 1.0 + 2.0 / slots as f64 && lost.0 / limit > 1.0 - 2.0 / slots as f64,
            "{case}: {limit}"
        );
    }
}

#[test]
fn without_stalls_the_highest_rate_is_that_of_the_target_and_what_the_buffer_adds() {
    // Frame n - 1 is due at (n - 1) p; floor((n - 1) p / s) are done by then. With n of them no more than B may be left:
    // n <= B + (n - 1) p / s, so that 1 / p <= (n - 1) / (n - B) / s.
    let target = Stalling { nanos_per_byte: 2, from: 0, stall: 0, frames: 1500 };
    for slots in [2, 20, 150] {
        let (carried, lost) = search_rate(&target, slots);
        let limit = 1499.0 / (1500 - slots) as f64 * PAGE as f64 * 1e9 / target.serving() as f64;
        assert!(
            carried.0 <= limit * 1.001 && limit < lost.0 * 1.001,
            "{slots} slots: {carried} to {lost}, not {limit}"
        );
    }
}

#[test]
fn the_smallest_buffer_is_the_one_that_theory_gives() {
    for seed in 0..seeds() {
        let target = Stalling::random(seed);
        let period = target.serving() * (101 + Seed(seed).named("period").stream().below(200)) / 100;
        let limit = search_buffer(&target, period);
        let needs = target.needs(period);
        assert_eq!(
            (limit.enough, limit.lost, limit.high),
            (Some(needs), None, needs),
            "seed {seed}: {target:?}"
        );
        assert_eq!(ended(&target.run(period, needs - 1)), SearchEnd::Lost, "seed {seed}: one slot fewer");
    }
}
