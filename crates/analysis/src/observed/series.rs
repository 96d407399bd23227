//! From the counters of looks to the use between them: shares, and amounts per second.
//!
//! Two consecutive looks give a rate for each counter that went forward. A counter that went back may be a 32-bit
//! counter that wrapped, if the resulting difference was possible in that time. Otherwise its use between these
//! two looks is unknown. Missing looks do no harm: the rate is that of the longer time.

use std::collections::BTreeMap;

use nilometer_model::{
    Nanos,
    observed::{ObservedHeader, ObservedLook, ObservedRange},
};

/// The kind of use of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UseKind {
    /// Processors that worked, as a share of all.
    ProcessorsBusy,
    /// The busiest processor, as a share of its time.
    CoreBusy,
    /// Processors that worked on soft interrupts, as a share of all.
    SoftInterrupts,
    /// Processors that were idle while a task waited for a disk, as a share of all.
    DiskWait,
    /// Time that the host of a virtual machine gave to others, as a share of all.
    Stolen,
    /// Share of a card's capacity in use, in its busier direction.
    LinkShare,
    /// Bytes a second.
    LinkReceived,
    /// Bytes a second.
    LinkSent,
    /// Damaged or dropped packets per second.
    LinkLost,
    /// The share of the time in which a disk had a request.
    DiskBusy,
    /// Requests that a disk had at once, on average.
    DiskQueue,
    /// Bytes a second.
    DiskRead,
    /// Bytes a second.
    DiskWritten,
    /// The share of the time in which some task waited for a processor.
    PressureCpu,
    /// The share of the time in which some task waited for input or output.
    PressureIo,
    /// The share of the time in which some task waited for memory.
    PressureMemory,
    /// Bytes in the cache that are waiting to be written, or are being written.
    Dirty,
    /// Bytes a second that clients of the NFS server read.
    NfsRead,
    /// Bytes a second that they wrote.
    NfsWritten,
    /// Degrees Celsius.
    Temperature,
}

/// The kind of use of one resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UseKey {
    /// The kind.
    pub kind: UseKind,
    /// The name of the link, the disk or the sensor; empty if a machine has only one.
    pub name: String,
}

/// One figure over time.
#[derive(Debug, Clone, PartialEq)]
pub struct UseValues {
    /// The kind and resource.
    pub key: UseKey,
    /// One value per span; NaN if unknown.
    pub values: Vec<f64>,
}

/// The use of a machine's resources between its looks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UseSeries {
    /// From one look to the next, by the clock of the machine that measured.
    pub spans: Vec<ObservedRange>,
    /// Values in the order of their keys.
    pub uses: Vec<UseValues>,
    /// Steps of the machine's clock between two looks, each with its time: in seconds, forward if positive.
    pub steps: Vec<(Nanos, f64)>,
}

impl UseSeries {
    /// The values of this kind for a resource.
    pub fn of(&self, kind: UseKind, name: &str) -> Option<&UseValues> {
        self.uses.iter().find(|of| of.key.kind == kind && of.key.name == name)
    }

    /// All values of this kind.
    pub fn all(&self, kind: UseKind) -> impl Iterator<Item = &UseValues> {
        self.uses.iter().filter(move |of| of.key.kind == kind)
    }

    /// The sum of an amount per second over all spans.
    pub fn total(&self, of: &UseValues) -> f64 {
        let known = self.spans.iter().zip(&of.values).filter(|(_, value)| value.is_finite());
        known.map(|(span, value)| span.length().seconds() * value).sum()
    }
}

/// A shorter step of the clock, in seconds, is the regular work of a time service.
const STEP_LEAST: f64 = 0.05;
/// The same goes for the drift of a clock by less than this share of the time, which is twice the maximum of a
/// kernel.
const SLEW_MOST: f64 = 1e-3;

/// The use between the looks of a machine; `offset` nanoseconds correct its clock.
pub(super) fn series(header: &ObservedHeader, looks: &[ObservedLook], offset: i64) -> UseSeries {
    let mut built = SeriesBuilder { series: UseSeries::default(), values: BTreeMap::new() };
    for pair in looks.windows(2) {
        built.add(header, &LookPair::of(&pair[0], &pair[1]), offset);
    }
    built.finish()
}

struct SeriesBuilder {
    series: UseSeries,
    values: BTreeMap<UseKey, Vec<f64>>,
}

