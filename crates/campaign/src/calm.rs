//! Before a spoilt measurement is made again, the machine is given time to calm down.

use std::thread;

use nilometer_model::Nanos;
use nilometer_storage::process;

use crate::phase::Run;

/// So many looks in a row must find a processor free.
const LOOKS: u32 = 5;
const LOOK_EVERY: Nanos = Nanos::from_millis(20);
/// A machine that is always busy is not waited for any longer.
const AT_MOST: Nanos = Nanos::from_millis(2000);

/// Waits until this program would have had a processor for a while, or for two seconds.
pub(crate) fn await_calm(run: &Run) {
    let processors = thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let start = run.clock.now();
    let mut streak = Streak::default();
    while run.clock.now().since(start) < AT_MOST && !run.is_over() {
        if streak.see(process::runnable_tasks(), processors) {
            return;
        }
        thread::sleep(LOOK_EVERY.duration());
    }
}

/// How many looks in a row found a processor free.
#[derive(Debug, Default)]
struct Streak(u32);

impl Streak {
    /// So many tasks can run, the one that looks included; whether that was few enough for long enough.
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
        let mut see = |tasks: &[u64]| tasks.iter().map(|&tasks| streak.see(tasks, 2)).next_back();
        assert_eq!(see(&[1, 2, 1, 1, 3, 1, 1, 1, 1]), Some(false), "one neighbour in between");
        assert_eq!(see(&[2]), Some(true));
    }
}
