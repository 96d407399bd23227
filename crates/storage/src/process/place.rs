//! The processors that threads run on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Returns the numbers of the processors that this thread may run on; empty if the kernel does not report
/// them.
pub fn processors() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Binds the calling thread to this processor. Returns true if the kernel does it.
pub fn pin_to(cpu: usize) -> bool {
    if cpu >= CpuSet::MAX_CPU {
        return false;
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_stays_where_it_is_put() {
        let all = processors();
        assert!(!all.is_empty());
        for &cpu in &all {
            let runs_on = std::thread::spawn(move || pin_to(cpu).then(processors)).join().expect("it ends");
            assert_eq!(runs_on, Some(vec![cpu]));
        }
        assert_eq!(processors(), all, "others may run anywhere");
        assert!(!pin_to(CpuSet::MAX_CPU));
    }
}