impl SeriesBuilder {
    fn add(&mut self, header: &ObservedHeader, pair: &LookPair<'_>, offset: i64) {
        let step = pair.step();
        if step.abs() > STEP_LEAST + SLEW_MOST * pair.seconds {
            self.series.steps.push((pair.is.time(), step));
            return;
        }
        let corrected = |time: Nanos| Nanos(time.0.saturating_add_signed(offset));
        let from = corrected(pair.was.time());
        self.series.spans.push(ObservedRange { from, to: corrected(pair.is.time()).max(from) });
        pair.processors(self);
        pair.links(header, self);
        pair.disks(self);
        pair.the_rest(self);
    }

    /// Sets a value of the last span.
    fn set(&mut self, kind: UseKind, name: &str, value: Option<f64>) {
        let Some(value) = value.filter(|value| value.is_finite()) else { return };
        let last = self.series.spans.len() - 1;
        let values = self.values.entry(UseKey { kind, name: name.into() }).or_default();
        values.resize(last, f64::NAN);
        values.push(value);
    }

    fn finish(mut self) -> UseSeries {
        let count = self.series.spans.len();
        self.series.uses = self
            .values
            .into_iter()
            .map(|(key, mut values)| {
                values.resize(count, f64::NAN);
                UseValues { key, values }
            })
            .collect();
        self.series
    }
}

/// Two consecutive looks.
struct LookPair<'a> {
    was: &'a ObservedLook,
    is: &'a ObservedLook,
    seconds: f64,
}

/// A card may carry a little more than its speed, because it counts bytes that never reach the wire.
const CARD_MOST: f64 = 2.0;
/// The maximum without a known limit: less than half of 32 bits.
const UNKNOWN_MOST: f64 = 2_147_483_648.0;

impl<'a> LookPair<'a> {
    fn of(was: &'a ObservedLook, is: &'a ObservedLook) -> Self {
        LookPair { was, is, seconds: is.running().since(was.running()).seconds().max(1e-6) }
    }

    /// The step of the machine's clock, in seconds, forward if positive.
    fn step(&self) -> f64 {
        let time = self.is.time().0 as f64 - self.was.time().0 as f64;
        time * 1e-9 - self.seconds
    }

    /// The rate of a counter, in its unit per second.
    fn rate(&self, was: u64, is: u64, most: f64) -> Option<f64> {
        advance(was, is, most).map(|difference| difference as f64 / self.seconds)
    }

    /// The share of the time, from a counter of milliseconds that can't be faster than the time.
    fn share(&self, was: u64, is: u64) -> Option<f64> {
        let most = 1500.0 * self.seconds + 100.0;
        Some((self.rate(was, is, most)? / 1000.0).min(1.0))
    }

    fn processors(&self, built: &mut SeriesBuilder) {
        let was = &self.was.processors;
        let is = &self.is.processors;
        let spent = |of: fn(&nilometer_model::observed::ProcessorTimes) -> u64| {
            of(&is.all).saturating_sub(of(&was.all)) as f64
        };
        let busy = spent(|times| times.busy_ms);
        let waited = spent(|times| times.iowait_ms);
        let stolen = spent(|times| times.stolen_ms);
        let all = busy + waited + stolen + spent(|times| times.idle_ms);
        let share = |of: f64| (all > 0.0).then_some(of / all);
        built.set(UseKind::ProcessorsBusy, "", share(busy));
        built.set(UseKind::SoftInterrupts, "", share(spent(|times| times.softirq_ms)));
        built.set(UseKind::DiskWait, "", share(waited));
        built.set(UseKind::Stolen, "", share(stolen));
        let each = was.each_busy_ms.iter().zip(&is.each_busy_ms);
        let busiest = each.filter_map(|(was, is)| self.share(*was, *is)).reduce(f64::max);
        built.set(UseKind::CoreBusy, "", busiest);
    }

