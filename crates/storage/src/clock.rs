//! The only module that reads a clock. All engines of a run share one origin, so their times can be compared.
//!
//! A reading costs as much as the rest of the loop. If the kernel trusts the processor's time stamp counter,
//! the clock reads it directly: some 11 ns instead of 25 through the vDSO. The kernel's clock source is then
//! `tsc`: constant, never stopping, the same on all processors.

use std::{
    num::NonZero,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use nilometer_model::{
    Moment, Nanos,
    observed::{ClockReading, ClockState},
};
use rustix::time::{ClockId, clock_gettime};

/// The shortest time between two looks of a loop after which it assumes a halt of its process.
const HALT_LEAST: Nanos = Nanos::from_millis(1000);

/// Returns the time of a halt between two looks of a loop that usually looks again after `usual`. The user stopped
/// the process, or it got no processor. Others are then silent for another reason than their storage.
pub fn halt_between(looks: Nanos, usual: Nanos) -> Nanos {
    if looks < HALT_LEAST { Nanos(0) } else { looks.since(usual) }
}

/// A monotonic clock with an origin.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: u64,
    /// Nanoseconds per tick in units of 2^-32 if the clock reads ticks. Otherwise `None`, and the origin is
    /// in nanoseconds.
    scale: Option<u64>,
}

impl Clock {
    /// Starts to measure the counter's frequency, so that the first clock of this process need not wait for
    /// it.
    pub fn prepare() {
        FIRST_PAIR.get_or_init(pair);
    }

    /// Returns a clock that is at zero now. The first call in a process waits until 20 ms after
    /// [`Clock::prepare`], or for 20 ms, to measure the counter's frequency.
    pub fn start() -> Self {
        static SCALE: OnceLock<Option<u64>> = OnceLock::new();
        let scale = *SCALE.get_or_init(measure_scale);
        Clock { origin: if scale.is_some() { ticks() } else { system_nanos() }, scale }
    }

    /// Returns this clock with its zero moved to `time`. Until then it stands at zero.
    #[must_use]
    pub fn with_zero_at(self, time: Nanos) -> Self {
        let ahead = match self.scale {
            Some(scale) => ((u128::from(time.0) << 32) / u128::from(scale.max(1))) as u64,
            None => time.0,
        };
        Clock { origin: self.origin.saturating_add(ahead), ..self }
    }

    /// Sleeps until `time`, unless it is past. It also makes the kernel wake this thread on time from now on.
    /// By default that may be 50 us late, to save power (`PR_SET_TIMERSLACK`).
    pub fn sleep_until(&self, time: Nanos) {
        let left = time.since(self.now());
        if left > Nanos(0) {
            rustix::thread::set_current_timer_slack(NonZero::new(1)).ok();
            std::thread::sleep(left.duration());
        }
    }

    /// Reads the clock.
    #[inline]
    pub fn now(&self) -> Nanos {
        match self.scale {
            Some(scale) => {
                let passed = ticks().saturating_sub(self.origin);
                Nanos(((u128::from(passed) * u128::from(scale)) >> 32) as u64)
            }
            None => Nanos(system_nanos().saturating_sub(self.origin)),
        }
    }
}

/// The calendar's time and a clock that nobody can set. It dates events and never measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calendar {
    /// Since 1970, UTC.
    pub time: Nanos,
    /// Since the machine started, sleep included (`CLOCK_BOOTTIME`).
    pub running: Nanos,
}

impl Calendar {
    /// Reads both clocks.
    pub fn now() -> Self {
        Calendar { time: system(ClockId::Realtime), running: system(ClockId::Boottime) }
    }

    /// Returns the moment at which a clock started.
    pub fn start_of(clock: Clock) -> Moment {
        Moment(Calendar::now().time.since(clock.now()))
    }

    /// Returns the time left until a moment; zero if it is past.
    pub fn left_until(moment: Moment) -> Nanos {
        moment.0.since(Calendar::now().time)
    }

