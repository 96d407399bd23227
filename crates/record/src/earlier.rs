//! Plans as earlier versions of the program wrote them, brought into today's form: records are kept for years.
//!
//! Until 0.1.0 of schema 3 a plan had its recordings in a list of their own behind its cells, `ingests`, without a stage: they
//! were called by their instrument. In a record they were counted behind the cells.

use serde_json::Value;

/// A resolved plan in today's form. What is no such plan stays as it is.
pub(crate) fn plan(text: String) -> String {
    let Ok(mut whole) = serde_json::from_str::<Value>(&text) else { return text };
    let Some(plan) = whole.get_mut("plan").and_then(Value::as_object_mut) else { return text };
    let Some(Value::Array(recordings)) = plan.remove("ingests") else { return text };
    let Some(cells) = plan.get_mut("cells").and_then(Value::as_array_mut) else { return text };
    cells.extend(recordings.into_iter().map(staged));
    whole.to_string()
}

/// A recording under the name of its instrument.
fn staged(mut recording: Value) -> Value {
    let name = recording["instrument"]["name"].clone();
    if let Some(recording) = recording.as_object_mut() {
        recording.entry("stage").or_insert(name);
    }
    recording
}

#[cfg(test)]
pub(crate) mod tests {
    use nilometer_model::plan::{Cell, ResolvedPlan};
    use serde::Deserialize;

    use super::*;

    /// As version 0.1.0 wrote it, of schema 3.
    pub(crate) const EARLIER: &str = include_str!("earlier.json");

    #[derive(Deserialize)]
    struct Resolved {
        plan: ResolvedPlan,
    }

    #[test]
    fn recordings_of_an_earlier_plan_are_cells_behind_the_others() {
        let text = plan(EARLIER.into());
        let Resolved { plan } = serde_json::from_str(&text).expect("today's form");
        let stages: Vec<&str> = plan.cells.iter().map(|cell| cell.stage.as_str()).collect();
        assert_eq!(stages, ["large files", "large files", "pilatus-6m", "pilatus-6m"]);
        assert_eq!((plan.workloads().count(), plan.recordings().count()), (2, 2));
        assert!(plan.cells[2].as_recording().is_some_and(|run| run.label() == "pilatus-6m"));
        let again: Cell =
            serde_json::from_value(serde_json::to_value(&plan.cells[3]).expect("JSON")).expect("a cell");
        assert_eq!(again, plan.cells[3]);
    }

    #[test]
    fn todays_plan_and_what_is_none_stay_as_they_are() {
        for text in ["{\"plan\":{\"cells\":[]}}", "no JSON", "{}", "{\"plan\":[],\"ingests\":3}"] {
            assert_eq!(plan(text.into()), text);
        }
    }
}
