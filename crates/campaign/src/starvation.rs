//! Checks if the tool waited for a processor for longer than its figures allow.

use nilometer_model::{Invalid, Nanos, Waited};

/// If workers wait for a processor for more than 1 / `WAITED_PART` of their time, the figure measures them and
/// not the storage. A shorter wait makes a figure too low by at most that part, and shows in the spread of its
/// repeats.
const WAITED_PART: u64 = 5;

/// Returns the reason if the workers waited for too much of all their time together.
pub(crate) fn starved(waited: Nanos, of: Nanos) -> Option<Invalid> {
    let allowed = Nanos(of.0 / WAITED_PART);
    starved_beyond(waited, of, allowed)
}

/// Returns the reason if the tool waited longer for a processor than `allowed`.
pub(crate) fn starved_beyond(waited: Nanos, of: Nanos, allowed: Nanos) -> Option<Invalid> {
    (waited > allowed).then_some(Invalid::Starved(Some(Waited { waited, of, allowed, throttled: Nanos(0) })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn workers_without_a_processor_are_told_from_those_that_have_one(of in 1..u64::MAX / 2, part in 0.0..1.0) {
            let waited = |part: f64| Nanos::from_seconds(part * Nanos(of).seconds());
            prop_assert_eq!(starved(waited(0.19 * part), Nanos(of)), None);
            prop_assert!(starved(Nanos(of), Nanos(of)).is_some());
            let why = starved(Nanos(of), Nanos(of)).map(|why| why.to_string()).unwrap_or_default();
            prop_assert!(why.contains(", allowed "), "{}", why);
        }
    }
}
