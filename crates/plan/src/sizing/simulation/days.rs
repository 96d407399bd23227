//! The buffer of days in virtual time. Instruments begin and end their day; data are copied out, and deleted
//! when they may go. An event is any change of the rate at which the buffer fills.

use std::collections::VecDeque;

use nilometer_model::{Bytes, Nanos, Seed};

use super::{Agenda, Demand};

const DAY: f64 = 86_400.0;

/// Bytes that arrived within a time, at a steady rate.
#[derive(Debug, Clone, Copy)]
struct Layer {
    from: f64,
    until: f64,
    bytes: f64,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Begins(usize),
    Ends(usize),
    /// Something may be deleted, or the copy is behind: look.
    Look,
}

/// The most data in the buffer within `days` days, and the time at which the given space was full, if it was.
///
/// Every instrument's day begins at a random time of the day, or at the same time without a seed. Time starts
/// with the first instrument.
pub fn fullest(demand: &Demand, days: u64, seed: Option<Seed>) -> (Bytes, Option<Nanos>) {
    let mut buffer = BufferCapacity::new(demand);
    let mut agenda = Agenda::new();
    let shift = |at: usize| seed.map_or(0.0, |seed| seed.named("day").part(at as u64).stream().unit() * DAY);
    let first = (0..demand.kinds.len()).map(shift).fold(DAY, f64::min);
    for (at, kind) in demand.kinds.iter().enumerate() {
        for day in 0..days {
            let begins = day as f64 * DAY + shift(at) - first;
            agenda.add(begins, Event::Begins(at));
            if kind.duty < 1.0 {
                agenda.add(begins + kind.duty * DAY, Event::Ends(at));
            }
        }
    }
    // Between its own events, the simulation looks at the buffer often enough that a deletion is at most a
    // minute late.
    for minute in 0..days * 24 * 60 {
        agenda.add(minute as f64 * 60.0, Event::Look);
    }
    while let Some((now, event)) = agenda.next() {
        if now > days as f64 * DAY {
            break;
        }
        buffer.advance(now);
        match event {
            Event::Begins(at) => buffer.delivering[at] = true,
            Event::Ends(at) => buffer.delivering[at] = false,
            Event::Look => {}
        }
    }
    buffer.advance(days as f64 * DAY);
    buffer.found()
}

struct BufferCapacity<'a> {
    demand: &'a Demand,
    delivering: Vec<bool>,
    layers: VecDeque<Layer>,
    now: f64,
    there: f64,
    /// Bytes of the oldest layers that are copied and still there.
    copied: f64,
    high: f64,
    full: Option<f64>,
}

impl<'a> BufferCapacity<'a> {
    fn new(demand: &'a Demand) -> Self {
        let delivering = vec![false; demand.kinds.len()];
        let layers = VecDeque::new();
        BufferCapacity {
            demand,
            delivering,
            layers,
            now: 0.0,
            there: 0.0,
            copied: 0.0,
            high: 0.0,
            full: None,
        }
    }

    /// Lets time pass in which the same instruments deliver.
    fn advance(&mut self, now: f64) {
        let time = now - self.now;
        let kinds = self.demand.kinds.iter().zip(&self.delivering).filter(|(_, delivers)| **delivers);
        let rate: f64 = kinds.map(|(kind, _)| kind.streams as f64 * kind.written()).sum();
        self.layers.push_back(Layer { from: self.now, until: now, bytes: rate * time });
        self.there += rate * time;
        let copy = self.demand.copy_out.map_or(0.0, |rate| rate.0);
        self.copied = (self.copied + copy * time).min(self.there);
        self.now = now;
        self.delete();
        self.high = self.high.max(self.there);
        let full = self.demand.capacity.is_some_and(|space| self.there > space.0 as f64);
        if full && self.full.is_none() {
            self.full = Some(now);
        }
    }

    /// Deletes data that are old enough, and copied if there is an archive, oldest first.
    fn delete(&mut self) {
        let Demand { retention, copy_out, .. } = self.demand;
        if retention.is_none() && copy_out.is_none() {
            return;
        }
        while let Some(layer) = self.layers.front_mut() {
            let old = retention.map_or(f64::INFINITY, |retention| self.now - retention.seconds());
            let length = (layer.until - layer.from).max(f64::MIN_POSITIVE);
            let old = ((old - layer.from) / length).clamp(0.0, 1.0) * layer.bytes;
            let gone = if copy_out.is_some() { old.min(self.copied) } else { old };
            let share = if layer.bytes > 0.0 { gone / layer.bytes } else { 1.0 };
            self.there -= gone;
            self.copied = (self.copied - gone).max(0.0);
            if share < 1.0 {
                layer.from += share * (layer.until - layer.from);
                layer.bytes -= gone;
                return;
            }
            self.layers.pop_front();
        }
    }