    /// Returns the nanoseconds by which the calendar's clock was set forward since `earlier`; negative if it
    /// was set back.
    pub fn stepped_since(self, earlier: Calendar) -> i64 {
        let ahead = |calendar: Calendar| calendar.time.0.cast_signed() - calendar.running.0.cast_signed();
        ahead(self) - ahead(earlier)
    }
}

/// Returns the accuracy of the calendar's clock, as its time service reports to the kernel; `None` if the
/// query is forbidden.
pub fn clock_state() -> Option<ClockState> {
    clock_reading().map(ClockReading::state)
}

/// Returns the kernel's estimate of the calendar's clock; `None` if the query is forbidden.
pub fn clock_reading() -> Option<ClockReading> {
    // SAFETY: all zeroes is a valid timex that requests no change, and the kernel writes only into it.
    let (answer, told) = unsafe {
        let mut told: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&raw mut told), told)
    };
    if answer < 0 {
        return None;
    }
    // The kernel counts the offset in microseconds, unless its time service set nanoseconds.
    let unit = if told.status & libc::STA_NANO == 0 { 1000 } else { 1 };
    let nanos = |micros: libc::c_long| micros.cast_unsigned().saturating_mul(1000);
    Some(ClockReading {
        synchronised: answer != libc::TIME_ERROR && told.status & libc::STA_UNSYNC == 0,
        offset_ns: told.offset.saturating_mul(unit),
        error_max_ns: nanos(told.maxerror),
        error_estimate_ns: nanos(told.esterror),
    })
}

/// Returns the kernel's clock source; empty if the kernel does not report it.
pub fn clock_source() -> String {
    std::fs::read_to_string(SOURCE).unwrap_or_default().trim().to_owned()
}

/// The file that [`clock_source`] reads.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