    fn links(&self, header: &ObservedHeader, built: &mut SeriesBuilder) {
        for (name, is) in &self.is.links {
            let Some(was) = self.was.links.get(name) else { continue };
            let link = header.link(name);
            let speed = link.and_then(|link| link.speed_bytes_per_second).filter(|speed| *speed > 0.0);
            let most = speed.map_or(UNKNOWN_MOST, |speed| CARD_MOST * speed * self.seconds);
            let received = self.rate(was.received_bytes, is.received_bytes, most);
            let sent = self.rate(was.sent_bytes, is.sent_bytes, most);
            built.set(UseKind::LinkReceived, name, received);
            built.set(UseKind::LinkSent, name, sent);
            let lost = was.errors.saturating_add(was.dropped);
            built.set(UseKind::LinkLost, name, self.rate(lost, is.errors.saturating_add(is.dropped), 0.0));
            if link.is_some_and(|link| link.is_card) {
                let more = received.zip(sent).map(|(received, sent)| received.max(sent));
                built.set(UseKind::LinkShare, name, more.zip(speed).map(|(more, speed)| more / speed));
            }
        }
    }

    fn disks(&self, built: &mut SeriesBuilder) {
        for (name, is) in &self.is.disks {
            let Some(was) = self.was.disks.get(name) else { continue };
            built.set(UseKind::DiskBusy, name, self.share(was.busy_ms, is.busy_ms));
            let queue = self.rate(was.queue_ms, is.queue_ms, UNKNOWN_MOST);
            built.set(UseKind::DiskQueue, name, queue.map(|millis| millis / 1000.0));
            built.set(UseKind::DiskRead, name, self.rate(was.read_bytes, is.read_bytes, 0.0));
            built.set(UseKind::DiskWritten, name, self.rate(was.written_bytes, is.written_bytes, 0.0));
        }
    }

    fn the_rest(&self, built: &mut SeriesBuilder) {
        if let (Some(was), Some(is)) = (&self.was.pressure, &self.is.pressure) {
            let share = |was: u64, is: u64| self.rate(was, is, 0.0).map(|micros| (micros * 1e-6).min(1.0));
            built.set(UseKind::PressureCpu, "", share(was.cpu_us, is.cpu_us));
            built.set(UseKind::PressureIo, "", share(was.io_us, is.io_us));
            built.set(UseKind::PressureMemory, "", share(was.memory_us, is.memory_us));
        }
        let dirty = self.is.memory.dirty_bytes.saturating_add(self.is.memory.writeback_bytes);
        built.set(UseKind::Dirty, "", Some(dirty as f64));
        if let (Some(was), Some(is)) = (&self.was.nfs_server, &self.is.nfs_server) {
            built.set(UseKind::NfsRead, "", self.rate(was.read_bytes, is.read_bytes, UNKNOWN_MOST));
            built.set(UseKind::NfsWritten, "", self.rate(was.written_bytes, is.written_bytes, UNKNOWN_MOST));
        }
        for (sensor, degrees) in &self.is.temperatures_celsius {
            built.set(UseKind::Temperature, sensor, Some(*degrees));
        }
    }
}

/// The advance of a counter. A 32-bit counter that wrapped advanced at most by `most`. If it went back for
/// another reason, such as a changed device, the advance is unknown.
fn advance(was: u64, is: u64, most: f64) -> Option<u64> {
    const AROUND: u64 = 1 << 32;
    if is >= was {
        return Some(is - was);
    }
    let around = (is + AROUND).checked_sub(was)?;
    (was < AROUND && around as f64 <= most).then_some(around)
}

#[cfg(test)]
mod tests {
    use nilometer_model::observed::{
        DiskCounters, LinkCounters, ObservedLink, PressureCounters, ProcessorCounters, ProcessorTimes,
    };

    use super::*;

    fn look(second: u64) -> ObservedLook {
        ObservedLook {
            time_us: second * 1_000_000,
            running_us: second * 1_000_000,
            ..ObservedLook::default()
        }
    }

    fn value(series: &UseSeries, kind: UseKind, name: &str) -> Vec<f64> {
        series.of(kind, name).map(|of| of.values.clone()).unwrap_or_default()
    }

