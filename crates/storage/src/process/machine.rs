//! The activity of the whole machine: processors, disks, networks and pressure, from the counters in `/proc`
//! (`proc_stat(5)`, `proc_diskstats(5)`, `proc_net(5)`, the kernel's `accounting/psi.rst`).

use std::{fs, path::Path};

use nilometer_model::{Activity, Nanos, Pressure};

use super::proc_text;
use crate::Clock;

/// Time and counters are read in turn. If that takes longer than this, another task had the processor, and
/// the read is repeated.
const READ_MOST: Nanos = Nanos::from_millis(2);
/// The most reads: on a machine that is always as busy, the last one must do.
const READS_MOST: u32 = 8;

/// All counters at one moment. Reading them costs some 0.1 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine(Activity);

impl Machine {
    /// Reads the counters. A counter that `/proc` does not show counts as zero.
    pub fn now(clock: &Clock) -> Self {
        let mut machine = Machine::read(clock);
        for _ in 1..READS_MOST {
            if clock.now().since(machine.0.over) <= READ_MOST {
                break;
            }
            machine = Machine::read(clock);
        }
        machine
    }

    fn read(clock: &Clock) -> Self {
        let over = clock.now();
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let pressure = ["cpu", "io", "memory"].map(|what| text(&format!("/proc/pressure/{what}")));
        let mut counters = Activity { over, ..Activity::default() };
        read_stat(&text("/proc/stat"), &mut counters);
        read_disks(&text("/proc/diskstats"), is_disk, &mut counters);
        read_network(&text("/proc/net/dev"), &mut counters);
        counters.pressure = read_pressure(&pressure);
        Machine(counters)
    }

    /// Returns the activity since `earlier`. A counter that went back, because a device is gone, counts as
    /// zero.
    #[must_use]
    pub fn since(&self, earlier: &Machine) -> Activity {
        let (is, was) = (&self.0, &earlier.0);
        let pressure = is.pressure.zip(was.pressure).map(|(is, was)| Pressure {
            cpu: is.cpu.since(was.cpu),
            io: is.io.since(was.io),
            memory: is.memory.since(was.memory),
        });
        Activity {
            over: is.over.since(was.over),
            busy: is.busy.since(was.busy),
            stolen: is.stolen.since(was.stolen),
            switches: is.switches.saturating_sub(was.switches),
            disk_read: is.disk_read.saturating_sub(was.disk_read),
            disk_written: is.disk_written.saturating_sub(was.disk_written),
            received: is.received.saturating_sub(was.received),
            sent: is.sent.saturating_sub(was.sent),
            pressure,
        }
    }
}

/// Returns true for a disk with a device of its own. Partitions, loops and devices made of disks would count
/// twice.
fn is_disk(name: &str) -> bool {
    Path::new("/sys/block").join(name).join("device").exists()
}

fn read_stat(text: &str, counters: &mut Activity) {
    let all = proc_text::processors(text).next().unwrap_or_default();
    counters.busy = millis(all.busy_ms);
    counters.stolen = millis(all.stolen_ms);
    counters.switches = proc_text::switches(text);
}

fn millis(millis: u64) -> Nanos {
    Nanos(millis.saturating_mul(1_000_000))
}

fn read_disks(text: &str, is_disk: impl Fn(&str) -> bool, counters: &mut Activity) {
    for (name, disk) in proc_text::disks(text) {
        // Most loops and partitions did nothing, so they need no look-up.
        if (disk.read_bytes > 0 || disk.written_bytes > 0) && is_disk(name) {
            counters.disk_read = counters.disk_read.saturating_add(disk.read_bytes);
            counters.disk_written = counters.disk_written.saturating_add(disk.written_bytes);
        }
    }
}

fn read_network(text: &str, counters: &mut Activity) {
    for (_, link) in proc_text::interfaces(text) {
        counters.received = counters.received.saturating_add(link.received_bytes);
        counters.sent = counters.sent.saturating_add(link.sent_bytes);
    }
}

