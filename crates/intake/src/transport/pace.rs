//! When packets are due, how many leave in one go, and how to wait until then.

use std::{num::NonZero, thread};

use nilometer_model::{Frequency, Nanos};
use nilometer_storage::Clock;

/// Packets in even steps. When a packet is due follows from its number, so nothing adds up over hours.
#[derive(Debug, Clone, Copy)]
pub struct SendPace {
    rate: f64,
    /// Nanoseconds from one packet to the next.
    step: f64,
    /// Pauses: their length, after each this many packets.
    pauses: Option<(u64, Nanos)>,
    /// The longest time in which the packets of a burst come.
    burst: Nanos,
}

/// Unless a burst is given, packets that leave in one go last no longer than this at their own rate.
const BURST: Nanos = Nanos(100_000);

impl SendPace {
    /// A pace of `rate` packets a second, above 0.
    pub fn new(rate: Frequency) -> Self {
        assert!(rate.0 > 0.0, "a rate of zero is refused where it is read");
        SendPace { rate: rate.0, step: 1e9 / rate.0, pauses: None, burst: BURST }
    }

    /// The same pace with a pause after every `packets` packets, at least one.
    #[must_use]
    pub fn with_pauses(self, packets: u64, pause: Nanos) -> Self {
        assert!(packets > 0, "bursts of nothing are refused where they are read");
        SendPace { pauses: Some((packets, pause)), ..self }
    }

    /// The same pace, where as many packets leave in one go as come within this time.
    #[must_use]
    pub fn with_bursts_of(self, burst: Nanos) -> Self {
        SendPace { burst, ..self }
    }

    /// When packet `number` is there as a whole, from the beginning on: packet 0 after one step.
    #[inline]
    pub fn due(&self, number: u64) -> Nanos {
        let pauses = self.pauses.map_or(0, |(packets, pause)| (number / packets).saturating_mul(pause.0));
        #[expect(clippy::cast_sign_loss, reason = "neither is negative")]
        let steps = ((number + 1) as f64 * self.step + 0.5) as u64;
        Nanos(steps) + Nanos(pauses)
    }

    /// How many packets leave in one go: as many as come within 100 us, or the time of a burst that was given. At
    /// least one, and no more than `most`.
    pub fn burst(&self, most: usize) -> usize {
        #[expect(clippy::cast_sign_loss, reason = "a rate is above zero")]
        let within = (self.rate * self.burst.seconds()) as usize;
        within.clamp(1, most.max(1))
    }

    /// The end of the burst that begins with packet `first`. No burst reaches over a pause.
    #[inline]
    pub fn burst_end(&self, first: u64, burst: u64) -> u64 {
        let end = first + burst;
        self.pauses.map_or(end, |(packets, _)| end.min((first / packets + 1) * packets))
    }

    /// Number of packets due within a time.
    pub fn packets_in(&self, time: Nanos) -> u64 {
        #[expect(clippy::cast_sign_loss, reason = "a rate is above zero")]
        let evenly = |time: Nanos| (self.rate * time.seconds() * (1.0 + 1e-12)) as u64;
        let Some((packets, pause)) = self.pauses else { return evenly(time) };
        let cycle = Nanos::from_seconds(packets as f64 / self.rate) + pause;
        (time.0 / cycle.0).saturating_mul(packets) + evenly(Nanos(time.0 % cycle.0)).min(packets)
    }
}

/// Keeps a pace in step with the system's clock, which is held to true time.
///
/// The frequency of a processor's counter is measured once and is off by 5 in a million: 18 ms in an hour.
#[derive(Debug, Clone, Copy)]
pub struct InStep {
    begun: Nanos,
    /// The system's clock at the beginning.
    running: Nanos,
    looked: Nanos,
    /// By how much the counter is ahead of the system's clock, in nanoseconds.
    ahead: i64,
}

/// The time between looks at the system's clock, and the largest correction after one look. The limit matters
/// if a thread was stopped between its looks at two clocks: packets must not hurry then.
const LOOK: Nanos = Nanos::from_millis(250);
const MOVE: i64 = 5_000;

