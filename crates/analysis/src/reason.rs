//! Why figures must not be used, counted by kind: samples of one kind differ in their figures, and the worst of them
//! stands for all.

use std::fmt;

use nilometer_model::Invalid;

/// Samples that must not be used for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Of all of them the one that is furthest beyond what is allowed.
    pub worst: Invalid,
    /// How many.
    pub count: usize,
}

impl Reason {
    /// The worst figure and what is allowed, where they are known.
    pub fn figures(&self) -> Option<String> {
        let most = if self.count > 1 { "at worst " } else { "" };
        Some(format!("{most}{}", self.worst.figures()?))
    }

    /// Whether they are of one kind; what was refused for different reasons is not.
    pub(crate) fn is_like(&self, other: &Invalid) -> bool {
        (self.worst.code(), self.worst.what()) == (other.code(), other.what())
    }

    /// What to do about it, if anything can be done.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self.worst {
            Invalid::Hung => {
                "look for what the kernel says of this storage; `nilometer clean` removes what is left"
            }
            Invalid::Errors => "the record names the errors: SELECT * FROM error",
            Invalid::WarmRead => "read with access = \"direct\", or more than the memory holds",
            Invalid::NotDirect => "write access = \"buffered\" for this target: it has no other",
            Invalid::NotPreallocated => "write preallocate = false for this target: it can't reserve space",
            Invalid::Wrong => "this storage gave back what was not written: look at it before anything else",
            Invalid::Starved(_) => "use fewer workers, or a machine that is not shared",
            Invalid::Slow(_) => "record fewer at once, or on a machine that makes frames faster",
            Invalid::Bursts(_) => {
                "let the kernel keep more packets (net.core.rmem_max), or use a machine that is not shared"
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
pub(crate) fn reasons<'a>(invalid: impl Iterator<Item = &'a Invalid>) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = Vec::new();
    for why in invalid {
        match reasons.iter_mut().find(|reason| reason.is_like(why)) {
            Some(reason) => reason.add(why),
            None => reasons.push(Reason { worst: why.clone(), count: 1 }),
        }
    }
    reasons
}

impl Reason {
    fn add(&mut self, why: &Invalid) {
        self.count += 1;
        if why.excess() > self.worst.excess() {
            self.worst = why.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::{Nanos, Waited};

    fn starved(waited: u64, of: u64) -> Invalid {
        let [waited, of, allowed] = [waited, of, of / 5].map(Nanos::from_millis);
        Invalid::Starved(Some(Waited { waited, of, allowed }))
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
        let told: Vec<(String, usize)> =
            reasons(all.iter()).iter().map(|reason| (reason.to_string(), reason.count)).collect();
        let worst = "the tool itself waited for a processor: at worst 80 ms of 100 ms, allowed 20 ms";
        assert_eq!(told, [(worst.into(), 4), ("no space".into(), 1), ("no inodes".into(), 1)]);
        let one = reasons([starved(30, 100)].iter()).remove(0);
        assert_eq!(one.to_string(), "the tool itself waited for a processor: 30 ms of 100 ms, allowed 20 ms");
        assert!(one.advice().is_some_and(|advice| advice.contains("fewer workers")));
    }
}