fn system(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    Nanos(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

fn system_nanos() -> u64 {
    system(ClockId::Monotonic).0
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and it touches no memory.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Never called: there is no scale.
#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    0
}

/// Both clocks at the start of the measurement of the counter's frequency.
static FIRST_PAIR: OnceLock<(u64, u64)> = OnceLock::new();
/// The shortest measurement of the frequency.
const MEASURED_LEAST: Nanos = Nanos::from_millis(20);
/// An older start does not count: the machine may sleep meanwhile, and then the counter goes on without the
/// clock.
const MEASURED_MOST: Nanos = Nanos::from_millis(1000);

/// Returns nanoseconds per tick in units of 2^-32, to some 5 in a million, if the kernel trusts the counter.
fn measure_scale() -> Option<u64> {
    if clock_source() != "tsc" || !cfg!(target_arch = "x86_64") {
        return None;
    }
    let begun = FIRST_PAIR.get().copied().filter(|(time, _)| system_nanos() - time < MEASURED_MOST.0);
    let (time, tick) = begun.unwrap_or_else(pair);
    std::thread::sleep(Nanos(time + MEASURED_LEAST.0).since(Nanos(system_nanos())).duration());
    let (later, later_tick) = pair();
    let passed = later_tick.checked_sub(tick).filter(|&passed| passed > 0)?;
    u64::try_from((u128::from(later - time) << 32) / u128::from(passed)).ok()
}

/// Reads both clocks at once: the closest of several tries.
fn pair() -> (u64, u64) {
    let tries = (0..20).map(|_| {
        let before = ticks();
        let time = system_nanos();
        let after = ticks();
        (after.wrapping_sub(before), time, before.midpoint(after))
    });
    let (_, time, tick) = tries.min().expect("twenty tries");
    (time, tick)
}

/// A clock for simulations; only [`VirtualClock::advance_to`] moves it. Clones show the same time.
#[derive(Debug, Clone, Default)]
pub struct VirtualClock(Arc<AtomicU64>);

impl VirtualClock {
    /// Returns the current time.
    pub fn now(&self) -> Nanos {
        Nanos(self.0.load(Ordering::Relaxed))
    }

    /// Moves the time forward, never back.
    pub fn advance_to(&self, time: Nanos) {
        self.0.fetch_max(time.0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// How far a clock is ahead of the system's, and the error of that: the quickest of many readings.
    fn ahead(clock: &Clock) -> [i64; 2] {
        let readings = (0..100).map(|_| {
            let [before, mine, after] = [system_nanos(), clock.now().0, system_nanos()].map(u64::cast_signed);
            [mine - before, after - before]
        });
        readings.min_by_key(|[_, apart]| *apart).expect("there are some")
    }

    #[test]
    fn a_long_time_between_looks_is_a_halt() {
        let usual = Nanos::from_millis(200);
        let halts = [0, 200, 999].map(|millis| halt_between(Nanos::from_millis(millis), usual));
        assert_eq!(halts, [Nanos(0); 3]);
        assert_eq!(halt_between(Nanos::from_millis(20_000), usual), Nanos::from_millis(19_800));
    }

    #[test]
    fn the_clock_goes_as_fast_as_the_systems() {
        let clock = Clock::start();
        let [begin, first_apart] = ahead(&clock);
        std::thread::sleep(Duration::from_millis(200));
        let [end, last_apart] = ahead(&clock);
        // A thousandth, and the time that passed while the two clocks were read.
        let allowed = 200_000 + first_apart + last_apart;
        assert!((end - begin).abs() < allowed, "{} ns in 200 ms, {allowed} are allowed", end - begin);
    }

    /// The least step between any two of both sets of readings: the scheduler may interrupt between the two
    /// clocks of a reading.
    fn least_step_since(earlier: &[Calendar]) -> u64 {
        let now = [(); 20].map(|()| Calendar::now());
        let steps =
            earlier.iter().flat_map(|before| now.map(|now| now.stepped_since(*before).unsigned_abs()));
        steps.min().expect("there are some")
    }

    #[test]
    fn a_step_of_the_calendar_is_seen_and_the_passing_of_time_is_none() {
        let second: u64 = 1_000_000_000;
        let at = |time, running| Calendar { time: Nanos(time * second), running: Nanos(running * second) };
        assert_eq!(at(1000, 10).stepped_since(at(995, 5)), 0);
        assert_eq!(at(1000, 10).stepped_since(at(4595, 5)), -3600 * second.cast_signed());
        assert!(least_step_since(&[(); 20].map(|()| Calendar::now())) < 1_000_000);
    }

    #[test]
    fn the_kernel_says_how_right_its_clock_is_and_keeps_it() {
        let before = [(); 20].map(|()| Calendar::now());
        let state = clock_state().expect("to ask is allowed to all");
        // A time service that claims an error of more than a day does not count as one.
        assert!(state.error().is_none_or(|error| error < Nanos::from_seconds(86_400.0)), "{state:?}");
        assert!(least_step_since(&before) < 1_000_000, "to ask sets nothing");
    }

    #[test]
    fn a_later_zero_is_that_much_later() {
        let clock = Clock::start();
        assert_eq!(clock.with_zero_at(Nanos::from_seconds(1000.0)).now(), Nanos(0), "it stands until then");
        let later = clock.with_zero_at(Nanos(50_000_000));
        std::thread::sleep(Duration::from_millis(60));
        let [early, shown, late] = [clock.now(), later.now(), clock.now()].map(|time| time.0);
        assert!((early..=late + 100).contains(&(shown + 50_000_000)), "{early} {shown} {late}");
    }

    #[test]
    fn it_never_goes_back() {
        let clock = Clock::start();
        let mut last = clock.now();
        for _ in 0..100_000 {
            let now = clock.now();
            assert!(now >= last, "{now:?} after {last:?}");
            last = now;
        }
    }
}
