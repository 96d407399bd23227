//! Compares the requested campaign with that of a record.

use serde::Serialize;
use serde_json::Value;

/// Returns the first difference between two values of a type, with both values; `None` if they are the same.
pub fn difference<T: Serialize>(recorded: &T, given: &T) -> Option<String> {
    let value = |of: &T| serde_json::to_value(of).unwrap_or_default();
    first(&value(recorded), &value(given), "").map(|(place, recorded, given)| {
        // Leave out the kind of a cell: its keys show it.
        let place = KINDS.iter().fold(place, |place, kind| place.replace(kind, ""));
        format!("{place} is {recorded} there and {given} here")
    })
}

/// The parts of a path that lead to a cell's parameters.
const KINDS: [&str; 2] = [".measurement.workload", ".measurement.recording"];

fn first(recorded: &Value, given: &Value, place: &str) -> Option<(String, String, String)> {
    let null = Value::Null;
    match (recorded, given) {
        (Value::Object(one), Value::Object(other)) => {
            let mut keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
            keys.find_map(|key| {
                let place = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
                first(one.get(key).unwrap_or(&null), other.get(key).unwrap_or(&null), &place)
            })
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut pairs = one.iter().zip(other).enumerate();
            pairs.find_map(|(at, (one, other))| first(one, other, &format!("{place}[{at}]")))
        }
        (Value::Array(one), Value::Array(other)) => {
            Some((format!("the length of {place}"), one.len().to_string(), other.len().to_string()))
        }
        (one, other) => (one != other).then(|| (place.into(), one.to_string(), other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use nilometer_model::Instrument;
    use nilometer_plan::{Cell, PlannedCampaign, RecordingRun, ResolvedPlan, parse_with};
    use std::fs;

    /// Every built-in plan, which records every instrument of the catalogue.
    fn built_in() -> Vec<ResolvedPlan> {
        let texts = |directory: &str| {
            let entries = fs::read_dir(format!("../../{directory}")).expect("it is there");
            let paths = entries.map(|entry| entry.expect("an entry").path());
            let toml = paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
            toml.map(|path| fs::read_to_string(path).expect("a text")).collect::<Vec<_>>()
        };
        let instruments = texts("instruments");
        let named = |name: &str| {
            let text = fs::read_to_string(format!("../../instruments/{name}.toml")).expect("it is there");
            Instrument::parse(&text, name).map_err(|error| error.to_string())
        };
        let recording = |text: &String| {
            Cell::recording("it", RecordingRun::new(Instrument::parse(text, "it").expect("valid")))
        };
        let scales = [1.0, 1.0 / 3.0, 0.01];
        let plans = texts("plans");
        let plans = plans.iter().flat_map(|text| scales.map(|scale| parse_with(text, "it", scale, &named)));
        let mut plans: Vec<ResolvedPlan> = plans.map(|plan| plan.expect("a valid plan")).collect();
        for plan in &mut plans {
            plan.cells.extend(instruments.iter().map(recording));
        }
        plans
    }

    #[test]
    fn every_built_in_plan_comes_back_from_the_record_as_it_was() {
        let plans = built_in();
        assert!(!plans.is_empty() && plans[0].recordings().count() > 0);
        for plan in plans {
            let target = nilometer_storage::target::probe(std::path::Path::new(".")).expect("a directory");
            let resolved = PlannedCampaign::new(plan, vec![target]);
            let text = serde_json::to_string(&resolved).expect("it is plain data");
            let read: PlannedCampaign = serde_json::from_str(&text).expect("it was written so");
            assert_eq!(read, resolved);
            assert_eq!(difference(&read.plan, &resolved.plan), None);
        }
    }

    #[test]
    fn the_first_difference_is_named() {
        let plan = built_in().remove(0);
        let mut other = plan.clone();
        other.repeats += 1;
        let text = difference(&plan, &other).expect("another number of rounds");
        assert_eq!(text, format!("repeats is {} there and {} here", plan.repeats, other.repeats));
        let mut other = plan.clone();
        other.cells[1].stage = "another".into();
        assert!(difference(&plan, &other).expect("a stage").starts_with("cells[1].stage is "));
        other.cells.pop();
        assert!(difference(&plan, &other).expect("a cell less").starts_with("the length of cells is "));
    }
}
