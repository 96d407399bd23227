//! Before a spoilt measurement is made again, the machine is given time to calm down.

use std::thread;

use nilometer_model::Nanos;
use nilometer_storage::process;

use crate::task::Run;

/// A processor must be free in this number of looks in a row.
const LOOKS: u32 = 5;
const LOOK_EVERY: Nanos = Nanos::from_millis(20);
/// The longest wait for a machine that is always busy.
const AT_MOST: Nanos = Nanos::from_millis(2000);

/// Waits until a processor would have been free for a while. Waits no longer than the measurement takes, and at
/// most two seconds.
pub(crate) fn await_calm(run: &Run, takes: Nanos) {
    let processors = thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let start = run.clock.now();
    let at_most = takes.min(AT_MOST);
    let mut streak = Streak::default();
    while run.clock.now().since(start) < at_most && !run.is_over() {
        if streak.see(process::runnable_tasks(), processors) {
            return;
        }
        thread::sleep(LOOK_EVERY.duration());
    }
}

/// The number of looks in a row that found a processor free.
#[derive(Debug, Default)]
struct Streak(u32);

impl Streak {
    /// Adds a look that found `tasks` tasks able to run, this one included. Returns true if a processor was
    /// free for long enough.
    fn see(&mut self, tasks: u64, processors: u64) -> bool {
        self.0 = if tasks <= processors { self.0 + 1 } else { 0 };
        self.0 >= LOOKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_calm_when_it_stays_so() {
        let mut streak = Streak::default();
        let calm = [1, 2, 1, 1, 3, 1, 1, 1, 1, 2].map(|tasks| streak.see(tasks, 2));
        assert_eq!(calm.iter().position(|calm| *calm), Some(9), "one neighbour in between");
    }
}