impl InStep {
    /// Starts now, when the system's clock shows `running`.
    pub fn new(now: Nanos, running: Nanos) -> Self {
        InStep { begun: now, running, looked: now, ahead: 0 }
    }

    /// Looks at the system's clock, if it is time to.
    #[inline]
    pub fn look(&mut self, now: Nanos, running: impl FnOnce() -> Nanos) {
        if now.since(self.looked) >= LOOK {
            self.looked = now;
            let mine = now.since(self.begun).0;
            let systems = running().since(self.running).0;
            let ahead = mine.cast_signed() - systems.cast_signed();
            self.ahead = ahead.clamp(self.ahead - MOVE, self.ahead + MOVE);
        }
    }

    /// The counter's reading at a time `after` the beginning.
    #[inline]
    pub fn at(&self, after: Nanos) -> Nanos {
        Nanos((self.begun + after).0.saturating_add_signed(self.ahead))
    }
}

/// Limits the rate of a sender that is late, for example because it was stopped for a moment. Receivers with
/// ordinary socket buffers lose packets of a sender that makes up for a second at full speed.
///
/// ```text
/// due        |   |   |   |   |   |   |   |   |   |   |     one burst in each step
/// released   |   |   .   .   .   .|  |  |  |  |  |  |      held up, then 1.2 bursts in each step
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct CatchUp {
    /// When the latest burst left.
    last: Option<Nanos>,
}

/// A late sender is this many hundredths as fast as its pace.
const CATCH_UP_PERCENT: u64 = 120;

impl CatchUp {
    /// The time at which a burst may leave that is due at a time and lasts this long at the pace.
    #[inline]
    pub fn release(&self, due: Nanos, length: Nanos) -> Nanos {
        let least = Nanos((length.0.saturating_mul(100)).div_ceil(CATCH_UP_PERCENT));
        self.last.map_or(due, |last| due.max(last + least))
    }

    /// Takes the time at which the burst left.
    #[inline]
    pub fn released(&mut self, at: Nanos) {
        self.last = Some(at);
    }
}

/// Waits asleep for most of the time and awake for the rest, since the kernel wakes a sleeper late. It learns
/// the length of the rest from how late it was.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    awake: Nanos,
}

/// The rest spent awake: at first, at least and at most.
const AWAKE: Nanos = Nanos(60_000);
const AWAKE_MIN: Nanos = Nanos(5_000);
const AWAKE_MAX: Nanos = Nanos(300_000);

impl Waiting {
    /// Waits on the calling thread, and asks the kernel to wake it in time; the kernel may refuse.
    pub fn here() -> Self {
        // By default the kernel wakes a thread up to 50 us late, to save power.
        rustix::thread::set_current_timer_slack(NonZero::new(1)).ok();
        Waiting { awake: AWAKE }
    }

    /// Waits until then, if it is not past.
    pub fn until(&mut self, due: Nanos, mut now: Nanos, clock: Clock) {
        if let Some(wake) = self.sleep_until(due, now) {
            thread::sleep(wake.since(now).duration());
            now = clock.now();
            self.woken(wake, now);
        } else if due > now {
            // A waiter that never sleeps would never learn that it is woken in time again.
            self.awake = Nanos(self.awake.0 - self.awake.0 / 4096).max(AWAKE_MIN);
        }
        while now < due {
            std::hint::spin_loop();
            now = clock.now();
        }
    }

    /// The time until which to sleep, if sleeping is worth it.
    fn sleep_until(self, due: Nanos, now: Nanos) -> Option<Nanos> {
        let asleep = due.since(now).since(self.awake);
        (asleep.0 > 0).then_some(now + asleep)
    }

