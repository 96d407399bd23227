//! The metrics of every kind of results: Prometheus refuses a file in which two values have the same labels.

use std::collections::BTreeSet;

use nilometer_model::{Nanos, Phase};
use nilometer_plan::Results;

use super::{WICKED, recorded, results, studied, zoo::zoo};
use crate::evaluation_metrics;
use nilometer_analysis::made_up::writes;

fn metrics_of(results: &Results) -> String {
    evaluation_metrics(&studied(results))
}

#[test]
fn no_value_of_any_record_has_the_labels_of_another_and_each_is_a_number() {
    for specimen in zoo() {
        let name = specimen.name;
        let text = evaluation_metrics(&specimen.study());
        let mut seen = BTreeSet::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (labels, value) = line.rsplit_once(' ').expect("a value");
            assert!(value.parse::<f64>().is_ok(), "{name}: {line}");
            assert!(seen.insert(labels), "{name}: {line} is there twice");
            assert!(!line.contains(char::is_control), "{name}: {line:?}");
            let metric = labels.split('{').next().expect("a name");
            assert_eq!(text.matches(&format!("# TYPE {metric} gauge\n")).count(), 1, "{name}: {metric}");
        }
    }
}

#[test]
fn figures_and_answers_are_those_of_the_record() {
    let results = recorded(results(2, vec![writes("one", "1048576 B", 1)], &[Phase::Write, Phase::Read], 6));
    let text = metrics_of(&results);
    let study = studied(&results);
    let title = format!("title=\"A test of {}\"", WICKED.replace('"', "\\\"").replace('\u{1b}', "\u{fffd}"));
    let start: nilometer_model::Moment = results.started.parse().expect("a time");
    let starts = format!("nilometer_evaluation_start_time_seconds{{{title}}} {}\n", start.0.seconds());
    assert!(text.contains(&starts), "{text}");
    let outcome = &study.stages[0].figures.outcomes[0];
    let mean = outcome.rate.expect("valid repeats").mean;
    let of_figure = |name: &str| {
        let of_name = format!("nilometer_evaluation_{name}{{{title},stage=");
        text.lines().filter(|line| line.starts_with(&of_name)).map(str::to_owned).collect::<Vec<_>>()
    };
    let figures = study.stages.iter().map(|stage| stage.figures.outcomes.len()).sum::<usize>();
    assert_eq!(of_figure("rate_bytes_per_second").len(), figures);
    assert!(of_figure("rate_bytes_per_second")[0].ends_with(&format!(" {mean}")), "{text}");
    let longest = outcome.quantile(1.0).map(Nanos::seconds).expect("latencies");
    let longest = format!("percentile=\"100\"}} {longest}");
    assert!(of_figure("latency_seconds").iter().any(|line| line.ends_with(&longest)), "{text}");
    for verdict in &study.verdicts {
        let decision = format!("decision=\"{}\"}} 1\n", verdict.decision().name());
        assert!(text.contains(&decision), "{text}");
        let trial = verdict.trial().expect("it was recorded");
        assert!(
            text.lines()
                .any(|line| line.contains("_frames_lost{") && line.ends_with(&format!(" {}", trial.lost)))
        );
    }
    let answers = text.lines().filter(|line| line.contains("_verdict{") && line.ends_with(" 1")).count();
    assert_eq!(answers, study.verdicts.len());
}
