//! `siblings`: parts of a stage that should be alike. They are measured alone and together, to find the one
//! that is not.

use serde::{Deserialize, Serialize};

use super::{Sweep, Volumes};

/// The parts that should be alike.
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

    /// The numbers of targets at work at the same time: one, and all.
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
}

#[cfg(test)]
mod tests {
    use crate::{Volumes, parse};

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
        let workers = PLAN.replace("\"targets\"", "\"workers\"").replace("= 4", "= [2, 3]");
        let plan = parse(&workers, "my.toml", 1.0).expect("a valid plan");
        let told: Vec<_> = plan.workloads().map(|(_, _, run)| (run.workers, run.lone_worker)).collect();
        assert_eq!(told, [(3, Some(0)), (3, Some(1)), (3, Some(2)), (2, None), (3, None)]);
        assert!(plan.cells[1].to_string().contains("worker 2 of 3 alone"), "{}", plan.cells[1]);
    }

    #[test]
    fn what_contradicts_it_is_refused_with_what_would_do() {
        for (from, to, part) in [
            ("workers = 4", "volumes = [\"alone\", 3]", "leave volumes out"),
            ("siblings = \"targets\"\nworkers = 4", "siblings = \"workers\"", "write workers = 2 to 64"),
            ("siblings = \"targets\"\nworkers = 4", "siblings = \"workers\"\nworkers = 65", "2 to 64"),
            (
                "\"targets\"\nworkers = 4\n[stage.workload.stream]",
                "\"workers\"\nworkers = 4\n[stage.workload.stream]\nlayout = \"segmented\"",
                "workers of `stream` share something",
            ),
            ("\"targets\"", "\"disks\"", "expected `targets` or `workers`"),
        ] {
            let text = PLAN.replace(from, to);
            let error = parse(&text, "my.toml", 1.0).expect_err(to).to_string();
            assert!(error.contains(part), "{part} in {error}");
        }
    }
}