fn read_pressure(texts: &[String; 3]) -> Option<Pressure> {
    let [cpu, io, memory] = texts;
    let told = proc_text::pressure(cpu, io, memory)?;
    let nanos = |micros: u64| Nanos(micros.saturating_mul(1000));
    Some(Pressure { cpu: nanos(told.cpu_us), io: nanos(told.io_us), memory: nanos(told.memory_us) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &str = "cpu  59424 1 12309 265226 1450 2 129 509 7 0\ncpu0 29033 0 4430 135444 342 0 20 234 0 0\n\
                        intr 57 0 2\nctxt 1155\nbtime 1763772000\n";
    const DISKS: &str = "   7       0 loop0 5 0 10 0 5 0 10 0 0 0 0\n 254       0 vda 84625 16289 100 60044 28057 55472 200 79687 0 1\n \
         254       1 vda1 84625 16289 100 60044 28057 55472 200 79687 0 1\n 259 0 nvme0n1 1 1 7 1 1 1 8 1 0 1\n";
    const NETWORK: &str = "Inter-|   Receive                            |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n    \
        lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0       0          0\n  \
        eth0: 212285126    4777    0    0    0     0          0         0   242952    2786    0    0    0     0       0          0\n\
        ib0:10 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n";
    const PRESSURE: &str = "some avg10=15.04 avg60=5.12 avg300=2.08 total=33437969\nfull avg10=0.00 avg60=0.00 \
                            avg300=0.00 total=4\n";

    #[test]
    fn real_texts_are_understood() {
        let mut counters = Activity::default();
        read_stat(STAT, &mut counters);
        assert_eq!(counters.busy, Nanos((59424 + 1 + 12309 + 2 + 129) * 10_000_000));
        assert_eq!((counters.stolen, counters.switches), (Nanos(5_090_000_000), 1155));
        read_disks(DISKS, |name| ["vda", "nvme0n1"].contains(&name), &mut counters);
        assert_eq!((counters.disk_read, counters.disk_written), (107 * 512, 208 * 512));
        read_network(NETWORK, &mut counters);
        assert_eq!((counters.received, counters.sent), (212_285_136, 242_972));
        let time = Nanos(33_437_969_000);
        let texts = [PRESSURE; 3].map(str::to_owned);
        assert_eq!(read_pressure(&texts), Some(Pressure { cpu: time, io: time, memory: time }));
    }

    #[test]
    fn a_kernel_without_pressure_says_nothing_of_it() {
        assert_eq!(read_pressure(&[PRESSURE.into(), String::new(), PRESSURE.into()]), None);
    }

    #[test]
    fn this_machine_works_while_it_is_looked_at() {
        let clock = Clock::start();
        let before = Machine::now(&clock);
        let (mut spun, until) = (0_u64, clock.now() + Nanos::from_millis(100));
        while clock.now() < until {
            spun += 1;
        }
        let did = Machine::now(&clock).since(&before);
        assert!(did.over >= Nanos::from_millis(100) && did.busy > Nanos(0) && spun > 0, "{did:?}");
        assert!(did.switches > 0, "{did:?}");
    }

    #[test]
    fn a_counter_that_went_back_counts_as_nothing() {
        let machine =
            |over, disk_read| Machine(Activity { over: Nanos(over), disk_read, ..Activity::default() });
        assert_eq!(machine(5, 1).since(&machine(3, 9)), Activity { over: Nanos(2), ..Activity::default() });
    }

    proptest! {
        #[test]
        fn garbage_is_no_reason_to_fail(text in "[ a-z0-9:=\\n.-]{0,300}") {
            let mut counters = Activity::default();
            for text in [text.clone(), format!("cpu {text}"), format!("some {text}")] {
                read_stat(&text, &mut counters);
                read_disks(&text, |_| true, &mut counters);
                read_network(&text, &mut counters);
                read_pressure(&[text.clone(), text.clone(), text]);
            }
        }
    }
}