    fn near(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len(), "{found:?}, not {expected:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                (found - expected).abs() < 1e-9 || found.is_nan() && expected.is_nan(),
                "{found} {expected}"
            );
        }
    }

    #[test]
    fn counters_that_go_around_are_told_from_those_that_begin_anew() {
        assert_eq!(advance(5, 9, 0.0), Some(4));
        let last = (1 << 32) - 100;
        assert_eq!(advance(last, 300, 500.0), Some(400));
        assert_eq!(advance(last, 300, 399.0), None, "it can't have gone so far");
        assert_eq!(advance(1 << 40, 300, 1e9), None, "it counts in more than 32 bits");
        assert_eq!(advance(u64::MAX, 0, 1e9), None);
    }

    #[test]
    fn a_disk_is_busy_for_a_share_of_the_time_also_where_its_counter_goes_around() {
        let disk = |busy_ms, written_bytes| DiskCounters {
            busy_ms,
            written_bytes,
            queue_ms: busy_ms * 2,
            ..DiskCounters::default()
        };
        let at = |second, disk: Option<DiskCounters>| ObservedLook {
            disks: disk.map(|disk| ("sda".to_owned(), disk)).into_iter().collect(),
            ..look(second)
        };
        let around = (1_u64 << 32) - 250;
        // The look at the fourth second is missing; from the sixth on, it is another disk.
        let looks = [
            at(1, None),
            at(2, Some(disk(around, 1000))),
            at(3, Some(disk(250, 5000))),
            at(5, Some(disk(2250, 9000))),
            at(6, Some(disk(10, 10))),
        ];
        let found = series(&ObservedHeader::default(), &looks, 0);
        near(&value(&found, UseKind::DiskBusy, "sda"), &[f64::NAN, 0.5, 1.0, f64::NAN]);
        near(&value(&found, UseKind::DiskWritten, "sda"), &[f64::NAN, 4000.0, 2000.0, f64::NAN]);
        assert_eq!(found.spans[2].length(), Nanos::from_millis(2000));
    }

    #[test]
    fn a_link_is_as_full_as_its_fuller_direction_and_only_a_card_has_a_speed() {
        let link = |name: &str, is_card| ObservedLink {
            name: name.into(),
            is_card,
            speed_bytes_per_second: Some(1000.0),
            ..ObservedLink::default()
        };
        let header = ObservedHeader {
            links: vec![link("eth0", true), link("veth1", false)],
            ..ObservedHeader::default()
        };
        let at = |second, received_bytes, sent_bytes| {
            let counters =
                LinkCounters { received_bytes, sent_bytes, dropped: second, ..LinkCounters::default() };
            let links = ["eth0", "veth1"].map(|name| (name.to_owned(), counters));
            ObservedLook { links: links.into(), ..look(second) }
        };
        let found = series(&header, &[at(1, 0, 0), at(3, 1900, 40)], 0);
        near(&value(&found, UseKind::LinkShare, "eth0"), &[0.95]);
        near(&value(&found, UseKind::LinkSent, "veth1"), &[20.0]);
        assert_eq!(value(&found, UseKind::LinkShare, "veth1"), [0.0; 0]);
        let lost = found.of(UseKind::LinkLost, "eth0").expect("counted");
        assert!((found.total(lost) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn processors_are_shares_of_what_was_counted() {
        let at = |second, busy_ms, idle_ms, each: [u64; 2]| {
            let all =
                ProcessorTimes { busy_ms, idle_ms, iowait_ms: 100 * second, ..ProcessorTimes::default() };
            let processors = ProcessorCounters { all, each_busy_ms: each.into() };
            let pressure = Some(PressureCounters { io_us: 250_000 * second, ..PressureCounters::default() });
            ObservedLook { processors, pressure, ..look(second) }
        };
        let found =
            series(&ObservedHeader::default(), &[at(1, 0, 0, [0, 0]), at(2, 1000, 900, [990, 10])], 0);
        near(&value(&found, UseKind::ProcessorsBusy, ""), &[0.5]);
        near(&value(&found, UseKind::DiskWait, ""), &[0.05]);
        near(&value(&found, UseKind::CoreBusy, ""), &[0.99]);
        near(&value(&found, UseKind::PressureIo, ""), &[0.25]);
    }

    #[test]
    fn what_lies_across_a_step_of_the_clock_is_left_out_and_an_offset_moves_all() {
        let set = ObservedLook { time_us: 100_000_000, ..look(3) };
        let after = ObservedLook { time_us: 101_000_000, ..look(4) };
        let found = series(&ObservedHeader::default(), &[look(1), look(2), set, after], -500_000_000);
        let from: Vec<f64> = found.spans.iter().map(|span| span.from.seconds()).collect();
        near(&from, &[0.5, 99.5]);
        assert!(matches!(found.steps[..], [(_, step)] if (step - 97.0).abs() < 1e-9), "{:?}", found.steps);
        assert!(series(&ObservedHeader::default(), &[look(1)], 0).spans.is_empty());
    }
}
