//! The progress of the process that reads a stranger's file.

use std::time::Duration;

use nilometer_model::{Bytes, Nanos};
use nilometer_storage::Clock;

/// The processor time without a step after which the process is stuck. No chunk takes this long.
const PROCESSOR_MAX: Duration = Duration::from_secs(20);
/// Bytes that the process may read and write for one object, in addition to `TRANSFER_TIMES` times the file.
const TRANSFER_MAX: u64 = 1 << 30;
const TRANSFER_TIMES: u64 = 8;
/// Bytes of one transfer that count as progress.
const TRANSFER_STEP: u64 = 1 << 20;

/// The present object of the process, and the resources that it has spent on it.
#[derive(Debug)]
pub(super) struct ReadingProgress {
    process: u32,
    /// Bytes that it may move for one object.
    transfer_max: u64,
    clock: Clock,
    /// The name of the last object.
    object: String,
    /// The incomplete last line.
    line: Vec<u8>,
    /// The resources at the last report of the process.
    at_word: SpentResources,
    /// The resources at the last step: a report, or a large transfer.
    at_step: SpentResources,
    /// True if it reported something since the last look at its resources.
    has_spoken: bool,
    looked: Nanos,
}

/// The time between two looks at the resources of the process.
const LOOK: Nanos = Nanos::from_millis(200);

/// The resources that a process has spent until a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SpentResources {
    processor: Duration,
    /// Bytes that it read and wrote.
    moved: u64,
}

impl SpentResources {
    /// Reads the figures of a running process from `/proc`. All are 0 if the process has ended.
    fn of(process: u32) -> Self {
        let read =
            |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
        SpentResources { processor: processor_time(&read("stat")), moved: moved_bytes(&read("io")) }
    }
}

/// Fields 14 and 15 of `proc_pid_stat(5)`, in ticks of which the kernel has 100 a second.
fn processor_time(stat: &str) -> Duration {
    const TICK: Duration = Duration::from_millis(10);
    let behind = stat.rsplit_once(") ").map_or("", |(_, behind)| behind);
    let ticks: u32 = behind.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u32>().ok()).sum();
    TICK * ticks
}

/// `rchar` and `wchar` of `proc_pid_io(5)`.
fn moved_bytes(io: &str) -> u64 {
    let value = |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    value("rchar:").unwrap_or(0).saturating_add(value("wchar:").unwrap_or(0))
}

impl ReadingProgress {
    /// The progress of a process that reads a file of this size.
    pub(super) fn of(process: u32, file_bytes: u64) -> Self {
        let clock = Clock::start();
        ReadingProgress {
            process,
            transfer_max: TRANSFER_MAX.saturating_add(file_bytes.saturating_mul(TRANSFER_TIMES)),
            looked: clock.now(),
            has_spoken: false,
            clock,
            object: "its beginning".into(),
            line: Vec::new(),
            at_word: SpentResources::default(),
            at_step: SpentResources::default(),
        }
    }

    /// The name of the object that was read last.
    pub(super) fn object(&self) -> &str {
        &self.object
    }

    /// Takes the output of the process: a line before each object, an empty one if it goes on with the last.
    pub(super) fn take(&mut self, said: &[u8]) {
        for byte in said {
            if *byte != b'\n' {
                self.line.push(*byte);
                continue;
            }
            if !self.line.is_empty() {
                self.object = String::from_utf8_lossy(&self.line).into_owned();
                self.line.clear();
            }
        }
        self.has_spoken = true;
    }

    /// The reason why the process is stuck. `None` if it makes progress.
    pub(super) fn stuck(&mut self) -> Option<String> {
        let now = self.clock.now();
        if now.since(self.looked) < LOOK {
            return None;
        }
        self.looked = now;
        self.judge(SpentResources::of(self.process))
    }

    /// A process that waits for its storage makes progress, for as long as it takes: no file can cause that.
    fn judge(&mut self, spent: SpentResources) -> Option<String> {
        if std::mem::take(&mut self.has_spoken) {
            self.at_word = spent;
            self.at_step = spent;
            return None;
        }
        let moved = spent.moved.saturating_sub(self.at_word.moved);
        if moved > self.transfer_max {
            return Some(format!("reading it was given up after {} for one object", Bytes(moved)));
        }
        if spent.moved.saturating_sub(self.at_step.moved) >= TRANSFER_STEP {
            self.at_step = spent;
        }
        let worked = spent.processor.saturating_sub(self.at_step.processor);
        (worked > PROCESSOR_MAX)
            .then(|| format!("reading it did not go on for {} s of processor time", PROCESSOR_MAX.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(seconds: u64, moved: u64) -> SpentResources {
        SpentResources { processor: Duration::from_secs(seconds), moved }
    }

    fn fresh() -> ReadingProgress {
        ReadingProgress::of(std::process::id(), 1000)
    }

    #[test]
    fn a_process_that_works_and_reads_nothing_is_stuck() {
        let mut progress = fresh();
        assert_eq!(progress.judge(spent(19, 0)), None);
        let why = progress.judge(spent(21, 0)).expect("it is stuck");
        assert!(why.contains("20 s of processor time"), "{why}");
        let mut progress = fresh();
        for step in 0..50 {
            assert_eq!(progress.judge(spent(10 * step, step << 20)), None, "it moves data: {step}");
        }
    }

    #[test]
    fn a_process_that_names_objects_goes_on_however_long_it_takes() {
        let mut progress = fresh();
        for step in 1..50 {
            progress.take(b"\n");
            assert_eq!(progress.judge(spent(30 * step, step << 32)), None);
        }
        assert!(progress.judge(spent(30 * 50, 49 << 32)).is_some(), "it does not say anything any more");
    }

    #[test]
    fn one_object_does_not_take_more_than_a_file_has() {
        let mut progress = fresh();
        assert_eq!(progress.judge(spent(0, 1 << 30)), None);
        let why = progress.judge(spent(0, (1 << 30) + 9000)).expect("it reads the same again and again");
        assert!(why.contains("for one object"), "{why}");
        assert_eq!(fresh().judge(spent(0, 0)), None, "it waits for the storage");
    }

    #[test]
    fn lines_name_the_last_object_also_in_pieces() {
        let mut progress = fresh();
        assert_eq!(progress.object(), "its beginning");
        progress.take(b"/entry\n/entry/da");
        assert_eq!(progress.object(), "/entry");
        progress.take(b"ta\n\n\n");
        assert_eq!(progress.object(), "/entry/data");
    }

    #[test]
    fn the_kernel_says_what_a_process_spent() {
        let stat = "4711 (a) b (c) R 1 1 1 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 88123 1000 1\n";
        assert_eq!(processor_time(stat), Duration::from_secs(3));
        assert_eq!(moved_bytes("rchar: 5\nwchar: 7\nsyscr: 1\n"), 12);
        assert!(SpentResources::of(std::process::id()).moved > 0);
    }
}
