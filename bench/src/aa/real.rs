//! The real program compares two directories of one file system beside each other in many stages. Of its answers, *faster* and
//! *slower* are wrong.

use std::{fmt, fmt::Write, fs, process::Command};

use anyhow::{Context, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::{contest::Stop, measure, place};

/// Two phases each, so that both places together are 200 comparisons.
const STAGES: usize = 50;
const COMPARISONS: usize = 200;
/// Enough pairs that most comparisons come to an answer on a quiet machine.
const REPEATS: usize = 16;
/// Of all comparisons: what an interval at 95 % may miss.
const SHARE_MOST: f64 = 0.05;

/// The answers in one place.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Answers {
    different: usize,
    alike: usize,
    undecided: usize,
}

impl Answers {
    fn all(self) -> usize {
        self.different + self.alike + self.undecided
    }

    fn and(self, other: Answers) -> Answers {
        Answers {
            different: self.different + other.different,
            alike: self.alike + other.alike,
            undecided: self.undecided + other.undecided,
        }
    }

    fn is_met(self) -> bool {
        self.all() >= COMPARISONS && self.different as f64 <= SHARE_MOST * self.all() as f64
    }
}

/// Prints what is found; whether the bound is met.
pub(super) fn check(stop: &Stop) -> anyhow::Result<bool> {
    let in_memory = compared(&place::in_memory()?)?;
    stop.check()?;
    let found = Found { in_memory, on_disk: compared(&place::on_disk()?)? };
    println!("{found}");
    Ok(found.all().is_met())
}

#[derive(Debug)]
struct Found {
    in_memory: Answers,
    on_disk: Answers,
}

impl Found {
    fn all(&self) -> Answers {
        self.in_memory.and(self.on_disk)
    }
}

/// Stages that differ in their seeds and names only.
fn plan() -> String {
    let mut plan =
        format!("title = \"one target under two names\"\nrepeats = {REPEATS}\nreserve = \"0 B\"\n");
    for stage in 0..STAGES {
        let size = 4 + 4 * (stage % 4);
        write!(
            plan,
            "[[stage]]\nname = \"files {stage}\"\n[stage.workload.stream]\nfile_size = \"{size} MiB\"\nblock_size = \"256 KiB\"\n\
             access = \"best\"\n"
        )
        .expect("writing to a string does not fail");
    }
    plan
}

fn compared(home: &TempDir) -> anyhow::Result<Answers> {
    let program = place::program()?;
    let at = |name: &str| home.path().join(name);
    fs::create_dir(at("a"))?;
    fs::create_dir(at("b"))?;
    fs::write(at("plan.toml"), plan())?;
    let mut evaluate = Command::new(&program);
    evaluate.arg("evaluate").args([at("a"), at("b")]).arg("--plan").arg(at("plan.toml"));
    measure::child(1.0, evaluate.arg("--record").arg(at("r.sqlite")))?;
    let report =
        Command::new(&program).arg("report").arg(at("r.sqlite")).args(["--format", "json"]).output()?;
    ensure!(report.status.success(), "no report: {}", String::from_utf8_lossy(&report.stderr));
    answers(&serde_json::from_slice(&report.stdout)?)
}

fn answers(report: &Value) -> anyhow::Result<Answers> {
    let comparisons = report["comparisons"].as_array().context("the report has no comparisons")?;
    let mut found = Answers::default();
    for comparison in comparisons {
        match comparison["answer"].as_str() {
            Some("faster" | "slower") => found.different += 1,
            Some("alike") => found.alike += 1,
            Some("undecided") => found.undecided += 1,
            other => anyhow::bail!("the answer of a comparison is {other:?}"),
        }
    }
    Ok(found)
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "### aa: one file system under two names\n")?;
        writeln!(
            f,
            "| place | comparisons | faster or slower | no difference | not decided |\n|---|---|---|---|---|"
        )?;
        for (place, answers) in [("in memory", self.in_memory), ("on a disk", self.on_disk)] {
            let Answers { different, alike, undecided } = answers;
            writeln!(f, "| {place} | {} | {different} | {alike} | {undecided} |", answers.all())?;
        }
        let all = self.all();
        let share = 100.0 * all.different as f64 / all.all().max(1) as f64;
        let word = if all.is_met() { "met" } else { "MISSED" };
        writeln!(
            f,
            "\n- bound {:.0} % of {COMPARISONS}: {share:.1} % of {}: {word}",
            100.0 * SHARE_MOST,
            all.all()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_that_are_none_are_counted() {
        let of = |answer: &str| json!({ "answer": answer });
        let all: Vec<Value> = ["faster", "alike", "undecided", "slower", "alike"].map(of).to_vec();
        let found = answers(&json!({ "comparisons": all })).expect("answers");
        assert_eq!(found, Answers { different: 2, alike: 2, undecided: 1 });
        assert!(!found.is_met(), "too few, and too many are wrong");
        let enough = Answers { different: 10, alike: 190, undecided: 0 };
        assert!(enough.is_met() && !Answers { different: 11, alike: 189, ..enough }.is_met());
        assert!(answers(&json!({ "comparisons": [of("perhaps")] })).is_err());
        assert_eq!(nilometer_plan::parse(&plan(), "aa", 1.0).expect("a valid plan").cells.len(), STAGES);
    }
}
