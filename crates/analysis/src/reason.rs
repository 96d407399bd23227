//! Reasons why figures must not be used, counted by kind: the figures of one kind differ, and the worst sample
//! stands for all.

use std::fmt;

use nilometer_model::{Invalid, Sample};

/// Samples excluded for the same reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// The sample that exceeds the limit most.
    pub worst: Invalid,
    /// Its figure and the limit, if it has them.
    figures: Option<String>,
    excess: f64,
    /// Number of samples.
    pub count: usize,
}

impl Reason {
    /// The worst figure and the limit, if there are any.
    pub fn figures(&self) -> Option<String> {
        let most = if self.count > 1 { "at worst " } else { "" };
        Some(format!("{most}{}", self.figures.as_ref()?))
    }

    /// The reason of one sample; `None` if the sample is valid.
    pub(crate) fn of(sample: &Sample) -> Option<Self> {
        Some(Reason {
            worst: sample.invalid.clone()?,
            figures: sample.invalid_figures(),
            excess: sample.invalid_excess(),
            count: 1,
        })
    }

    /// Returns true if both are of one kind; refusals for different reasons are not.
    fn is_like(&self, other: &Reason) -> bool {
        (self.worst.code(), self.worst.what()) == (other.worst.code(), other.worst.what())
    }

    /// Merges two reasons of one kind.
    fn merge(&mut self, other: Reason) {
        let count = self.count + other.count;
        if other.excess > self.excess {
            *self = other;
        }
        self.count = count;
    }

    /// Advice, if anything can be done.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self.worst {
            Invalid::Hung => {
                "read the kernel's messages about this storage; `nilometer clean` removes leftovers"
            }
            Invalid::Errors => "the record names the errors: SELECT * FROM error",
            Invalid::WarmRead => "read with access = \"direct\", or more than the memory holds",
            Invalid::NotDirect => "write access = \"buffered\" for this target: it has no other",
            Invalid::NotPreallocated => "write preallocate = false for this target: it can't reserve space",
            Invalid::Wrong => {
                "this storage returned other data than were written: examine it before anything else"
            }
            Invalid::Starved(_) => "use fewer workers, or a machine that is not shared",
            Invalid::Slow(_) => "record fewer at once, or on a machine that makes frames faster",
            Invalid::Bursts(_) => {
                "let the kernel keep more packets (net.core.rmem_max), or use a machine that is not shared"
            }
            Invalid::NoBackground(_) => {
                "give the load beside it the missing resource, such as space, or use a smaller load"
            }
            Invalid::Refused(_) => return None,
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.worst.what())?;
        self.figures().map_or(Ok(()), |figures| write!(f, ": {figures}"))
    }
}

/// Each kind once, in the order in which they appear.
pub(crate) fn reasons<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = Vec::new();
    for one in samples.filter_map(Reason::of) {
        match reasons.iter_mut().find(|reason| reason.is_like(&one)) {
            Some(reason) => reason.merge(one),
            None => reasons.push(one),
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::{Ingest, Nanos, ReaderTotals, Waited};

    fn starved(waited: u64, of: u64) -> Invalid {
        let [waited, of, allowed] = [waited, of, of / 5].map(Nanos::from_millis);
        Invalid::Starved(Some(Waited { waited, of, allowed, throttled: Nanos(0) }))
    }

    fn invalid(why: Invalid) -> Sample {
        Sample::invalid(why)
    }

    #[test]
    fn samples_of_a_kind_are_one_reason_with_the_worst_figure_and_its_threshold() {
        let all = [
            starved(30, 100),
            Invalid::Refused("no space".into()),
            starved(80, 100),
            Invalid::Refused("no inodes".into()),
            starved(100, 400),
            Invalid::Starved(None),
        ];
        let all = all.map(invalid);
        let told: Vec<(String, usize)> =
            reasons(all.iter()).iter().map(|reason| (reason.to_string(), reason.count)).collect();
        let worst = "the tool itself waited for a processor: at worst 80 ms of 100 ms, allowed 20 ms";
        assert_eq!(told, [(worst.into(), 4), ("no space".into(), 1), ("no inodes".into(), 1)]);
        let one = reasons([invalid(starved(30, 100))].iter()).remove(0);
        assert_eq!(one.to_string(), "the tool itself waited for a processor: 30 ms of 100 ms, allowed 20 ms");
        assert!(one.advice().is_some_and(|advice| advice.contains("fewer workers")));
    }

    #[test]
    fn what_failed_is_counted_too() {
        let failed = |count| {
            let mut sample = invalid(Invalid::Errors);
            sample.errors.extend([(5, count), (28, 1)]);
            sample
        };
        let reasons = reasons([failed(1), failed(6), failed(3)].iter());
        assert_eq!(reasons[0].to_string(), "operations failed: at worst 7, allowed none");
        let after = ReaderTotals { failed: 2, after: true, ..ReaderTotals::default() };
        // A reader that failed during the recording may have been overtaken.
        let during = ReaderTotals { wrong: 3, failed: 7, ..ReaderTotals::default() };
        let readers = vec![during, after];
        let wrong =
            Sample { ingest: Some(Ingest { readers, ..Ingest::default() }), ..invalid(Invalid::Wrong) };
        let told = Reason::of(&wrong).expect("invalid").to_string();
        assert_eq!(
            told,
            "a reader did not find the frames that were written: 3 differ and 2 can't be read, allowed none"
        );
    }
}