    #[expect(clippy::cast_sign_loss, reason = "a volume is not negative")]
    fn found(&self) -> (Bytes, Option<Nanos>) {
        (Bytes(self.high as u64), self.full.map(Nanos::from_seconds))
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::{ByteRate, Schedule};
    use proptest::prelude::*;

    use super::*;
    use crate::sizing::{Figure, Kind, bytes, capacity::buffer};

    const LOOK: f64 = 61.0;

    fn kind(rate: u64, duty: f64) -> Kind {
        let schedule = Schedule::every(Nanos::from_millis(1));
        let (name, reading) = ("camera".into(), ByteRate(0.0));
        let (packing, cost) = (Figure::assumed(1.0, ""), Figure::assumed(0.5, ""));
        let frame = Bytes(rate * 1000);
        Kind {
            name,
            streams: 1,
            in_step: 1,
            frame,
            packing,
            cost,
            schedule,
            duty,
            assumed: Vec::new(),
            reading,
        }
    }

    /// For a quarter of the day 1 GB/s arrive, and 0.25 GB/s are copied all the time. At the end of each
    /// day's six hours 16.2 TB wait, and at the end of the day 0.
    #[test]
    fn what_waits_for_the_copy_is_as_reckoned() {
        let kinds = vec![kind(1000, 0.25)];
        let mut demand = Demand { kinds, copy_out: Some(ByteRate(25e7)), retention: None, capacity: None };
        let (most, full) = fullest(&demand, 4, None);
        assert!((most.0 as f64 / 16.2e12 - 1.0).abs() < 1e-6, "{most}");
        assert_eq!(full, None);
        demand.capacity = Some(Bytes(10_000_000_000_000));
        let hours = fullest(&demand, 4, Some(Seed(3))).1.expect("it is too small").seconds() / 3600.0;
        assert!((hours - 3.7037).abs() < 0.02, "{hours} h");
    }

    proptest! {
        /// The closed formula is never exceeded, and is reached if all begin at once. A space is full at the
        /// time of the formula.
        #[test]
        fn the_closed_formula_is_met(
            kinds in prop::collection::vec((1..1000_u64, 0.05..1.0_f64), 1..4), keep in prop::option::of(1..100_u64),
            copy in prop::option::of(0.5..2.0_f64), space in 0.1..1.5_f64, seed: u64,
        ) {
            let kinds: Vec<Kind> = kinds.into_iter().map(|(rate, duty)| kind(rate, duty)).collect();
            let mean: f64 = kinds.iter().map(|kind| kind.mean() * kind.duty).sum();
            let keep = keep.map(|hours| Nanos(hours * 3_600_000_000_000));
            let mut demand = Demand { kinds, copy_out: copy.map(|share| ByteRate(share * mean)), retention: keep, capacity: None };
            let late = LOOK * demand.mean().0;
            if let Some(needed) = buffer(&demand).needed.filter(|_| buffer(&demand).growth.0 == 0.0) {
                let (most, random) = (fullest(&demand, 8, None).0, fullest(&demand, 8, Some(Seed(seed))).0);
                prop_assert!((most.0 as f64 - needed.0 as f64).abs() <= late, "{most} and {needed}");
                prop_assert!(random.0 as f64 <= needed.0 as f64 + late, "{random} and {needed}");
            }
            demand.capacity = Some(bytes(space * mean * DAY));
            let reckoned = buffer(&demand).full_after.filter(|time| time.seconds() < 7.9 * DAY);
            let found = fullest(&demand, 8, None).1;
            let near = |a: Nanos, b: Nanos| a.since(b).seconds().max(b.since(a).seconds()) <= LOOK;
            let is_near = reckoned.zip(found).map_or(reckoned == found, |(reckoned, found)| near(reckoned, found));
            // If the space is close to the needed one, a late deletion fills it.
            let tight = buffer(&demand).needed.is_some_and(|needed| {
                (needed.0 as f64 - demand.capacity.map_or(0.0, |space| space.0 as f64)).abs() <= late
            });
            prop_assert!(is_near || tight, "reckoned {reckoned:?}, found {found:?}");
        }
    }
}
