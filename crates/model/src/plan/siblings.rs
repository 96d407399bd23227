//! `siblings`: what of a stage should be alike, so that the one that is not is found. They are measured alone and together.

use serde::{Deserialize, Serialize};

use super::{Sweep, Volumes};

/// What should be alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Siblings {
    /// The targets of the campaign: servers, disks or directories.
    Targets,
    /// The workers of a cell, on whichever machines they are.
    Workers,
}

impl Siblings {
    /// The word in plans and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Siblings::Targets => "targets",
            Siblings::Workers => "workers",
        }
    }

    /// How many targets work at the same time: each by itself, and all.
    pub(super) fn volumes(
        siblings: Option<Self>,
        written: &Sweep<Volumes>,
    ) -> Result<Sweep<Volumes>, String> {
        match siblings {
            Some(Siblings::Targets) if *written != Sweep::default() => {
                Err("siblings = \"targets\": each is measured alone, and all together: leave volumes out"
                    .into())
            }
            Some(Siblings::Targets) => Ok(Sweep::of(vec![Volumes::Alone, Volumes::Together])),
            _ => Ok(written.clone()),
        }
    }

    /// How many workers there are: one by itself, and as many as are written.
    pub(super) fn workers(siblings: Option<Self>, written: &Sweep<u32>) -> Result<Sweep<u32>, String> {
        match siblings {
            Some(Siblings::Workers) if written.values().iter().any(|count| *count < 2) => {
                Err("siblings = \"workers\": one by itself is measured as well: write workers = 2 or more"
                    .into())
            }
            Some(Siblings::Workers) => {
                Ok(Sweep::of(std::iter::once(1).chain(written.values().iter().copied()).collect()))
            }
            _ => Ok(written.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::{Volumes, parse};

    const PLAN: &str = r#"
title = "equals"
[[stage]]
name = "servers"
siblings = "targets"
workers = 4
[stage.workload.stream]
file_size = "64 MiB"
block_size = "1 MiB"
access = "buffered"
"#;

    #[test]
    fn siblings_are_measured_alone_and_together() {
        let cells = |text: &str| {
            let plan = parse(text, "my.toml", 1.0).expect("a valid plan");
            plan.workloads().map(|(_, _, run)| (run.workers, run.volumes)).collect::<Vec<_>>()
        };
        assert_eq!(cells(PLAN), [(4, Volumes::Alone), (4, Volumes::Together)]);
        let workers = PLAN.replace("\"targets\"", "\"workers\"");
        assert_eq!(cells(&workers), [(1, Volumes::Alone), (4, Volumes::Alone)]);
    }

    #[test]
    fn what_contradicts_it_is_refused_with_what_would_do() {
        for (from, to, part) in [
            ("workers = 4", "volumes = [\"alone\", 3]", "leave volumes out"),
            ("siblings = \"targets\"\nworkers = 4", "siblings = \"workers\"", "write workers = 2 or more"),
            ("\"targets\"", "\"disks\"", "expected `targets` or `workers`"),
        ] {
            let text = PLAN.replace(from, to);
            let error = parse(&text, "my.toml", 1.0).expect_err(to).to_string();
            assert!(error.contains(part), "{part} in {error}");
        }
    }
}