    /// Adapts the rest so that it is half as long again as most sleepers are late. It grows and shrinks in
    /// steps, so that one disturbance does not keep the thread awake.
    fn woken(&mut self, wake: Nanos, now: Nanos) {
        let late = now.since(wake).0;
        let awake = self.awake.0;
        let wished = late + late / 2;
        let stepped =
            if wished > awake { wished.min(awake + awake / 8) } else { awake - (awake - wished) / 256 };
        self.awake = Nanos(stepped).clamp(AWAKE_MIN, AWAKE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packets_are_due_in_even_steps_after_hours_too(rate in 1_u32..1_000_000, seconds in 0..1_000_000_u64) {
            let (number, rate) = (u64::from(rate) * seconds, f64::from(rate));
            let pace = SendPace::new(Frequency(rate));
            let (this, next) = (pace.due(number).0, pace.due(number + 1).0);
            let step = 1e9 / rate;
            prop_assert!(((next - this) as f64 - step).abs() <= 2.0, "{this} to {next}: {step}");
            let exact = (number + 1) as f64 / rate * 1e9;
            prop_assert!((this as f64 - exact).abs() <= 1.0 + exact * 1e-15);
        }

        #[test]
        fn as_many_packets_as_are_due_by_then(rate in 1.0..1e6_f64, seconds in 0..100_u32) {
            let (pace, time) = (SendPace::new(Frequency(rate)), Nanos(u64::from(seconds) * 1_000_000_000));
            let count = pace.packets_in(time);
            prop_assert!(pace.due(count) + Nanos(2) > time);
            prop_assert!(count == 0 || pace.due(count - 1) <= time + Nanos(2));
        }

        #[test]
        fn a_burst_is_short(rate in 1.0..1e8_f64, most in 0..100_usize, longer in 1..5_u64) {
            let usual = SendPace::new(Frequency(rate));
            for (pace, seconds) in [(usual, 1e-4), (usual.with_bursts_of(Nanos(longer * 100_000)), longer as f64 * 1e-4)] {
                let burst = pace.burst(most);
                prop_assert!(burst == 1 || (burst <= most && burst as f64 / rate <= 1.001 * seconds));
                prop_assert!(burst == most.max(1) || (burst + 1) as f64 / rate > 0.999 * seconds);
            }
        }
    }

    #[test]
    fn pauses_come_between_bursts_and_no_burst_reaches_over_one() {
        let pace = SendPace::new(Frequency(1000.0)).with_pauses(3, Nanos::from_millis(10));
        let due = [0, 2, 3, 5, 6].map(|number| pace.due(number).0 / 1_000_000);
        assert_eq!(due, [1, 3, 14, 16, 27]);
        let ends =
            [(0, 8), (0, 2), (1, 2), (2, 8), (4, 1)].map(|(first, burst)| pace.burst_end(first, burst));
        assert_eq!(ends, [3, 2, 3, 3, 5]);
        let packets = [0, 1, 3, 5, 12, 14, 26].map(|time| pace.packets_in(Nanos::from_millis(time)));
        assert_eq!(packets, [0, 1, 3, 3, 3, 4, 6]);
    }

    #[test]
    fn a_whole_second_has_as_many_packets_as_the_rate_says() {
        for (rate, packets) in [(15_625.0, 62_500), (506_996.25, 2_027_985), (3.0, 12), (128.0 / 3.0, 170)] {
            assert_eq!(
                SendPace::new(Frequency(rate)).packets_in(Nanos::from_millis(4000)),
                packets,
                "{rate}"
            );
        }
    }

    #[test]
    fn the_rest_grows_with_lateness_and_shrinks_without() {
        let mut waiting = Waiting { awake: AWAKE };
        waiting.woken(Nanos(0), Nanos::from_millis(1000));
        assert_eq!(waiting.awake, Nanos(67_500), "one disturbance is no reason to stay awake");
        for _ in 0..20 {
            waiting.woken(Nanos(1000), Nanos(1000 + 90_000));
        }
        assert_eq!(waiting.awake, Nanos(135_000));
        for _ in 0..3000 {
            waiting.woken(Nanos(1000), Nanos(1000 + 10_000));
        }
        assert!((15_000..16_000).contains(&waiting.awake.0), "{waiting:?}");
        for _ in 0..100 {
            waiting.woken(Nanos(0), Nanos::from_millis(1000));
        }
        assert_eq!(waiting.awake, AWAKE_MAX);
        assert_eq!(waiting.sleep_until(Nanos(310_000), Nanos(0)), Some(Nanos(10_000)));
        assert_eq!(waiting.sleep_until(Nanos(300_000), Nanos(0)), None);
        assert_eq!(waiting.sleep_until(Nanos(1), Nanos(5)), None);
    }

    #[test]
    fn an_hour_is_an_hour_by_the_systems_clock() {
        for parts_per_million in [-5_i64, 0, 5] {
            let (start, running) = (Nanos(7_000_000), Nanos(900_000_000_000));
            let mut in_step = InStep::new(start, running);
            let second = |number: u64| number * 1_000_000_000;
            let system = |number| running + Nanos(second(number));
            let mine = |number| {
                start
                    + Nanos(
                        second(number).saturating_add_signed(parts_per_million * number.cast_signed() * 1000),
                    )
            };
            for number in 1..=3600 {
                in_step.look(mine(number), || system(number));
            }
            assert_eq!(in_step.at(Nanos(second(3600))), mine(3600));
        }
    }

    #[test]
    fn a_disturbed_look_moves_packets_by_little() {
        let (second, mut in_step) = (Nanos::from_millis(1000), InStep::new(Nanos(0), Nanos(0)));
        in_step.look(LOOK, || LOOK + Nanos::from_millis(20));
        in_step.look(LOOK + Nanos(1), || unreachable!("it is too soon"));
        assert_eq!(in_step.at(second).0, second.0 - MOVE.cast_unsigned());
        in_step.look(LOOK + LOOK, || LOOK + LOOK);
        assert_eq!(in_step.at(second), second);
    }

    /// Sends bursts of ten packets at 1 kHz in virtual time, and stops for `held` before burst 100. Returns the
    /// time of each burst.
    fn held_up(held: Nanos) -> Vec<Nanos> {
        let pace = SendPace::new(Frequency(1000.0));
        let (mut catch_up, mut now) = (CatchUp::default(), Nanos(0));
        let mut times = Vec::new();
        for burst in 0..1000 {
            let (first, next) = (burst * 10, burst * 10 + 10);
            now += if burst == 100 { held } else { Nanos(0) };
            now = now.max(catch_up.release(pace.due(next - 1), pace.due(next).since(pace.due(first))));
            catch_up.released(now);
            times.push(now);
        }
        times
    }

    #[test]
    fn a_sender_that_was_held_up_is_at_most_a_fifth_faster() {
        let (even, late) = (held_up(Nanos(0)), held_up(Nanos::from_millis(1000)));
        let steps = |times: &[Nanos]| times.windows(2).map(|two| two[1].since(two[0])).min();
        assert_eq!(steps(&even), Some(Nanos::from_millis(10)));
        assert_eq!(steps(&late), Some(Nanos(8_333_334)), "1.2 times the rate");
        assert_eq!(late[100].since(even[99]), Nanos::from_millis(1000));
        let back = (0..1000).find(|burst| *burst > 100 && late[*burst] == even[*burst]);
        assert_eq!(back, Some(695), "990 ms of delay, 1.667 ms less with each burst");
        assert_eq!(late[999], even[999]);
    }

    #[test]
    fn who_is_too_late_to_sleep_tries_again_some_day() {
        let (clock, mut waiting) = (Clock::start(), Waiting { awake: AWAKE_MAX });
        for _ in 0..10_000 {
            let now = clock.now();
            waiting.until(now + Nanos(10), now, clock);
        }
        assert!(waiting.awake < Nanos(AWAKE_MAX.0 / 8), "{waiting:?}");
    }

    #[test]
    fn it_waits_until_then_and_never_less() {
        let (clock, mut waiting) = (Clock::start(), Waiting::here());
        for step in [0, 1_000, 100_000, 3_000_000] {
            let due = clock.now() + Nanos(step);
            waiting.until(due, clock.now(), clock);
            assert!(clock.now() >= due);
        }
    }
}
