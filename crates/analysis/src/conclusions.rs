//! All conclusions of a campaign in words, as its record stores them.

use nilometer_model::{ByteRate, NetworkStage};
use nilometer_plan::Conclusion;

use crate::{JudgedCriterion, NetworkOutcome, Study, network_outcomes};

/// All conclusions of a campaign in words, as a record stores them: the acceptance, the verdicts on each target,
/// and their comparison.
pub fn conclusions(study: &Study<'_>) -> Vec<Conclusion> {
    let path = |target: usize| study.results.targets.get(target).map_or("", |target| &target.path).to_owned();
    let mut all = Vec::new();
    for verdict in &study.acceptance {
        let subject = format!("acceptance of {}", path(verdict.target));
        all.push(Conclusion { subject: subject.clone(), words: verdict.answer().name().into() });
        let of =
            |judged: &JudgedCriterion| Conclusion { subject: subject.clone(), words: judged.to_string() };
        all.extend(verdict.criteria.iter().map(of));
    }
    for verdict in &study.verdicts {
        let subject = format!("{} on {}", verdict.who(), path(verdict.target));
        all.push(Conclusion { subject, words: verdict.to_string() });
    }
    for stage in &study.stages {
        for question in &stage.figures.questions {
            let subject = format!("{}, {}", stage.figures.name, question.phase.name());
            let sentences = question.sentences(study.results.margin, path);
            all.extend(sentences.into_iter().map(|words| Conclusion { subject: subject.clone(), words }));
        }
        for of in &stage.interferences {
            let subject =
                format!("{}, {} beside a load on {}", stage.figures.name, of.phase.name(), path(of.target));
            let told = of.sentences(study.results.margin).into_iter();
            all.extend(told.map(|words| Conclusion { subject: subject.clone(), words }));
        }
    }
    for stage in &study.stages {
        for of in &stage.siblings {
            let subject = format!("{}, {}", stage.figures.name, of.heading());
            let told = of.sentences(study.results.margin).into_iter();
            all.extend(told.map(|words| Conclusion { subject: subject.clone(), words }));
        }
    }
    all.extend(study.results.network.iter().flat_map(of_network));
    all
}

/// The rate of the network in each pattern, in words.
fn of_network(stage: &NetworkStage) -> Vec<Conclusion> {
    let names = stage.results.names();
    let conclusion = |outcome: NetworkOutcome| Conclusion {
        subject: format!("{}, {}", stage.stage, outcome.cell.words(&names)),
        words: pattern_words(&outcome),
    };
    network_outcomes(&stage.results).into_iter().map(conclusion).collect()
}

fn pattern_words(outcome: &NetworkOutcome) -> String {
    match (outcome.rate, &outcome.failed, &outcome.left_out) {
        (Some(rate), ..) => ByteRate(rate.mean).bits(),
        (None, Some(_), _) => "failed".into(),
        (None, None, Some(why)) => format!("left out: {why}"),
        (None, None, None) => "not measured".into(),
    }
}
