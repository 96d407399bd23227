//! The question that a campaign answers and the answers in a few words: what stands at the top of a page, for somebody who
//! reads no further.

use nilometer_model::ByteRate;

use crate::{
    Decision, Finding, OpenQuestion, Study, TrialVerdict, Verdict,
    verdict::{fewer_losses, lost_frames},
};

/// The question with its answers, one for each instrument on each target.
#[derive(Debug, Clone, PartialEq)]
pub struct ShortAnswers {
    /// `Can /data carry pco-edge?`; the plan's title where no instrument was recorded.
    pub question: String,
    /// In the order of verdicts, then those that were asked for and not recorded.
    pub answers: Vec<ShortAnswer>,
}

/// What is said of one instrument on one target.
#[derive(Debug, Clone, PartialEq)]
pub struct ShortAnswer {
    /// Index into [`nilometer_model::Results::targets`].
    pub target: usize,
    /// The instrument, how many of it, and what all of them deliver.
    pub instrument: String,
    /// Yes, no, or not decided.
    pub decision: Decision,
    /// By what margin, or why not: a sentence without its subject.
    pub claim: String,
    /// What that rests on, a short sentence each.
    pub evidence: Vec<String>,
}

impl ShortAnswers {
    /// Of a study.
    pub fn of(study: &Study<'_>) -> Self {
        let mut answers: Vec<ShortAnswer> = study.verdicts.iter().map(answer).collect();
        answers.extend(study.missing.open.iter().map(open));
        ShortAnswers { question: question(study), answers }
    }
}

impl Decision {
    /// As one answers a question.
    pub const fn reply(self) -> &'static str {
        match self {
            Decision::Carries => "Yes",
            Decision::DoesNotCarry => "No",
            Decision::NotDecided => "Not decided",
        }
    }
}

fn question(study: &Study<'_>) -> String {
    let recorded = study.verdicts.iter().map(|verdict| (verdict.who(), verdict.target));
    let asked = study.missing.open.iter().map(|open| (open.instrument.to_string(), open.target));
    let mut instruments: Vec<String> = Vec::new();
    let mut targets: Vec<usize> = Vec::new();
    for (instrument, target) in recorded.chain(asked) {
        if !instruments.contains(&instrument) {
            instruments.push(instrument);
        }
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    if instruments.is_empty() {
        return study.results.title.clone();
    }
    let path = |target: &usize| study.results.targets.get(*target).map_or("", |entry| &entry.path).to_owned();
    let carried = listed(&instruments, "and");
    if targets.len() > NAMED_MOST {
        return format!("Which of {} targets carry {carried}?", targets.len());
    }
    format!("Can {} carry {carried}?", listed(&targets.iter().map(path).collect::<Vec<_>>(), "or"))
}

/// More are counted, not named.
const NAMED_MOST: usize = 3;

/// `a, b and c`; `a, b and 3 more`.
fn listed(names: &[String], conjunction: &str) -> String {
    let shown = if names.len() > NAMED_MOST { NAMED_MOST - 1 } else { names.len() };
    let mut parts: Vec<String> = names[..shown].to_vec();
    if shown < names.len() {
        parts.push(format!("{} more", names.len() - shown));
    }
    match parts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} {conjunction} {last}", rest.join(", ")),
        None => String::new(),
    }
}

fn answer(verdict: &Verdict) -> ShortAnswer {
    ShortAnswer {
        target: verdict.target,
        instrument: format!("{}, {}", verdict.who(), verdict.rate),
        decision: verdict.decision(),
        claim: verdict.claim(),
        evidence: verdict.trial().map(|trial| evidence(verdict, trial)).unwrap_or_default(),
    }
}

fn open(open: &OpenQuestion) -> ShortAnswer {
    ShortAnswer {
        target: open.target,
        instrument: format!("{}, {}", open.instrument, open.rate),
        decision: Decision::NotDecided,
        claim: open.to_string(),
        evidence: Vec::new(),
    }
}

fn evidence(verdict: &Verdict, trial: &TrialVerdict) -> Vec<String> {
    let TrialVerdict { duration, longest_stall, cores, .. } = trial;
    let mut evidence = vec![format!("Tested for {duration} at {}", verdict.rate)];
    match &verdict.finding {
        Finding::Carried(_) => {
            evidence.push(format!("No {} lost: {}", trial.smallest(), fewer_losses(*duration).join("; ")));
            let covering = ByteRate(trial.covering(verdict.rate).0 as f64).to_string().replace("/s", "");
            evidence
                .push(format!("The longest stall was {longest_stall}, which a buffer of {covering} covers"));
        }
        Finding::Lost(_) => {
            evidence.push(format!("{} were lost", lost_frames(trial)));
            evidence.push(format!("The longest stall was {longest_stall}"));
        }
        Finding::Undecided(_) => {}
    }
    evidence.push(format!("The recorder used {cores:.2} cores"));
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_are_counted() {
        let names = |count: usize| (1..=count).map(|number| format!("i{number}")).collect::<Vec<_>>();
        let texts: Vec<String> = (0..=5).map(|count| listed(&names(count), "and")).collect();
        assert_eq!(texts, ["", "i1", "i1 and i2", "i1, i2 and i3", "i1, i2 and 2 more", "i1, i2 and 3 more"]);
    }
}
