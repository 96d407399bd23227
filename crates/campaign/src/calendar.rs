//! Watches the calendar's clock, which may be set while a campaign runs. No measurement uses it, but the times
//! of day in the record then do not compare, and the record notes it.

use nilometer_model::Nanos;
use nilometer_storage::Calendar;

/// A step that is larger than this is no drift.
const STEP: Nanos = Nanos::from_millis(100);

/// Watches for steps from one look to the next.
#[derive(Debug)]
pub(crate) struct Watched(Calendar);

impl Watched {
    /// Watches from now on.
    pub(crate) fn begin() -> Self {
        Watched(Calendar::now())
    }

    /// Describes a step since the last look, if there was one.
    pub(crate) fn look(&mut self, now: Calendar) -> Option<String> {
        said(now.stepped_since(std::mem::replace(&mut self.0, now)))
    }
}

fn said(step: i64) -> Option<String> {
    let size = step.unsigned_abs();
    let way = if step < 0 { "back" } else { "forward" };
    (size > STEP.0).then(|| {
        let seconds = Nanos(size).seconds();
        format!(
            "the calendar's clock was set {seconds:.1} s {way}: times of day before and after do not compare; measured \
             times are not affected"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_step_is_told_once_and_drift_is_not() {
        let at = |time, running| Calendar { time: Nanos(time), running: Nanos(running) };
        let mut watched = Watched(at(5000 * SECOND, 10 * SECOND));
        assert_eq!(watched.look(at(5060 * SECOND + SECOND / 20, 70 * SECOND)), None);
        let text = watched.look(at(1520 * SECOND, 130 * SECOND)).expect("an hour");
        assert!(text.contains("set 3600.1 s back"), "{text}");
        assert_eq!(watched.look(at(1530 * SECOND, 140 * SECOND)), None);
        assert!(watched.look(at(1541 * SECOND, 150 * SECOND)).expect("a second").contains("1.0 s forward"));
    }
}
